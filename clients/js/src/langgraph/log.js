import { is } from "../errors.js";
import { elementOf } from "./values.js";
import { logName } from "./names.js";

const tailSize = 32; // entries that are read at once near the end
const pageSize = 500;
// What of a log is remembered at most, in characters of JSON.
const maxEntries = 8 << 20;
const maxLists = 32 << 20;

/**
 * Makes an entry a message of the store. What is mostly the same is left out: `max` of an entry in order, `before` if nothing was late, and where
 * values are that came with a checkpoint itself.
 */
export function messageOf({ kind, id, max, before, at: _, refs, ...rest }) {
  const content = { id, ...rest };
  if (max !== id) content.max = max;
  if (before > 0) content.before = before;
  if (refs !== undefined) content.refs = refs.map(([channel, ref]) => (ref.list !== undefined ? [channel, ref.list, ref.n] : ref.own ? [channel] : [channel, ref.at]));
  return { role: kind, content };
}

function entryOf({ role, data, position }) {
  const entry = { ...data, kind: role, at: position, max: data.max ?? data.id, before: data.before ?? 0 };
  if (data.refs !== undefined) {
    entry.refs = data.refs.map(([channel, place = position, n]) => [channel, n === undefined ? { at: place } : { list: place, n }]);
  }
  return entry;
}

/** What was read of a log, and is the same for ever: entries by position, and lists by the name of their branch. */
class Cache {
  entries = new Map();
  lists = new Map();
  #size = 0;

  /** Remembers an entry, and forgets the oldest ones. */
  keep(message) {
    const entry = entryOf(message);
    this.#drop(entry.at);
    this.entries.set(entry.at, { entry, size: message.size });
    this.#size += message.size;
    for (const at of this.entries.keys()) {
      if (this.#size <= maxEntries || at === entry.at) break;
      this.#drop(at);
    }
    return entry;
  }

  #drop(at) {
    this.#size -= this.entries.get(at)?.size ?? 0;
    this.entries.delete(at);
  }

  at(position) {
    return this.entries.get(position)?.entry;
  }

  /** The elements of a list that were read. */
  list(name) {
    let list = this.lists.get(name);
    if (list === undefined) {
      let size = 0;
      for (const { texts } of this.lists.values()) for (const text of texts) size += text.length;
      if (size > maxLists) this.lists.clear();
      this.lists.set(name, (list = { elements: [], texts: [], tip: undefined }));
    }
    return list;
  }
}

/**
 * The checkpoints of a namespace of a thread: a branch to which entries are only appended, as messages of JSON.
 *
 * An entry is a checkpoint, or what a task wrote for one. Each has `max`, the greatest id of a checkpoint up to it, so that the ids of the
 * log can be searched by bisection. An entry is in order if a checkpoint is the greatest, or writes belong to the greatest. Any other one is
 * late, and each entry has in `before` the position of the last late one before it.
 */
export class Log {
  #cache = new Cache();
  #tip;

  constructor(client, thread, ns) {
    this.client = client;
    this.thread = thread;
    this.ns = ns;
    this.name = logName(ns);
  }

  /** Forgets what was read. */
  forget() {
    this.#cache = new Cache();
    this.#tip = undefined;
  }

  /** Reads the end of the log. */
  async read() {
    const items = [];
    let exists = true;
    try {
      for await (const m of this.client.thread(this.thread).context(this.name).messages({ last: tailSize })) items.push(m);
    } catch (err) {
      if (!is(err, "not-found")) throw err;
      exists = false;
    }
    // The thread may have been deleted and made again, or the log pruned.
    const known = this.#tip;
    if (known !== undefined && !items.some((m) => m.id === known.id && m.position === known.position)) this.forget();
    for (const m of items) this.#cache.keep(m);
    const end = items.at(-1);
    this.#tip = end && { id: end.id, position: end.position };
    return new View(this, this.#cache, exists, this.#tip);
  }

  /** Notes what was appended after a view. */
  appended(view, record, entry, lists) {
    if (view.cache !== this.#cache) return;
    this.#tip = { id: record.tip, position: record.length };
    const { role, content } = messageOf(entry);
    this.#cache.keep({ role, data: content, position: record.length, size: JSON.stringify(content).length });
    for (const [name, list] of lists) this.#cache.lists.set(name, list);
  }
}

/** A log as it was at a time. */
class View {
  constructor(log, cache, exists, tip) {
    this.log = log;
    this.cache = cache;
    /** Whether there is such a branch. */
    this.exists = exists;
    this.tip = tip?.id ?? "empty";
    this.length = tip?.position ?? 0;
    /** The last entry, undefined for an empty log. */
    this.last = tip && cache.at(tip.position);
    /** The greatest id, "" if there is none. */
    this.max = this.last?.max ?? "";
  }

  #context(name) {
    return this.log.client.thread(this.log.thread).context(name);
  }

  /** The entry at a position. */
  async at(position) {
    for await (const e of this.range(position, position)) return e;
    throw new Error(`thread ${this.log.thread}: no entry ${position} in ${this.log.name}`);
  }

  /** Yields the entries from a position to another, so many of which are read at once. */
  async *range(first, last, size = pageSize) {
    for (let at = first; at <= last; ) {
      const cached = this.cache.at(at);
      if (cached !== undefined) {
        yield cached;
        at++;
        continue;
      }
      const max = Math.min(last - at + 1, size);
      for await (const m of this.#context(this.log.name).messages({ at: this.tip, first: at }, { max })) yield this.cache.keep(m);
      at += max;
    }
  }

  /** Yields the entries in order from a position back to the first. */
  async *#backwards(from) {
    for (let end = from; end >= 1; ) {
      const start = Math.max(1, end - (end === from ? tailSize : pageSize) + 1);
      const part = [];
      for await (const e of this.range(start, end)) part.push(e);
      for (const e of part.reverse()) if (!e.late) yield e;
      end = start - 1;
    }
  }

  /** The position of the last late entry, 0 if there is none. */
  get #lastLate() {
    if (this.last === undefined) return 0;
    return this.last.late ? this.last.at : this.last.before;
  }

