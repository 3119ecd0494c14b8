// Keeps the files of the form, so that it opens without a connection. Data is Replicache's, not ours.
const CACHE = 'survey-form-1';
const SHELL = ['./', 'base.css', 'form.css', 'app.js'];

addEventListener('install', event => {
  event.waitUntil(caches.open(CACHE).then(cache => cache.addAll(SHELL)).then(() => skipWaiting()));
});
addEventListener('activate', event => {
  const isOld = name => name.startsWith('survey-form-') && name !== CACHE;
  const clean = caches.keys().then(names => Promise.all(names.filter(isOld).map(name => caches.delete(name))));
  event.waitUntil(clean.then(() => clients.claim()));
});
// The newest files from the server; if it cannot be reached or fails, those of the last visit.
addEventListener('fetch', event => {
  const {request} = event;
  if (request.method !== 'GET' || !request.url.startsWith(registration.scope)) return;
  event.respondWith((async () => {
    const cache = await caches.open(CACHE);
    const reply = await fetch(request).catch(() => Response.error());
    if (reply.ok) await cache.put(request, reply.clone());
    // An error of the network has status 0.
    const isAnswer = reply.status > 0 && reply.status < 500;
    return isAnswer ? reply : await cache.match(request, {ignoreSearch: true}) ?? reply;
  })());
});
