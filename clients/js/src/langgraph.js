import { BaseCheckpointSaver, TASKS, WRITES_IDX_MAP, compareWritesSortKeys, maxChannelVersion, writesSortKey } from "@langchain/langgraph-checkpoint";
import { setTimeout as sleep } from "node:timers/promises";
import { ConnectionError, is } from "./errors.js";
import { Log, messageOf } from "./langgraph/log.js";
import { isListOf, isMain, listName, main, nsOf } from "./langgraph/names.js";
import { elementMessage, encode, load, textOf } from "./langgraph/values.js";

const maxLogs = 64; // that are remembered
const maxAttempts = 50;
const maxOperations = 1000; // of a batch; what is left is for the next one
const maxBroken = 3; // attempts without an answer

/**
 * A checkpoint saver of LangGraph. A thread is a thread of the store, each namespace a branch with its checkpoints. Values that did not
 * change are not stored again, and lists that grow are branches whose messages are the elements: `messages` of the graph is the
 * conversation that people see. Copying a thread is a fork.
 */
export class LineageSaver extends BaseCheckpointSaver {
  #client;
  #prefix;
  #user;
  #logs = new Map();
  #queues = new Map();

  constructor(client, { prefix = "langgraph/", user, serde } = {}) {
    super(serde);
    this.#client = client;
    this.#prefix = prefix;
    this.#user = user;
  }

