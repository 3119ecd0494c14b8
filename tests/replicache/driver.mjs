// Runs real Replicache clients for the tests: reads commands as lines of JSON, and replies with lines of JSON.
//
// Every client has its own network, which the tests switch: "online", "offline" (no request leaves),
// "deaf" (a request reaches the server, its reply is lost) or a number (that status, without the server).
import {createInterface} from 'node:readline';
import {setTimeout as pause} from 'node:timers/promises';

const {ReplicacheImpl} = await import(process.argv[2]);
const POLL_MS = 5;
const clients = new Map();
const send = globalThis.fetch;

/** Mutators of the to-do list. The server has the same names, without `surprise`. */
const base = {
  async createTodo(tx, {id, text = '', count = 0}) {
    if (!(await tx.has(`todo/${id}`))) await tx.set(`todo/${id}`, {todo_id: id, text, count});
  },
  async renameTodo(tx, {id, text}) {
    const todo = await tx.get(`todo/${id}`);
    if (todo) await tx.set(`todo/${id}`, {...todo, text});
  },
  async addTo(tx, {id, amount = 1}) {
    const todo = await tx.get(`todo/${id}`);
    if (todo) await tx.set(`todo/${id}`, {...todo, count: todo.count + amount});
  },
  async transfer(tx, {from, to, amount = 1}) {
    await base.addTo(tx, {id: from, amount: -amount});
    await base.addTo(tx, {id: to, amount});
  },
  async deleteTodo(tx, {id}) {
    await tx.del(`todo/${id}`);
  },
  async deleteMany(tx, {ids}) {
    for (const id of ids) await tx.del(`todo/${id}`);
  },
  async surprise(tx, {id}) {
    await tx.set(`todo/${id}`, {todo_id: id, text: 'unknown to the server', count: 0});
  },
};
const MUTATORS = {base, newer: {...base, async archiveTodo(tx, {id}) { await tx.del(`todo/${id}`); }}};

/** The client that a request belongs to, by the id that Replicache puts into a header. */
function clientOf(request) {
  const id = request.headers.get('X-Replicache-RequestID') ?? '';
  return [...clients.values()].find(each => id.startsWith(each.rep.clientID));
}

globalThis.fetch = async (input, init) => {
  const request = new Request(input, init);
  const client = clientOf(request);
  if (!client) throw new TypeError('no client');
  const text = await request.clone().text();
  const entry = {
    path: new URL(request.url).pathname, headers: Object.fromEntries(request.headers), bytes: text.length,
    body: text.length < 100_000 ? JSON.parse(text) : {mutations: {length: JSON.parse(text).mutations?.length}},
    status: null, reply: null,
  };
  client.log.push(entry);
  const network = client.network;
  if (network === 'offline') throw new TypeError('offline');
  if (typeof network === 'number') {
    entry.status = network;
    return new Response('', {status: network});
  }
  const reply = await send(request);
  const copy = await reply.clone().text();
  entry.status = reply.status;
  entry.reply = copy.length < 100_000 && copy.startsWith('{') ? JSON.parse(copy) : {length: copy.length};
  if (network === 'deaf') throw new TypeError('the reply was lost');
  return reply;
};

function open({client, name, server, auth, mutators = 'base', schemaVersion = '1', recovery = false, ...more}) {
  const made = {network: more.network ?? 'online', log: [], events: []};
  made.rep = new ReplicacheImpl(
    {
      name, auth, schemaVersion, kvStore: 'mem', pullInterval: null, pushDelay: more.pushDelay ?? 0,
      pushURL: `${server}/replicache/push`, pullURL: `${server}/replicache/pull`,
      mutators: MUTATORS[mutators], logLevel: 'error',
      requestOptions: {minDelayMs: 1, maxDelayMs: more.maxDelayMs ?? 20},
      logSinks: [{log: (level, _, ...words) => made.events.push(`${level}: ${words.map(String).join(' ')}`)}],
    },
    {enableMutationRecovery: recovery, enablePullAndPushInOpen: more.pullInOpen ?? false},
  );
  made.rep.onClientStateNotFound = () => made.events.push('ClientStateNotFound');
  made.rep.onUpdateNeeded = reason => made.events.push(`UpdateNeeded ${reason.type} ${reason.versionType ?? ''}`.trim());
  made.rep.getAuth = () => {
    made.events.push('getAuth');
    return made.nextAuth ?? null;
  };
  clients.set(client, made);
}

