// Runs @deepagents/context for the benchmark: a request a line on standard input, an
// answer a line on standard output. It must be started where the package is found.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { DatabaseSync } from 'node:sqlite';

const [modules, path] = process.argv.slice(2);
const entry = createRequire(modules + '/').resolve('@deepagents/context');
const { ContextEngine, SqliteContextStore, XmlRenderer, user, assistant } = await import(pathToFileURL(entry).href);

const store = new SqliteContextStore(path);
const histories = [];
let messages = 0;

const message = (text) => (messages++ % 2 ? assistant(text) : user(text));

async function on(id) {
  const h = histories[id];
  if (h.engine.branch !== h.branch) await h.engine.switchBranch(h.branch);
  return h;
}

async function forkOf(h) {
  const b = await h.engine.btw();
  return histories.push({ engine: h.engine, chat: h.chat, branch: b.name }) - 1;
}

const operations = {
  async start() {
    const chat = 'chat-' + histories.length;
    const engine = new ContextEngine({ store, chatId: chat, userId: 'bench' });
    engine.set(user('begin'));
    await engine.save();
    return { history: histories.push({ engine, chat, branch: engine.branch }) - 1 };
  },
  // Rows are written as the package writes them, but in one transaction.
  async load({ history, texts }) {
    const h = await on(history);
    const db = new DatabaseSync(path);
    db.exec('PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE');
    const branch = db.prepare('SELECT id, headMessageId FROM branches WHERE chatId = ? AND name = ?').get(h.chat, h.branch);
    let parent = branch.headMessageId;
    const row = db.prepare('INSERT INTO messages (id, chatId, parentId, name, type, data, createdAt) VALUES (?, ?, ?, ?, ?, ?, ?)');
    const text = db.prepare('INSERT INTO messages_fts (messageId, chatId, name, content) VALUES (?, ?, ?, ?)');
    for (const t of texts) {
      const id = 'loaded-' + messages++;
      row.run(id, h.chat, parent, 'user', 'message', JSON.stringify({ id, role: 'user', parts: [{ type: 'text', text: t }] }), Date.now());
      text.run(id, h.chat, 'user', t);
      parent = id;
    }
    db.prepare('UPDATE branches SET headMessageId = ? WHERE id = ?').run(parent, branch.id);
    db.exec('COMMIT');
    db.close();
    // The engine learns of the new head when it is opened.
    const engine = new ContextEngine({ store, chatId: h.chat, userId: 'bench' });
    await engine.switchBranch(h.branch);
    h.engine = engine;
    return {};
  },
  async extend({ history, texts }) {
    const h = await on(history);
    for (const t of texts) {
      h.engine.set(message(t));
      await h.engine.save();
    }
    return {};
  },
  async fork({ history, times }) {
    const h = await on(history);
    let id;
    for (let i = 0; i < times; i++) id = await forkOf(h);
    return { history: id };
  },
  async read({ history }) {
    const h = await on(history);
    const branch = await store.getBranch(h.chat, h.branch);
    return { messages: (await store.getMessageChain(branch.headMessageId)).length };
  },
};

// Operations whose processor time is measured, on a chat that nothing else uses.
const measured = {
  async save(h, i) {
    h.engine.set(user('what was said in number ' + messages++));
    await h.engine.save();
  },
  aside: (h) => h.engine.btw(),
  rewind: (h) => h.engine.rewind(h.middle),
  resolve: (h) => h.engine.resolve({ renderer: new XmlRenderer() }),
  graph: (h) => store.getGraph(h.chat),
  search: (h, i, words) => store.searchMessages(h.chat, words[(7 * i) % words.length] + ' ' + words[(11 * i + 3) % words.length]),
  async chain(h) {
    const branch = await store.getBranch(h.chat, h.engine.branch);
    await store.getMessageChain(branch.headMessageId);
  },
  delete: (h) => store.deleteChat(h.chat),
};

operations.measure = async ({ history, name, times, words }) => {
  const h = histories[history];
  if (name === 'rewind') {
    const branch = await store.getBranch(h.chat, h.branch);
    const chain = await store.getMessageChain(branch.headMessageId);
    h.middle = chain[chain.length >> 1].id;
  }
  globalThis.gc?.();
  const began = process.cpuUsage();
  for (let i = 0; i < times; i++) await measured[name](h, i, words);
  const used = process.cpuUsage(began);
  return { cpu: (used.user + used.system) / 1e6 };
};

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const request = JSON.parse(line);
    answer = await operations[request.op](request);
  } catch (error) {
    answer = { error: String(error?.stack ?? error) };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}