  #ref(threadId) {
    return `=${this.#prefix}${threadId}`;
  }

  #log(threadId, ns) {
    const key = JSON.stringify([threadId, ns]);
    const log = this.#logs.get(key) ?? new Log(this.#client, this.#ref(threadId), ns);
    this.#logs.delete(key);
    this.#logs.set(key, log);
    if (this.#logs.size > maxLogs) this.#logs.delete(this.#logs.keys().next().value);
    return log;
  }

  async getTuple(config) {
    const { threadId, ns, id } = idsOf(config);
    if (threadId === undefined) return undefined;
    const view = await this.#log(threadId, ns).read();
    const found = await view.find(id || view.max);
    return found && this.#tuple(threadId, ns, view, found);
  }

  async *list(config, { before, limit, filter } = {}) {
    const { threadId, id } = idsOf(config);
    const ns = config.configurable?.checkpoint_ns;
    const below = before && (idsOf(before).id || undefined);
    const wanted = Object.entries(filter ?? {});
    let left = limit ?? Infinity;
    for await (const thread of threadId === undefined ? this.#threads() : [threadId]) {
      for await (const namespace of ns === undefined ? this.#namespaces(thread) : [ns]) {
        if (left <= 0) return;
        const view = await this.#log(thread, namespace).read();
        for await (const found of id ? one(await view.find(id), below) : view.all(below)) {
          const metadata = await load(this.serde, found.entry.metadata);
          if (!wanted.every(([key, value]) => same(metadata[key], value))) continue;
          if (left-- <= 0) return;
          yield await this.#tuple(thread, namespace, view, found, metadata);
        }
      }
    }
  }

  /** Yields the ids of the threads of this saver. */
  async *#threads() {
    for await (const t of this.#client.threads({ source_prefix: this.#prefix, user: this.#user })) yield t.source_id.slice(this.#prefix.length);
  }

  /** Yields the namespaces of a thread. */
  async *#namespaces(threadId) {
    try {
      for await (const b of this.#client.thread(this.#ref(threadId)).branches()) {
        const ns = nsOf(b.name);
        if (ns !== undefined) yield ns;
      }
    } catch (err) {
      if (!is(err, "not-found")) throw err;
    }
  }

  async #tuple(threadId, ns, view, { entry, writes }, metadata) {
    const configOf = (id) => ({ configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id } });
    const checkpoint = { id: entry.id, ...(await load(this.serde, entry.checkpoint)) };
    const values = await Promise.all(entry.refs.map(async ([channel, ref]) => [channel, await this.#value(view, channel, ref)]));
    checkpoint.channel_values = Object.fromEntries(values);
    if (checkpoint.v < 4 && entry.parent !== undefined) await this.#migrate(checkpoint, await view.find(entry.parent));
    const tuple = {
      config: configOf(entry.id),
      checkpoint,
      metadata: metadata ?? (await load(this.serde, entry.metadata)),
      pendingWrites: await this.#pending(writes),
    };
    if (entry.parent !== undefined) tuple.parentConfig = configOf(entry.parent);
    return tuple;
  }

  async #value(view, channel, ref) {
    if (ref.list === undefined) return load(this.serde, (await view.at(ref.at)).new.find(([name]) => name === channel)[1]);
    const { elements } = await view.list(ref.list, ref.n);
    return load(this.serde, { json: elements.slice(0, ref.n) });
  }

  /** What tasks wrote, in the order in which it is applied. Of two writes of a task at one place the first counts; of errors and interrupts the last. */
  async #pending(entries, channels) {
    const all = new Map();
    for (const e of entries) {
      e.writes.forEach(([channel, stored], i) => {
        const place = WRITES_IDX_MAP[channel] || i;
        const key = JSON.stringify([e.task, place]);
        if (place < 0 || !all.has(key)) all.set(key, { key: writesSortKey(e.path, e.task, place), task: e.task, channel, stored });
      });
    }
    const sorted = [...all.values()].sort((a, b) => compareWritesSortKeys(a.key, b.key)).filter((w) => channels?.has(w.channel) ?? true);
    return Promise.all(sorted.map(async (w) => [w.task, w.channel, await load(this.serde, w.stored)]));
  }

  /** Before version 4, what was sent to tasks was a write for the parent. */
  async #migrate(checkpoint, parent) {
    const sends = await this.#pending(parent?.writes ?? [], new Set([TASKS]));
    checkpoint.channel_values[TASKS] = sends.map(([, , value]) => value);
    checkpoint.channel_versions ??= {};
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }

  async put(config, checkpoint, metadata, newVersions) {
    const { threadId, ns, id: parentId } = idsOf(config, "put checkpoint");
    named("checkpoint_id", checkpoint.id);
    const { id, channel_values, ...rest } = checkpoint;
    const [head, meta] = await Promise.all([this.#dump(rest), this.#dump(metadata)]);
    const values = await Promise.all(Object.entries(channel_values ?? {}).map(async ([channel, value]) => [channel, await this.#dump(value)]));
    await this.#change(threadId, ns, async (view) => {
      const parent = parentId === "" ? undefined : (await view.find(parentId))?.entry;
      const entry = { ...view.header("checkpoint", id), parent: parentId || undefined, checkpoint: head.stored, metadata: meta.stored };
      const own = { own: true };
      const operations = [];
      const lists = new Map();
      const refs = [];
      const added = [];
      for (const [channel, value] of values) {
        const was = parent?.refs.find(([name]) => name === channel)?.[1];
        const isNew = newVersions !== undefined && Object.hasOwn(newVersions, channel);
        if (!isNew && (was !== undefined || !parentId)) {
          if (was !== undefined) refs.push([channel, was]);
          continue;
        }
        const ref = await this.#store(view, channel, was, value, operations, lists);
        if (ref === undefined) added.push([channel, value.stored]);
        refs.push([channel, ref ?? own]);
      }
      Object.assign(entry, { refs, new: added });
      return { entry, operations, lists };
    });
    return { configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id } };
  }

  async #dump(value) {
    return encode(await this.serde.dumpsTyped(value));
  }

  /** Finds where a value is, or adds operations that make it a list. It returns undefined for a value to be kept with the checkpoint. */
  async #store(view, channel, was, value, operations, lists) {
    if (was === undefined) return undefined;
    const array = value.stored.base64 === undefined && Array.isArray(value.stored.json) ? value.stored.json : undefined;
    if (was.list === undefined) {
      const old = (await view.at(was.at)).new.find(([name]) => name === channel)[1];
      if (textOf(old) === value.text) return was;
      if (array === undefined || !Array.isArray(old.json) || old.json.length === 0) return undefined;
      const texts = array.map((e) => JSON.stringify(e));
      if (array.length <= old.json.length || !old.json.every((e, i) => JSON.stringify(e) === texts[i])) return undefined;
      return this.#extend(view, channel, undefined, 0, array, texts, operations, lists);
    }
    if (array === undefined) return undefined;
    const list = await view.list(was.list, was.n);
    const texts = array.map((e) => JSON.stringify(e));
    let common = 0;
    while (common < Math.min(was.n, array.length) && list.texts[common] === texts[common]) common++;
    if (common === array.length) return { list: was.list, n: common };
    if (common < was.n && common < Math.max(minCommon, array.length / 2)) return undefined;
    return this.#extend(view, channel, was.list, common, array, texts, operations, lists);
  }

  /** Adds operations that put elements after the first n of a list. */
  async #extend(view, channel, from, n, array, texts, operations, lists) {
    const { ns, thread } = view.log;
    let name = from ?? (isMain(ns, channel) ? main : undefined);
    const end = name !== undefined && view.exists ? await view.endOf(name) : { tip: "empty", length: 0 };
    let tip = end.tip;
    if (name === undefined || end.length !== n) {
      const start = n === 0 ? { empty: true } : { from: `${from}:${n}` };
      name = listName(ns, channel);
      operations.push({ op: "create_branch", thread, name, ...start, switch: isMain(ns, channel) || undefined });
      tip = undefined;
    }
    operations.push({ op: "append", thread, context: name, messages: array.slice(n).map(elementMessage), if_tip: tip });
    lists.set(name, { elements: array, texts, operation: operations.length - 1 });
    return { list: name, n: array.length };
  }

  async putWrites(config, writes, taskId, taskPath = "") {
    const { threadId, ns, id } = idsOf(config, "put writes");
    if (!id) throw new TypeError('put writes: the config has no "checkpoint_id"');
    named("task_id", taskId);
    const stored = await Promise.all(writes.map(async ([channel, value]) => [channel, (await this.#dump(value)).stored]));
    await this.#change(threadId, ns, async (view) => ({
      entry: { ...view.header("writes", id), task: taskId, path: taskPath, writes: stored },
      operations: [],
      lists: new Map(),
    }));
  }

  /** Appends an entry, with what it needs, in one commit. */
  async #change(threadId, ns, build) {
    const log = this.#log(threadId, ns);
    await this.#attempts(log, async (view) => {
      const { entry, operations, lists } = await build(view);
      const first = view.exists ? [] : this.#create(threadId, log);
      const append = { op: "append", thread: log.thread, context: log.name, messages: [messageOf(entry)], if_tip: view.tip };
      const done = await this.#client.batch([...first, ...operations, append], { key: null });
      for (const list of lists.values()) list.tip = done[first.length + list.operation].tip;
      log.appended(view, done.at(-1), entry, lists);
    });
  }

  /**
   * Changes a log, again if another process was first, or if no answer came: a checkpoint that is there twice is the same, and so are writes.
   * So no key has to be kept with each change.
   */
  #attempts(log, change) {
    return this.#alone(log, async () => {
      for (let tried = 1, broken = 0; ; tried++) {
        try {
          return await change(await log.read());
        } catch (err) {
          log.forget();
          const again = is(err, "tip-moved", "exists", "conflict", "not-found") || ((err instanceof ConnectionError || is(err, "closing")) && ++broken <= maxBroken);
          if (tried === maxAttempts || !again) throw err;
          await sleep(Math.random() * 2 ** Math.min(tried, 8));
        }
      }
    });
  }

  #create(threadId, log) {
    const metadata = { framework: "langgraph", thread_id: threadId };
    return [
      { op: "create_thread", id: this.#prefix + threadId, reuse: true, user: this.#user, metadata },
      { op: "create_branch", thread: log.thread, name: log.name, empty: true },
    ];
  }

  /** Changes of a thread by this saver are one after the other. */
  async #alone(log, work) {
    const before = this.#queues.get(log.thread) ?? Promise.resolve();
    const mine = before.then(work, work);
    const settled = mine.catch(() => {});
    this.#queues.set(log.thread, settled);
    try {
      return await mine;
    } finally {
      if (this.#queues.get(log.thread) === settled) this.#queues.delete(log.thread);
    }
  }

  async deleteThread(threadId) {
    named("thread_id", threadId);
    try {
      await this.#client.thread(this.#ref(threadId)).delete();
    } catch (err) {
      if (!is(err, "not-found")) throw err;
    }
    for (const log of this.#logs.values()) if (log.thread === this.#ref(threadId)) log.forget();
  }

  /** Makes a thread with the checkpoints of another, which it shares with it. */
  async copyThread(sourceId, targetId) {
    named("thread_id", sourceId);
    named("thread_id", targetId);
    await this.#client.thread(this.#ref(sourceId)).copy({ id: this.#prefix + targetId, metadata: { framework: "langgraph", thread_id: targetId } });
  }

  /**
   * Deletes all checkpoints of threads but the latest of each namespace, with `strategy: "delete"` all of them. Checkpoints from which the
   * latest takes the values of delta channels stay. The next `lineage gc` frees the space.
   */
  async prune(threadIds, { strategy = "keep_latest" } = {}) {
    if (strategy !== "keep_latest" && strategy !== "delete") throw new TypeError(`strategy ${JSON.stringify(strategy)}: it is keep_latest or delete`);
    for (const threadId of threadIds) {
      named("thread_id", threadId);
      if (strategy === "delete") {
        await this.deleteThread(threadId);
        continue;
      }
      for (const ns of await collect(this.#namespaces(threadId))) await this.#prune(threadId, ns);
    }
  }

  async #prune(threadId, ns) {
    const log = this.#log(threadId, ns);
    const branches = await collect(this.#client.thread(log.thread).branches());
    await this.#attempts(log, async (view) => {
      const kept = await this.#needed(view);
      if (kept.length === 0) return;
      const { entries, lists } = await pruned(view, kept);
      const old = `pruned/${log.name}/${view.tip}`;
      const at = { thread: log.thread };
      const operations = [
        // Nobody has appended since.
        { ...at, op: "append", context: log.name, messages: [{ role: "pruned", text: "" }], if_tip: view.tip },
        { ...at, op: "update_branch", branch: log.name, name: old },
        { ...at, op: "create_branch", name: log.name, empty: true },
        { ...at, op: "append", context: log.name, messages: entries.map(messageOf) },
        { ...at, op: "delete_branch", branch: old },
      ];
      for (const b of branches) {
        if (isListOf(ns, b.name) && !b.active && !lists.has(b.name) && operations.length < maxOperations) operations.push({ ...at, op: "delete_branch", branch: b.name });
      }
      await this.#client.batch(operations, { key: null });
      log.forget();
    });
  }

  /** The latest checkpoint and those that its values come from, the oldest first. */
  async #needed(view) {
    const kept = [];
    const left = new Set();
    for (let found = view.max === "" ? undefined : await view.find(view.max); found !== undefined; ) {
      const { channel_versions, v } = await load(this.serde, found.entry.checkpoint);
      if (kept.length === 0) for (const channel of Object.keys(channel_versions ?? {})) left.add(channel);
      kept.unshift(found);
      for (const [channel] of found.entry.refs) left.delete(channel);
      const sends = kept.length === 1 && v < 4; // are kept with the parent
      if ((left.size === 0 && !sends) || found.entry.parent === undefined) break;
      found = await view.find(found.entry.parent);
    }
    return kept;
  }

  async getDeltaChannelHistory({ config, channels }) {
    const { threadId, ns, id } = idsOf(config);
    const found = new Map(channels.map((channel) => [channel, { writes: [] }]));
    if (threadId !== undefined && channels.length > 0) {
      const view = await this.#log(threadId, ns).read();
      const left = new Set(channels);
      let next = (await view.find(id || view.max))?.entry.parent;
      while (next !== undefined && left.size > 0) {
        const at = await view.find(next);
        if (at === undefined) break;
        for (const write of (await this.#pending(at.writes, left)).reverse()) found.get(write[1]).writes.push(write);
        for (const [channel, ref] of at.entry.refs) {
          if (left.delete(channel)) found.get(channel).seed = await this.#value(view, channel, ref);
        }
        next = at.entry.parent;
      }
    }
    for (const history of found.values()) history.writes.reverse();
    return Object.fromEntries(found);
  }
}

// A list that has less in common with the one before is kept whole.
const minCommon = 8;

/** The entries of a log that has only these checkpoints, and the lists that they need. */
async function pruned(view, kept) {
  const lists = new Set();
  const places = new Map(); // of values, in the old log and in the new one
  const entries = [];
  let max = "";
  for (const { entry, writes } of kept) {
    const at = entries.length + 1;
    const added = [];
    const refs = [];
    for (const [channel, ref] of entry.refs) {
      if (ref.list !== undefined) {
        lists.add(ref.list);
        refs.push([channel, ref]);
        continue;
      }
      const place = JSON.stringify([channel, ref.at]);
      if (!places.has(place)) {
        places.set(place, at);
        added.push((await view.at(ref.at)).new.find(([name]) => name === channel));
      }
      refs.push([channel, places.get(place) === at ? { own: true } : { at: places.get(place) }]);
    }
    for (const e of [{ ...entry, refs, new: added }, ...writes]) {
      const inOrder = e.kind === "checkpoint" ? e.id > max : e.id === max;
      if (inOrder) max = e.id;
      entries.push({ ...e, max, before: entries.findLastIndex((e) => e.late) + 1, late: inOrder ? undefined : true });
    }
  }
  return { entries, lists };
}

async function collect(all) {
  const items = [];
  for await (const item of all) items.push(item);
  return items;
}

async function* one(found, below) {
  if (found !== undefined && (below === undefined || found.entry.id < below)) yield found;
}

function same(a, b) {
  return a === b || (typeof a === "object" && typeof b === "object" && JSON.stringify(a) === JSON.stringify(b));
}

function idsOf(config, needed) {
  const { thread_id: threadId, checkpoint_ns: ns = "", checkpoint_id, thread_ts } = config.configurable ?? {};
  if (threadId === undefined && needed !== undefined) throw new TypeError(`${needed}: the config has no "thread_id" in "configurable"`);
  if (threadId !== undefined) named("thread_id", threadId);
  if (typeof ns !== "string") throw new TypeError("checkpoint_ns is not a text");
  const id = checkpoint_id || thread_ts || "";
  if (id !== "") named("checkpoint_id", id);
  return { threadId, ns, id };
}

function named(what, text) {
  if (typeof text !== "string" || text === "" || !text.isWellFormed()) throw new TypeError(`${what} is not a text: ${JSON.stringify(text)}`);
}

