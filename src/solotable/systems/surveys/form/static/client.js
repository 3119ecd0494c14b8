// One Replicache for a user of a tenant: its store, its requests, and pokes that make it pull.
import {Replicache} from 'replicache';
import {mutators} from './mutators.js';

const POKE_PAUSE_MS = 1000;
const PULL_INTERVAL_MS = 60_000;

export function openClient({key, tenant_id, user_id}) {
  const headers = {'x-api-key': key, 'content-type': 'application/json'};
  const post = async (path, body, requestID) => {
    const reply = await fetch(`../replicache/${path}`, {
      method: 'POST', body: JSON.stringify(body), headers: {...headers, 'X-Replicache-RequestID': requestID},
    });
    const info = {httpStatusCode: reply.status, errorMessage: reply.status === 200 ? '' : await reply.text()};
    return {info, body: reply.status === 200 ? await reply.json().catch(() => undefined) : undefined};
  };
  const rep = new Replicache({
    // Tabs with this name share their data: the tenant and the user must be in it.
    name: `${tenant_id}/${user_id}`,
    schemaVersion: '1', mutators, pullInterval: PULL_INTERVAL_MS, logLevel: 'error',
    pusher: async (body, requestID) => {
      const {info, body: response} = await post('push', body, requestID);
      return {httpRequestInfo: info, response: response && 'error' in response ? response : undefined};
    },
    puller: async (body, requestID) => {
      const {info, body: response} = await post('pull', body, requestID);
      return {httpRequestInfo: info, response};
    },
  });
  listen(rep, headers);
  return rep;
}

/** Pull whenever the server pokes. EventSource cannot send a key, so the stream is read here. */
async function listen(rep, headers) {
  while (!rep.closed) {
    try {
      const reply = await fetch('../replicache/poke', {headers});
      if (reply.ok) {
        rep.pull({now: true}).catch(() => undefined);
        for await (const text of reply.body.pipeThrough(new TextDecoderStream())) {
          if (text.includes('data:')) rep.pull({now: true}).catch(() => undefined);
        }
      }
    } catch {
      // No connection: the next attempt comes soon.
    }
    await new Promise(wake => {
      const timer = setTimeout(wake, POKE_PAUSE_MS);
      addEventListener('online', () => { clearTimeout(timer); wake(); }, {once: true});
    });
  }
}
