// Photos: shown from the server, kept here until they are uploaded, then referred to by a mutation. Photos go
// after texts and can fail alone.
import {h} from './dom.js';

const STORE = 'photos';
const shown = new Map();

function database(session) {
  return new Promise((done, fail) => {
    const request = indexedDB.open(`survey-form-photos/${session.tenant_id}/${session.user_id}`, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, {keyPath: 'id'});
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });
}

const finished = request => new Promise((done, fail) => {
  request.onsuccess = () => done(request.result);
  request.onerror = () => fail(request.error);
});

export class PhotoQueue {
  constructor(session, rep, onChange) {
    Object.assign(this, {session, rep, onChange, waiting: [], isBusy: false});
  }

  async open() {
    this.db = await database(this.session);
    this.waiting = await finished(this.db.transaction(STORE).objectStore(STORE).getAll());
    addEventListener('online', () => this.send());
    this.send();
  }

  async add(file, place) {
    const photo = {id: crypto.randomUUID(), name: file.name || 'Photo', mime: file.type, size: file.size, blob: file, ...place};
    await this.#keep(photo);
    this.waiting.push(photo);
    this.onChange();
    this.send();
  }

  async send() {
    if (this.isBusy) return;
    this.isBusy = true;
    try {
      for (const photo of [...this.waiting]) {
        try {
          await this.#upload(photo);
        } catch (error) {
          // No connection is not an error of the photo.
          if (error instanceof TypeError) break;
          photo.error = error.message;
          await this.#keep(photo);
        }
        this.onChange();
      }
    } finally {
      this.isBusy = false;
    }
  }

  async #upload(photo) {
    const headers = {'x-api-key': this.session.key};
    const bytes = await photo.blob.arrayBuffer();
    const digest = [...new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))].map(each => each.toString(16).padStart(2, '0')).join('');
    const draft = {image_id: photo.id, sha256: digest, name: photo.name.slice(0, 100), mime: photo.mime, size: photo.size};
    const registered = await checked(fetch('../images', {method: 'POST', body: JSON.stringify(draft), headers: {...headers, 'content-type': 'application/json'}}));
    const {image, is_new} = await registered.json();
    if (is_new) await checked(fetch(`../images/${image.image_id}/bytes`, {method: 'PUT', body: bytes, headers}));
    const {survey_id, kind, part_id} = photo;
    await this.rep.mutate.addPhoto({survey_id, kind, part_id, image_id: image.image_id});
    await finished(this.db.transaction(STORE, 'readwrite').objectStore(STORE).delete(photo.id));
    this.waiting = this.waiting.filter(each => each.id !== photo.id);
  }

  async #keep(photo) {
    await finished(this.db.transaction(STORE, 'readwrite').objectStore(STORE).put(photo));
  }
}

async function checked(sent) {
  const reply = await sent;
  if (!reply.ok) throw new Error((await reply.json().catch(() => ({}))).detail ?? `status ${reply.status}`);
  return reply;
}

/** An image of the server; a key cannot be sent with <img>, so its bytes are fetched. */
function picture(image_id, session) {
  const img = h('img', {width: 640, height: 480, alt: 'Photo'});
  if (shown.has(image_id)) img.src = shown.get(image_id);
  else {
    fetch(`../images/${image_id}/bytes?thumbnail=true`, {headers: {'x-api-key': session.key}})
      .then(async reply => {
        if (!reply.ok) return;
        shown.set(image_id, URL.createObjectURL(await reply.blob()));
        img.src = shown.get(image_id);
      })
      .catch(() => { img.alt = 'Photo, shown with a connection'; });
  }
  return img;
}

export function photoList(kind, part, survey_id, {session, photos}) {
  const waiting = photos.waiting.filter(each => each.part_id === part.id);
  const items = part.photos.map((image_id, at) => h('li', {'data-image': image_id}, picture(image_id, session), h('span', {class: 'small'}, `Photo ${at + 1}`)));
  for (const each of waiting) {
    const img = h('img', {width: 640, height: 480, alt: each.name, src: URL.createObjectURL(each.blob)});
    const text = each.error
      ? h('span', {class: 'small'}, 'Not sent. ', h('button', {type: 'button', onclick: () => { each.error = null; photos.send(); }}, 'Retry'))
      : h('span', {class: 'small'}, 'Waiting to send');
    items.push(h('li', {class: each.error ? 'fail' : 'wait'}, img, text));
  }
  const input = h('input', {class: 'sr', type: 'file', accept: 'image/*', capture: 'environment', id: `photo-${part.id}`,
    onchange: event => [...event.target.files].forEach(file => photos.add(file, {kind, part_id: part.id, survey_id}))});
  items.push(h('li', {}, h('label', {class: 'add'}, input, h('span', {'aria-hidden': 'true'}, '+'), 'Add photo')));
  return h('fieldset', {}, h('legend', {}, 'Photos ', h('span', {class: 'hint'}, `${part.photos.length + waiting.length} of at most 50`)),
    h('ul', {class: 'pics'}, items));
}
