// What a change looks like before the server has it. The server's mutators have the same names and decide;
// these only show the result at once. They run again whenever other changes arrive.

const KEYS = {
  section: args => `section/${args.survey_id}/${args.section_id}`,
  element: args => `element/${args.survey_id}/${args.element_id}`,
  component: args => `component/${args.survey_id}/${args.component_id}`,
};
const EMPTY = {
  section: {notes: '', condition: 'N/A', photos: [], completed_at: null},
  element: {notes: '', condition: 'N/A', photos: [], defects: [], measurements: {}},
  component: {notes: '', condition: 'N/A', photos: [], defects: [], material: 'Unknown', age: 'Unknown'},
};

async function patch(tx, key, changes) {
  const stored = await tx.get(key);
  if (stored) await tx.set(key, {...stored, ...changes});
}

async function remove(tx, kind, args) {
  const child = {section: 'element', element: 'component'}[kind];
  if (child) {
    for (const each of await tx.scan({prefix: `${child}/${args.survey_id}/`}).values().toArray()) {
      if (each[`${kind}_id`] === args[`${kind}_id`]) await remove(tx, child, each);
    }
  }
  await tx.del(KEYS[kind](args));
}

/** The server chooses the real order key; until then a new or moved part is shown last. */
async function lastOrder(tx, kind, args) {
  const parts = await tx.scan({prefix: `${kind}/${args.survey_id}/`}).values().toArray();
  return `${parts.map(each => each.order).sort().at(-1) ?? ''}z`;
}

function partMutators(kind) {
  const name = kind[0].toUpperCase() + kind.slice(1);
  return {
    [`create${name}`]: async (tx, {after, ...args}) => {
      const key = KEYS[kind](args);
      if (!(await tx.has(key))) await tx.set(key, {...EMPTY[kind], order: await lastOrder(tx, kind, args), ...args});
    },
    [`update${name}`]: async (tx, {survey_id, [`${kind}_id`]: id, ...changes}) =>
      await patch(tx, KEYS[kind]({survey_id, [`${kind}_id`]: id}), changes),
    [`move${name}`]: async (tx, args) =>
      await patch(tx, KEYS[kind](args), {order: await lastOrder(tx, kind, args)}),
    [`delete${name}`]: async (tx, args) => await remove(tx, kind, args),
  };
}

export const mutators = {
  async createSurvey(tx, args) {
    await tx.set(`survey/${args.survey_id}`, {title: 'Untitled', status: 'draft', editors: [], viewers: [], ...args});
  },
  async updateSurvey(tx, {survey_id, ...changes}) {
    await patch(tx, `survey/${survey_id}`, changes);
  },
  async deleteSurvey(tx, {survey_id}) {
    for (const prefix of ['section', 'element', 'component']) {
      for (const key of await tx.scan({prefix: `${prefix}/${survey_id}/`}).keys().toArray()) await tx.del(key);
    }
    await tx.del(`survey/${survey_id}`);
  },
  async addPhoto(tx, {kind, survey_id, part_id, image_id}) {
    const stored = await tx.get(`${kind}/${survey_id}/${part_id}`);
    if (stored && !stored.photos.includes(image_id)) {
      await patch(tx, `${kind}/${survey_id}/${part_id}`, {photos: [...stored.photos, image_id]});
    }
  },
  async removePhoto(tx, {kind, survey_id, part_id, image_id}) {
    const stored = await tx.get(`${kind}/${survey_id}/${part_id}`);
    if (stored) {
      await patch(tx, `${kind}/${survey_id}/${part_id}`, {photos: stored.photos.filter(each => each !== image_id)});
    }
  },
  ...partMutators('section'),
  ...partMutators('element'),
  ...partMutators('component'),
};