const pending = async rep => (await rep.experimentalPendingMutations()).length;

/** Push and pull until the server has confirmed everything; errors are retried, as the client does. */
async function settle(rep, isDone = async () => (await pending(rep)) === 0) {
  for (;;) {
    await rep.pull({now: true}).catch(() => undefined);
    if (await isDone()) return;
    await rep.push({now: true}).catch(() => undefined);
    await pause(POLL_MS);
  }
}

const commands = {
  async open(command) {
    open(command);
    const {rep} = clients.get(command.client);
    return {clientID: rep.clientID, groupID: await rep.clientGroupID};
  },
  async mutate({client, mutations}) {
    const {rep} = clients.get(client);
    for (const [name, args] of mutations) await rep.mutate[name](args);
  },
  async push({client}) {
    return await clients.get(client).rep.push({now: true}).then(() => 'done', error => `failed: ${error}`);
  },
  async pull({client}) {
    return await clients.get(client).rep.pull({now: true}).then(() => 'done', error => `failed: ${error}`);
  },
  async settle({client}) {
    await settle(clients.get(client).rep);
  },
  async read({client, prefix = ''}) {
    return await clients.get(client).rep.query(async tx =>
      Object.fromEntries(await tx.scan({prefix}).entries().toArray()));
  },
  async pending({client}) {
    return await pending(clients.get(client).rep);
  },
  async persist({client}) {
    await clients.get(client).rep.persist();
  },
  async network({client, mode}) {
    clients.get(client).network = mode;
  },
  async auth({client, auth, next}) {
    const found = clients.get(client);
    if (auth !== undefined) found.rep.auth = auth;
    if (next !== undefined) found.nextAuth = next;
  },
  /** Point a client to another address, as of a server that started again. */
  async move({client, server}) {
    const {rep} = clients.get(client);
    rep.pushURL = `${server}/replicache/push`;
    rep.pullURL = `${server}/replicache/pull`;
  },
  async log({client}) {
    return clients.get(client).log.splice(0);
  },
  async events({client}) {
    return clients.get(client).events.splice(0);
  },
  async close({client}) {
    const found = clients.get(client);
    clients.delete(client);
    await found.rep.close();
  },
  /**
   * Many clients at once, each with its mutations in order; returns when all of them are confirmed.
   * `pulls` are clients that pull all the time; the sum of the counts that each of them saw is returned.
   */
  async storm({plans, pulls = []}) {
    const busy = plans.map(async ({client, mutations}) => {
      const {rep} = clients.get(client);
      for (const [name, args] of mutations) {
        await rep.mutate[name](args);
        await pause(Math.random() * 3);
      }
      await settle(rep);
    });
    let isRunning = true;
    const totals = new Set();
    const watching = pulls.map(async client => {
      const {rep} = clients.get(client);
      const look = async () => {
        await rep.pull({now: true}).catch(() => undefined);
        const counts = await rep.query(tx => tx.scan({prefix: 'todo/'}).values().toArray());
        totals.add(counts.reduce((sum, each) => sum + each.count, 0));
      };
      while (isRunning) {
        await look();
        await pause(POLL_MS);
      }
      await look();
    });
    await Promise.all(busy);
    isRunning = false;
    await Promise.all(watching);
    return {totals: [...totals]};
  },
};

process.on('unhandledRejection', error => process.stderr.write(`${error?.stack ?? error}\n`));
for await (const line of createInterface({input: process.stdin})) {
  const command = JSON.parse(line);
  commands[command.do](command).then(
    value => process.stdout.write(`${JSON.stringify({number: command.number, value: value ?? null})}\n`),
    error => process.stdout.write(`${JSON.stringify({number: command.number, error: String(error?.stack ?? error)})}\n`),
  );
}
process.exit(0);
