// One section: its elements, each with condition, defects, components, notes and photos. Nothing has a save
// button: a choice is kept at once, a text when typing pauses.
import {badge, clock, h, plural} from '../dom.js';
import {isDone} from '../model.js';
import {photoList} from '../photos.js';
import {sectionRow} from './survey.js';

const CHOICES = [['good', 'Good'], ['fair', 'Fair'], ['poor', 'Poor'], ['none', 'N/A']];
const TYPING_PAUSE_MS = 400;

export function sectionPage(tree, section, phrases, context) {
  const {survey, sections} = tree;
  const at = sections.indexOf(section) + 1;
  const open = section.elements.filter(each => !isDone(each)).length;
  const {rep, isOpen} = context;
  const finish = () => rep.mutate.updateSection({
    survey_id: survey.survey_id, section_id: section.id,
    completed_at: section.completed_at ? null : new Date().toISOString(), completed_by: context.session.user_id,
  });
  const name = h('input', {id: 'element-name', autocomplete: 'off', placeholder: 'Name of the element', 'aria-label': 'Name of the element'});
  const form = h('form', {class: 'new', hidden: true, onsubmit: event => {
    event.preventDefault();
    if (!name.value.trim()) return;
    rep.mutate.createElement({survey_id: survey.survey_id, section_id: section.id, element_id: crypto.randomUUID(), name: name.value.trim()});
  }}, name, h('button', {class: 'btn'}, 'Add'));
  const left = open ? `${plural(open, 'element')} ${open === 1 ? 'is' : 'are'} still open. You can mark the section done later.`
    : section.completed_at ? `Marked done at ${clock(section.completed_at)}.` : 'Nothing is open.';
  return {title: `${section.name}, ${survey.title}`, back: [survey.title, `#/s/${survey.survey_id}`],
    rail: h('nav', {class: 'rail', 'aria-label': 'Sections'}, h('ol', {class: 'secs'}, sections.map(each => sectionRow(each, survey, section.id)))),
    content: [
      h('div', {class: 'intro'}, h('p', {class: 'muted small'}, `Section ${at} of ${sections.length}`), h('h1', {}, section.name)),
      ...section.elements.map((element, number) => elementCard(element, phrases, {...context, survey, isOpen: isOpen(element.id, number === 0)})),
      h('div', {class: 'foot'},
        h('button', {class: 'btn', type: 'button', onclick: () => { form.hidden = false; name.focus(); }}, 'Add element'),
        h('button', {class: 'btn primary', type: 'button', onclick: finish}, section.completed_at ? 'Open the section again' : 'Mark section done'),
        form, h('p', {class: 'hint'}, left)),
    ]};
}

function elementCard(element, phrases, context) {
  const {rep, survey, isOpen, onToggle} = context;
  const key = {survey_id: survey.survey_id, element_id: element.id};
  const update = changes => rep.mutate.updateElement({...key, ...changes});
  const state = isDone(element) ? badge(element.condition) : h('span', {class: 'badge none'}, 'Open');
  const fallback = isDone(element) ? null : h('span', {class: 'small muted'}, 'Not started');
  return h('details', {class: 'el', id: element.id, open: isOpen, 'data-key': element.id, ontoggle: event => onToggle(element.id, event.target.open)},
    h('summary', {}, h('span', {class: 'el-name'}, element.name, fallback), state),
    h('form', {class: 'el-body', onsubmit: event => event.preventDefault()},
      chooser(element, condition => update({condition})),
      phrases.length ? defects(element, phrases, update) : null,
      element.components.length ? components(element, survey, rep) : null,
      notes(element, update, context),
      photoList('element', element, survey.survey_id, context)));
}

function chooser(element, choose) {
  return h('fieldset', {}, h('legend', {}, 'Condition'), h('div', {class: 'choose'}, CHOICES.map(([kind, value]) =>
    h('label', {class: kind},
      h('input', {type: 'radio', name: `condition-${element.id}`, value, id: `${element.id}-${kind}`,
        checked: element.condition === value || (value === 'Good' && element.condition === 'Excellent'), onchange: () => choose(value)}),
      h('span', {class: `badge ${kind}`}, value)))));
}

function defects(element, phrases, update) {
  const isChosen = phrase => element.defects.includes(phrase.phrase_id);
  const shown = [...phrases.filter(isChosen), ...phrases.filter(each => !isChosen(each))];
  const toggle = (phrase, on) => update({
    defects: on ? [...element.defects, phrase.phrase_id] : element.defects.filter(each => each !== phrase.phrase_id)});
  return h('fieldset', {class: 'defects'},
    h('legend', {}, 'Defects ', h('span', {class: 'hint'}, `${element.defects.length} chosen`)),
    shown.map(phrase => h('label', {class: 'phrase'},
      h('input', {type: 'checkbox', id: `${element.id}-${phrase.phrase_id}`, checked: isChosen(phrase), onchange: event => toggle(phrase, event.target.checked)}),
      h('span', {}, h('b', {}, phrase.name), isChosen(phrase) ? h('span', {class: 'small muted'}, phrase.text) : null))));
}

function components(element, survey, rep) {
  const choose = (component, condition) => rep.mutate.updateComponent({
    survey_id: survey.survey_id, component_id: component.id, condition});
  return h('fieldset', {class: 'comps'}, h('legend', {}, 'Components'), element.components.map(component => {
    const material = component.material === 'Unknown' ? 'Material not chosen yet' : component.material;
    const age = component.age && component.age !== 'Unknown' ? `, ${component.age}` : '';
    return h('div', {class: 'line'}, h('span', {}, h('b', {}, component.name), h('span', {class: 'small muted'}, material + age)),
      h('select', {'aria-label': `Condition of ${component.name}`, id: component.id, onchange: event => choose(component, event.target.value)},
        ['Good', 'Fair', 'Poor', 'N/A'].map(value => h('option', {selected: component.condition === value}, value))));
  }));
}

function notes(element, update, {keptAt, onKept}) {
  let timer = null;
  const kept = keptAt.get(element.id);
  const hint = h('p', {class: 'hint'}, kept ? ['Kept on this device at ', h('time', {}, clock(kept))] : 'Kept on this device as you type');
  const area = h('textarea', {id: `notes-${element.id}`, 'data-field': 'notes'}, element.notes);
  const keep = () => {
    clearTimeout(timer);
    timer = null;
    if (area.value === area.dataset.sent) return;
    area.dataset.sent = area.value;
    onKept(element.id);
    update({notes: area.value});
  };
  area.dataset.sent = element.notes;
  area.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(keep, TYPING_PAUSE_MS); });
  area.addEventListener('blur', keep);
  return h('div', {class: 'field'}, h('label', {for: `notes-${element.id}`}, 'Notes'), area, hint);
}
