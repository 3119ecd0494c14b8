// What waits, and what the server refused, with its reason.
import {h, plural} from '../dom.js';

const VERBS = {create: 'new', update: 'changed', move: 'moved', delete: 'deleted', add: 'photo added', remove: 'photo removed'};

export function sendingPage(queue, rejected, photos, {rep, status, names}) {
  const mine = status.text;
  return {title: 'Sending', back: ['Surveys', '#/'], content: [
    h('div', {class: 'intro'}, h('h1', {}, 'Sending'), h('p', {class: 'muted'}, 'What the mark at the top right says now.')),
    h('ul', {class: 'states'}, h('li', {}, h('span', {class: `sync ${status.kind}`}, mine), h('p', {}, explain(status)))),
    rejected.length ? h('h2', {}, 'Not sent') : null,
    rejected.length ? h('ul', {class: 'queue'}, rejected.map(each =>
      h('li', {}, h('b', {}, each.name ?? 'A change'), h('span', {class: 'muted small'}, each.reason ?? each.code)))) : null,
    h('h2', {}, 'Waiting'),
    queue.length || photos.length
      ? h('ul', {class: 'queue'}, [
        ...queue.slice(0, 50).map(each => h('li', {}, h('b', {}, names(each.args)), h('span', {class: 'muted small'}, describe(each)))),
        queue.length > 50 ? h('li', {}, h('span', {class: 'muted small'}, `and ${plural(queue.length - 50, 'more change')}`)) : null,
        ...photos.map(each => h('li', {}, h('b', {}, `Photo “${each.name}”`), h('span', {class: 'muted small'},
          each.error ? `not sent: ${each.error}` : `${(each.size / 1e6).toFixed(1)} MB, after the texts`))),
      ].filter(Boolean))
      : h('p', {class: 'muted'}, 'Nothing waits. Everything is on the server.'),
    h('div', {class: 'foot'}, h('button', {class: 'btn', onclick: () => {
      rep.push({now: true}).catch(() => undefined);
      rep.pull({now: true}).catch(() => undefined);
    }}, 'Send now')),
  ]};
}

function describe({name, args}) {
  const [verb] = name.match(/^[a-z]+/);
  const fields = Object.keys(args).filter(each => !each.endsWith('_id') && each !== 'kind');
  return verb === 'update' ? fields.join(', ').replaceAll('_', ' ') : VERBS[verb];
}

function explain({kind, pending}) {
  if (kind === 'synced') return 'Everything is on the server.';
  if (kind === 'offline') return 'No connection. Keep working; sent later by itself.';
  if (kind === 'conflict') return 'The server refused some changes. The reasons are below; your copy shows the server’s version.';
  return `${plural(pending, 'change')} kept on this device, being sent now. You can close the page.`;
}
