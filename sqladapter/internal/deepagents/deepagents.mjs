// Drives @deepagents/context on a database. Arguments: the folder that has the package,
// the database as JSON, and what to do. Prints one JSON document.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, database, what, ...rest] = process.argv.slice(2);
const entry = createRequire(modules + '/').resolve('@deepagents/context');
const { ContextEngine, PostgresContextStore, SqliteContextStore, XmlRenderer, user, assistant, role } = await import(pathToFileURL(entry).href);
const { file, ...postgres } = JSON.parse(database);
const store = file ? new SqliteContextStore(file) : new PostgresContextStore(postgres);
if (!file) await store.initialize();
const engineOf = (chatId, userId) => new ContextEngine({ store, chatId, userId });

// Everything that the package says about a chat.
async function dump(chatId) {
  const branches = await store.listBranches(chatId);
  const chains = {};
  for (const b of branches) chains[b.name] = b.headMessageId ? await store.getMessageChain(b.headMessageId) : [];
  return {
    chat: await store.getChat(chatId),
    branches,
    chains,
    checkpoints: await store.listCheckpoints(chatId),
    graph: await store.getGraph(chatId),
  };
}

const found = async (chatId, query) => (await store.searchMessages(chatId, query)).map((r) => r.message.id);

const actions = {
  // A chat with a branch made by rewinding, a checkpoint, and a tool call.
  async write(chatId) {
    const e = engineOf(chatId, 'ada');
    e.set(role('You are brief.'), user('Where do herons nest?'));
    const first = await e.save();
    e.set(assistant('In tall trees near water.'));
    await e.save();
    await e.checkpoint('nests');
    e.set(user('And storks, on chimneys?'));
    e.set(
      assistant({
        id: 'tool-turn',
        role: 'assistant',
        parts: [
          { type: 'text', text: 'Looking it up.' },
          { type: 'tool-lookup', toolCallId: 'c1', state: 'output-available', input: { q: 'stork' }, output: { place: 'belfry' } },
        ],
      }),
    );
    await e.save();
    await e.rewind(first.headMessageId);
    e.set(assistant('Ground nests happen too, “rarely” \u{1F426}.'));
    await e.save();
    await e.updateChat({ title: 'Birds', metadata: { nested: { k: 'v' }, n: 1 } });
    return dump(chatId);
  },
  dump,
  async extend(chatId, userId, text) {
    const e = engineOf(chatId, userId);
    const before = await e.resolve({ renderer: new XmlRenderer() });
    e.set(user(text));
    const saved = await e.save();
    return { before: before.messages.map((m) => m.id), branch: e.branch, head: saved.headMessageId, ...(await dump(chatId)) };
  },
  // Writes a message that may be there already, as the package does when it fills one.
  async fill(id, text) {
    const m = await store.getMessage(id);
    m.data = { ...m.data, parts: [{ type: 'text', text }] };
    await store.addMessage(m);
    return store.getMessage(id);
  },
  async search(chatId, ...queries) {
    const all = {};
    for (const q of queries) all[q] = await found(chatId, q);
    return all;
  },
};

console.log(JSON.stringify(await actions[what](...rest)));
if (!file) await store.close();