  /** The late entries. */
  async #late() {
    const all = [];
    for (let at = this.#lastLate; at > 0; ) {
      const e = await this.at(at);
      all.push(e);
      at = e.before;
    }
    return all;
  }

  /** The first position of which the greatest id is at least this one; length + 1 if there is none. */
  async #locate(id) {
    let low = 1;
    let high = this.length + 1;
    // What is looked for is mostly near the end.
    for (let step = 4; high > low; step *= 4) {
      const at = Math.max(low, high - step);
      if ((await this.at(at)).max < id) {
        low = at + 1;
        break;
      }
      high = at;
    }
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((await this.at(middle)).max < id) low = middle + 1;
      else high = middle;
    }
    return high;
  }

  /** The checkpoint with an id and what was written for it, undefined if there is none. */
  async find(id) {
    const entries = [];
    for await (const e of this.range(await this.#locate(id), this.length, tailSize)) {
      if (e.max !== id) break;
      if (!e.late) entries.push(e);
    }
    for (const e of await this.#late()) if (e.id === id) entries.push(e);
    return whole(entries);
  }

  /** Yields the checkpoints with what was written for them, the greatest id first; with `below`, those of smaller ids. */
  async *all(below) {
    const late = new Map();
    for (const e of await this.#late()) late.set(e.id, [...(late.get(e.id) ?? []), e]);
    const ids = [...late.keys()].filter((id) => below === undefined || id < below).sort().reverse();
    let after = []; // the entries after the one that is looked at, back to front
    for await (const e of this.#backwards(below === undefined ? this.length : (await this.#locate(below)) - 1)) {
      after.push(e);
      if (e.kind !== "checkpoint") continue;
      while (ids.length > 0 && ids[0] > e.id) {
        const found = whole(late.get(ids.shift()));
        if (found !== undefined) yield found;
      }
      if (ids[0] === e.id) ids.shift();
      yield whole([...after, ...(late.get(e.id) ?? [])]);
      after = [];
    }
    for (const id of ids) {
      const found = whole(late.get(id));
      if (found !== undefined) yield found;
    }
  }

  /** What a new entry has besides its content. */
  header(kind, id) {
    const inOrder = kind === "checkpoint" ? id > this.max : id === this.max;
    const header = { kind, id, max: inOrder ? id : this.max, before: this.#lastLate };
    if (!inOrder) header.late = true;
    return header;
  }

  /** The list of a branch, of which at least n elements were read. */
  async list(name, n) {
    const list = this.cache.list(name);
    if (list.elements.length < n) {
      const first = list.elements.length + 1;
      const more = [];
      for await (const m of this.#context(name).messages({ first }, { max: n - first + 1 })) more.push(elementOf(m));
      if (more.length !== n - first + 1) throw new Error(`thread ${this.log.thread}: branch ${name} has not ${n} elements`);
      list.elements = [...list.elements.slice(0, first - 1), ...more]; // another reader may have the old ones
      list.texts = list.elements.map((e, i) => list.texts[i] ?? JSON.stringify(e));
      list.tip = undefined;
    }
    return list;
  }

  /** The tip and the length of the branch of a list. */
  async endOf(name) {
    const list = this.cache.lists.get(name);
    if (list?.tip !== undefined) return { tip: list.tip, length: list.elements.length };
    const { tip, length } = await this.#context(name).get();
    return { tip: tip ?? "empty", length };
  }
}

/** The checkpoint that entries of one id make up, in the order in which they came. */
function whole(entries) {
  const found = { entry: undefined, writes: [] };
  for (const e of entries.sort((a, b) => a.at - b.at)) {
    if (e.kind === "checkpoint") found.entry = e;
    else found.writes.push(e);
  }
  return found.entry === undefined ? undefined : found;
}
