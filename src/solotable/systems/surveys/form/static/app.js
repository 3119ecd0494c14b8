// The form: opens the session and the client, then shows the page that the address names.
import {openClient} from './client.js';
import {h, plural} from './dom.js';
import {readPhrases, readRejected, readSurvey, readSurveys} from './model.js';
import {sectionPage} from './pages/section.js';
import {sendingPage} from './pages/sending.js';
import {surveyPage, surveysPage} from './pages/survey.js';
import {PhotoQueue} from './photos.js';
import {NoSession, openSession} from './session.js';

const app = document.getElementById('app');
const mark = document.getElementById('mark');

class Form {
  #opened = new Map();
  #keptAt = new Map();
  #page = '';
  #isDrawing = false;
  #isStale = false;

  constructor(session, rep) {
    this.session = session;
    this.rep = rep;
    this.isOnline = navigator.onLine;
    this.photos = new PhotoQueue(session, rep, () => this.draw());
  }

  async start() {
    // Before the client has opened its store, nothing can be read.
    await this.rep.clientGroupID;
    await this.photos.open();
    this.rep.onOnlineChange = isOnline => { this.isOnline = isOnline; this.draw(); };
    this.rep.onSync = () => this.draw();
    this.rep.subscribe(async tx => await tx.scan().entries().toArray(), {onData: () => this.draw()});
    addEventListener('hashchange', () => this.draw());
    addEventListener('online', () => {
      // If the server is not there in spite of it, the client reports it.
      this.isOnline = true;
      this.rep.push({now: true}).catch(() => undefined);
      this.rep.pull({now: true}).catch(() => undefined);
      this.draw();
    });
    addEventListener('offline', () => { this.isOnline = false; this.draw(); });
    await this.draw();
  }

  /** Draw the page again; calls while it draws become one more drawing. */
  async draw() {
    if (this.#isDrawing) {
      this.#isStale = true;
      return;
    }
    this.#isDrawing = true;
    try {
      do {
        this.#isStale = false;
        await this.#draw();
      } while (this.#isStale);
    } finally {
      this.#isDrawing = false;
    }
  }

  async #draw() {
    const pending = await this.rep.experimentalPendingMutations();
    const page = await this.rep.query(async tx => {
      const rejected = await readRejected(tx);
      const status = this.#status(pending.length, rejected.length);
      const context = {
        rep: this.rep, session: this.session, status, photos: this.photos, keptAt: this.#keptAt,
        onKept: id => this.#keptAt.set(id, Date.now()),
        isOpen: (id, isFirst) => this.#opened.get(id) ?? isFirst,
        onToggle: (id, isOpen) => this.#opened.set(id, isOpen),
      };
      return {status, ...(await this.#choose(tx, context, pending, rejected))};
    });
    this.#show(page);
  }

  async #choose(tx, context, pending, rejected) {
    const [, place, survey_id, section_id] = location.hash.match(/^#\/([a-z]*)\/?([^/]*)\/?([^/]*)/) ?? [];
    if (place === 'sending') {
      const known = new Map();
      for (const [key, value] of await tx.scan().entries().toArray()) known.set(key.split('/').at(-1), value.name ?? value.title);
      const names = args => known.get(args.component_id ?? args.element_id ?? args.section_id ?? args.part_id ?? args.survey_id) ?? 'A part';
      return sendingPage(pending, rejected, this.photos.waiting, {...context, names});
    }
    if (place === 's') {
      const tree = await readSurvey(tx, decodeURIComponent(survey_id));
      if (!tree) return gone();
      const section = tree.sections.find(each => each.id === decodeURIComponent(section_id));
      if (section) return sectionPage(tree, section, await readPhrases(tx), context);
      return section_id ? gone() : surveyPage(tree, context);
    }
    return surveysPage(await readSurveys(tx), context);
  }

  #status(pending, rejected) {
    const photos = this.photos.waiting.length;
    const shared = {pending, photos, isOnline: this.isOnline};
    const count = pending + photos;
    if (!this.isOnline) return {...shared, kind: 'offline', text: count ? `Offline, ${count} kept` : 'Offline'};
    if (count) return {...shared, kind: 'pending', text: `${count} to send`};
    if (rejected) return {...shared, kind: 'conflict', text: `${rejected} not sent`};
    return {...shared, kind: 'synced', text: 'Synced'};
  }

  #show({title, back, rail, content, status}) {
    document.title = title;
    const link = document.getElementById('back');
    link.hidden = !back;
    if (back) {
      document.getElementById('back-to').textContent = back[0];
      link.setAttribute('href', back[1]);
    }
    mark.className = `sync ${status.kind}`;
    if (mark.textContent !== status.text) mark.textContent = status.text;
    const main = h('main', {id: 'content', class: 'page', tabindex: '-1'}, content);
    const isNew = this.#page !== location.hash;
    this.#page = location.hash;
    const focused = keepFocus(isNew);
    app.className = rail ? 'two-col' : '';
    app.replaceChildren(...[rail, main].filter(Boolean));
    focused();
    if (isNew) scrollTo(0, 0);
  }
}

/** Remember where the caret is, and what is typed but not yet kept; put both back after a drawing. */
function keepFocus(isNew) {
  const active = document.activeElement;
  if (isNew || !active?.id || !app.contains(active)) return () => undefined;
  const {id, value, selectionStart, selectionEnd} = active;
  const isTyping = active.matches('textarea, input:not([type=radio]):not([type=checkbox]):not([type=file])');
  // A text that is not typed in here may be changed by another user.
  const isUnsent = isTyping && active.value !== (active.dataset.sent ?? '');
  const sent = active.dataset.sent;
  if (isUnsent && sent !== undefined) active.dataset.sent = active.value;
  const isShown = !active.closest('form.new')?.hidden;
  return () => {
    const found = document.getElementById(id);
    if (!found) return;
    const form = found.closest('form.new');
    if (form && isShown && found.closest('.foot')) form.hidden = false;
    if (isUnsent && found.value !== value) {
      found.value = value;
      found.dispatchEvent(new Event('input'));
    }
    found.focus({preventScroll: true});
    if (isTyping && selectionStart !== null && found.setSelectionRange) found.setSelectionRange(selectionStart, selectionEnd);
  };
}

function gone() {
  return {title: 'Not here', back: ['Surveys', '#/'], content: [h('div', {class: 'empty'},
    h('p', {}, h('b', {}, 'This survey is not on this device')),
    h('p', {class: 'muted'}, 'It was deleted, or it is no longer shared with you. Your other surveys are unchanged.'),
    h('a', {class: 'btn', href: '#/'}, 'Show my surveys'))]};
}

async function main() {
  try {
    if ('serviceWorker' in navigator) navigator.serviceWorker.register('worker.js').catch(() => undefined);
    const session = await openSession();
    const rep = openClient(session);
    globalThis.form = new Form(session, rep);
    await globalThis.form.start();
  } catch (error) {
    if (!(error instanceof NoSession)) throw error;
    mark.hidden = true;
    app.replaceChildren(h('main', {id: 'content', class: 'page'}, h('div', {class: 'note bad', role: 'alert'}, h('b', {}, 'The form cannot open.'), h('p', {class: 'small'}, error.message))));
  }
}

await main();
