// Who works here: the key from the link (`#key=...`), and what the server says about it. Both are kept, so that
// the form opens without a connection. A demo keeps its key in the browser; a product would sign in.

const KEPT = 'survey-form-session';

export class NoSession extends Error {}

export async function openSession() {
  const given = new URLSearchParams(location.hash.slice(1)).get('key');
  if (given) history.replaceState(null, '', `${location.pathname}#/`);
  const kept = JSON.parse(localStorage.getItem(KEPT) ?? 'null');
  const key = given ?? kept?.key;
  if (!key) throw new NoSession('Open the link that the demo printed: it has your key.');
  if (kept?.key === key && kept.user_id) {
    refresh(key).catch(() => undefined);
    return kept;
  }
  try {
    return await refresh(key);
  } catch (error) {
    if (error instanceof NoSession) throw error;
    throw new NoSession('The first visit needs a connection. Later ones do not.');
  }
}

async function refresh(key) {
  const reply = await fetch('../sync', {headers: {'x-api-key': key}});
  if (reply.status === 401) throw new NoSession('This key has ended. Open the link that the demo printed last.');
  if (!reply.ok) throw new Error(`status ${reply.status}`);
  const {tenant_id, user_id} = await reply.json();
  const session = {key, tenant_id, user_id};
  localStorage.setItem(KEPT, JSON.stringify(session));
  return session;
}
