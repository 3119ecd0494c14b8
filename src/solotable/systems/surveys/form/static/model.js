// What the pages show, computed from the keys and values of the client: pure.

const byOrder = (one, two) => (one.order < two.order ? -1 : one.order > two.order ? 1 : one.id < two.id ? -1 : 1);

export async function readSurveys(tx) {
  const surveys = await tx.scan({prefix: 'survey/'}).values().toArray();
  const found = [];
  for (const survey of surveys) found.push(await readSurvey(tx, survey.survey_id));
  return found.filter(Boolean).sort((one, two) => one.survey.title.localeCompare(two.survey.title));
}

export async function readSurvey(tx, id) {
  const survey = await tx.get(`survey/${id}`);
  if (!survey) return null;
  const read = async (kind, list) =>
    (await tx.scan({prefix: `${kind}/${id}/`}).values().toArray())
      .map(each => ({...each, id: each[`${kind}_id`], [list]: []})).sort(byOrder);
  const [sections, elements, components] = [
    await read('section', 'elements'), await read('element', 'components'), await read('component', 'none'),
  ];
  const place = (children, parents, field, list) => {
    const byId = new Map(parents.map(each => [each.id, each]));
    for (const child of children) byId.get(child[field])?.[list].push(child);
  };
  place(components, elements, 'element_id', 'components');
  place(elements, sections, 'section_id', 'elements');
  for (const section of sections) {
    section.done = section.elements.filter(isDone).length;
    section.pictures = section.photos.length + section.elements.reduce((sum, each) => sum + each.photos.length, 0);
  }
  const total = sections.reduce((sum, each) => sum + each.elements.length, 0);
  return {survey, sections, total, done: sections.reduce((sum, each) => sum + each.done, 0)};
}

/** An element is done with a condition, or with notes that say why it has none. */
export function isDone(element) {
  return element.condition !== 'N/A' || element.notes.trim() !== '';
}

export async function readPhrases(tx) {
  const found = await tx.scan({prefix: 'phrase/'}).values().toArray();
  return found.filter(each => each.kind === 'Defect').sort((one, two) => one.name.localeCompare(two.name));
}

export async function readRejected(tx) {
  return (await tx.scan({prefix: 'control/rejected/'}).entries().toArray()).map(([key, value]) => ({key, ...value}));
}

export function nameOf(user) {
  const name = user.replace(/^demo-/, '');
  return name[0].toUpperCase() + name.slice(1);
}
