// The lists: the surveys of the user, and the sections of one survey.
import {badge, dial, h, plural} from '../dom.js';
import {nameOf} from '../model.js';

export function surveysPage(surveys, {rep, session}) {
  const rows = surveys.map(({survey, done, total}) => h('li', {}, h('a', {class: 'sec', href: `#/s/${survey.survey_id}`},
    dial(done, total),
    h('span', {class: 'sec-name'}, survey.title, h('span', {class: 'muted small'}, `${done} of ${plural(total, 'element')}`)))));
  const name = h('input', {id: 'title', autocomplete: 'off', placeholder: '14 Millrace Terrace'});
  const add = event => {
    event.preventDefault();
    const survey_id = crypto.randomUUID();
    if (!name.value.trim()) return name.focus();
    rep.mutate.createSurvey({survey_id, title: name.value.trim()});
    location.hash = `#/s/${survey_id}`;
  };
  return {title: 'Surveys', content: [
    h('div', {class: 'intro'}, h('p', {class: 'muted small'}, `${session.tenant_id}, ${nameOf(session.user_id)}`), h('h1', {}, 'Surveys')),
    rows.length ? h('ol', {class: 'secs'}, rows) : h('div', {class: 'empty'}, h('p', {}, h('b', {}, 'No surveys yet')),
      h('p', {class: 'muted'}, 'You see the surveys that you own or that are shared with you. Make the first one.')),
    h('form', {class: 'field', onsubmit: add}, h('label', {for: 'title'}, 'New survey'),
      h('div', {class: 'new'}, name, h('button', {class: 'btn primary'}, 'Add survey'))),
  ]};
}

export function sectionRow(section, survey, now) {
  const facts = [`${section.done} of ${plural(section.elements.length, 'element')}`];
  if (section.pictures) facts.push(plural(section.pictures, 'photo'));
  return h('li', {}, h('a', {
    class: section.id === now ? 'sec now' : 'sec', href: `#/s/${survey.survey_id}/${section.id}`,
    'aria-current': section.id === now && 'page',
  }, dial(section.done, section.elements.length),
  h('span', {class: 'sec-name'}, section.name, h('span', {class: 'muted small'}, facts.join(', '))),
  section.condition === 'N/A' ? null : badge(section.condition)));
}

export function surveyPage(tree, {rep, session, status}) {
  const {survey, sections, done, total} = tree;
  const others = [survey.owner, ...survey.editors].filter(user => user && user !== session.user_id);
  const where = [survey.address?.split('\n').at(-1), survey.client_name && `for ${survey.client_name}`].filter(Boolean);
  const name = h('input', {id: 'section-name', autocomplete: 'off', placeholder: 'Name of the section', 'aria-label': 'Name of the section'});
  const form = h('form', {class: 'new', hidden: true, onsubmit: event => {
    event.preventDefault();
    if (name.value.trim()) rep.mutate.createSection({survey_id: survey.survey_id, section_id: crypto.randomUUID(), name: name.value.trim()});
  }}, name, h('button', {class: 'btn'}, 'Add'));
  const add = h('button', {class: 'btn', type: 'button', onclick: () => { form.hidden = false; name.focus(); }}, 'Add a section');
  return {title: survey.title, back: ['Surveys', '#/'], content: [
    h('div', {class: 'intro'},
      h('p', {class: 'muted small'}, survey.survey_id, survey.survey_date && [', inspected ', h('time', {datetime: survey.survey_date}, survey.survey_date)]),
      h('h1', {}, survey.title), where.length ? h('p', {class: 'muted'}, where.join(', ')) : null),
    status.isOnline ? null : offlineNote(status),
    h('div', {class: 'total'}, h('p', {}, h('b', {}, `${done} of ${total}`), ' elements done'),
      h('progress', {class: 'bar', max: Math.max(total, 1), value: done}, `${done} of ${total}`)),
    status.isOnline && others.length ? people(session, others) : null,
    h('ol', {class: 'secs'}, sections.map(section => sectionRow(section, survey))),
    h('div', {class: 'foot'}, add,
      status.isOnline
        ? h('button', {class: 'btn primary', onclick: () => openReport(survey.survey_id, session)}, 'Preview the report')
        : h('button', {class: 'btn', disabled: true}, 'Preview the report'),
      form, status.isOnline ? null : h('p', {class: 'hint'}, 'The report needs a connection.')),
  ]};
}

function people(session, others) {
  const avatars = [session.user_id, ...others].slice(0, 3).map((user, at) =>
    h('span', {class: at ? 'avatar two' : 'avatar'}, nameOf(user).slice(0, 2).toUpperCase()));
  return h('p', {class: 'people'}, h('span', {class: 'pair', 'aria-hidden': 'true'}, avatars),
    h('span', {}, 'You and ', h('b', {}, others.map(nameOf).join(', ')), ' work on this survey.'));
}

export function offlineNote({pending, photos}) {
  const kept = [plural(pending, 'change'), photos ? plural(photos, 'photo') : null].filter(Boolean).join(' and ');
  return h('div', {class: 'note', role: 'status'}, h('b', {}, 'You are offline. Keep working.'),
    h('p', {class: 'small'}, `${kept} ${pending + photos === 1 ? 'is' : 'are'} kept on this device. They are sent when there is a connection.`));
}

async function openReport(survey_id, {key}) {
  const reply = await fetch(`../surveys/${encodeURIComponent(survey_id)}/report`, {headers: {'x-api-key': key}});
  if (reply.ok) open(URL.createObjectURL(new Blob([await reply.text()], {type: 'text/html'})));
}
