import { foldSessionSummary } from "@anthropic-ai/claude-agent-sdk";
import { setTimeout as sleep } from "node:timers/promises";
import { is } from "./errors.js";
import { encodePart } from "./names.js";
import { aboutOf, entriesOf, idOf, messagesOf, titleOf } from "./claude-agent/entries.js";

const maxAttempts = 50;
const maxRemembered = 64; // transcripts
const maxBytes = 8 << 20; // of entries that are appended in one commit; a single one may be larger
const maxEntries = 3000; // mostly three records each, of the 10,000 that a commit has at most

/**
 * A session store of the Claude Agent SDK. A session is a thread of the store: what was said is its branch `main`, as an import of the
 * session's file has it, and what else the transcript has is beside that. Transcripts of subagents are further branches.
 */
export class LineageSessionStore {
  #client;
  #prefix;
  #user;
  #remembered = new Map(); // what is known of a transcript; an append to anything else than that is refused by the store
  #queues = new Map();

  constructor(client, { prefix = "claude-agent/", user } = {}) {
    this.#client = client;
    this.#prefix = prefix;
    this.#user = user;
  }

  #place({ projectKey, sessionId, subpath }) {
    for (const [name, value] of Object.entries({ projectKey, sessionId, subpath: subpath ?? "x" })) {
      if (typeof value !== "string" || value === "" || !value.isWellFormed()) throw new TypeError(`${name} is not a text: ${JSON.stringify(value)}`);
    }
    const source = this.#sessionsOf(projectKey) + encodePart(sessionId);
    const isMain = subpath === undefined;
    const name = isMain ? undefined : encodePart(subpath);
    return {
      source, isMain, ref: `=${source}`, key: JSON.stringify([source, subpath]),
      said: isMain ? "main" : `subpath/${name}`, others: isMain ? "other" : `other/${name}`,
      sourceID: isMain ? (id) => id : (id) => `${name}/${id}`,
      metadata: { agent: "claude-code", framework: "claude-agent", project_key: projectKey, session_id: sessionId },
    };
  }

  #sessionsOf(projectKey) {
    return `${this.#prefix}${encodePart(projectKey)}/`;
  }

  async append(key, entries) {
    const at = this.#place(key);
    await this.#alone(at.key, async () => {
      for (const some of divide(entries)) await this.#appendHalves(at, key, some);
    });
  }

  /** Appends entries, in more than one commit if they have too many records for one, as those with many texts. */
  async #appendHalves(at, key, entries) {
    try {
      await this.#append(at, key, entries);
    } catch (err) {
      if (!is(err, "too-large") || entries.length === 1) throw err;
      const half = entries.length >> 1;
      await this.#appendHalves(at, key, entries.slice(0, half));
      await this.#appendHalves(at, key, entries.slice(half));
    }
  }

  async #append(at, key, entries) {
    let state = this.#remembered.get(at.key);
    let known = state?.ids;
    for (let tried = 1; ; tried++) {
      try {
        const remembered = state !== undefined;
        state ??= await this.#state(at);
        if (known !== undefined) state.ids ??= await this.#ids(at, state, known);
        const fresh = entries.filter(isNew(state.ids));
        if (fresh.length > 0) await this.#commit(at, key, state, fresh);
        else if (remembered) { // the store says whether they are still there
          state = undefined;
          continue;
        }
        break;
      } catch (err) {
        this.#remembered.delete(at.key);
        if (tried === maxAttempts || !is(err, "tip-moved", "exists", "conflict", "not-found")) throw err;
        known = state?.ids ?? known;
        if (is(err, "exists")) known ??= { all: new Set() }; // an id that is taken may be that of an entry
        state = undefined;
        if (tried > 2) await sleep(Math.random() * 2 ** Math.min(tried, 8));
      }
    }
    this.#remembered.delete(at.key);
    this.#remembered.set(at.key, state);
    if (this.#remembered.size > maxRemembered) this.#remembered.delete(this.#remembered.keys().next().value);
  }

  /** Appends entries in one commit, if the transcript is in the state that it was read in, and changes the state with it. */
  async #commit(at, key, state, entries) {
    const { said, others } = messagesOf(entries, at.sourceID, state.said.length);
    const operations = [{ op: "create_thread", id: at.source, reuse: true, user: this.#user, metadata: at.metadata }];
    const lists = [[at.said, said, state.said], [at.others, others, state.others]];
    for (const [name, messages, was] of lists) {
      const context = { thread: at.ref, context: name, if_tip: was.tip };
      if (was.tip === undefined) operations.push({ op: "create_branch", thread: at.ref, name, empty: true });
      if (messages.length > 0) operations.push({ ...context, op: "append", messages, if_tip: was.tip ?? "empty" });
      else if (was.tip !== undefined) operations.push({ ...context, op: "move", to: was.tip }); // moves nothing, and says if another process did
    }
    let { summary } = state;
    if (at.isMain) {
      summary = foldSessionSummary(summary, key, entries, { mtime: Math.max(Date.now(), (summary?.mtime ?? 0) + 1) });
      const about = aboutOf(entries, state.about);
      operations.push({ op: "update_thread", thread: at.ref, title: titleOf(entries), merge: { ...about, summary: [summary] } });
      state.about = { ...state.about, ...about };
    }
    const done = await this.#client.batch(operations);
    operations.forEach(({ op, context, name }, i) => {
      const list = (context ?? name) === at.said ? state.said : state.others;
      if (op === "create_branch") list.tip = "empty";
      if (op === "append") Object.assign(list, { tip: done[i].tip, length: done[i].length });
    });
    state.summary = summary;
    if (state.ids === undefined) return;
    for (const e of entries) if (idOf(e) !== undefined) state.ids.all.add(idOf(e));
    Object.assign(state.ids, { said: { ...state.said }, others: { ...state.others } });
  }

  /** Reads where the branches of a transcript end. Without a tip there is none. */
  async #state(at) {
    const state = { said: { length: 0 }, others: { length: 0 }, about: {} };
    if (at.isMain) state.said.tip = "empty"; // it comes with the thread
    try {
      for await (const b of this.#client.thread(at.ref).branches()) {
        const list = b.name === at.said ? state.said : b.name === at.others ? state.others : undefined;
        if (list !== undefined) Object.assign(list, { tip: b.head ?? "empty", length: b.length });
      }
      if (at.isMain) {
        state.about = (await this.#client.thread(at.ref).get()).metadata ?? {};
        state.summary = state.about.summary?.[0];
      }
    } catch (err) {
      if (!is(err, "not-found")) throw err;
    }
    return state;
  }

  /** The ids of the entries of a transcript. Those that are known are not read again, if it still begins with their entries. */
  async #ids(at, state, known) {
    const found = { all: new Set(known.all) };
    for (const list of ["said", "others"]) {
      const { tip, length } = state[list];
      const was = known[list]?.length > 0 ? known[list] : undefined;
      let first = was !== undefined;
      for await (const m of this.#history(at, at[list], tip, was?.length ?? 1)) {
        if (first && m.id !== was.tip) break;
        first = false;
        const id = idOf(list === "said" ? m.metadata : m.data.entry);
        if (id !== undefined) found.all.add(id);
      }
      if (first) return this.#ids(at, state, { all: new Set() });
      found[list] = { tip, length };
    }
    return found;
  }

  /** The messages of a branch of a transcript up to a tip; what others put there is left out. */
  async *#history(at, name, tip, first = 1) {
    if (tip === undefined || tip === "empty") return;
    for await (const m of this.#client.thread(at.ref).context(name).messages({ at: tip, first })) {
      if (name === at.said ? typeof m.metadata?.type === "string" && m.data !== undefined : m.data?.entry !== undefined) yield m;
    }
  }

  async #read(at, list, state) {
    const found = [];
    for await (const m of this.#history(at, at[list], state[list].tip)) found.push(m);
    return found;
  }

  async load(key) {
    const at = this.#place(key);
    for (let tried = 1; ; tried++) {
      const state = await this.#state(at);
      if (state.said.length + state.others.length === 0) return null;
      try {
        const [said, others] = await Promise.all(["said", "others"].map((list) => this.#read(at, list, state)));
        return entriesOf(said, others);
      } catch (err) {
        if (tried === maxAttempts || !is(err, "not-found")) throw err; // it was deleted meanwhile, and perhaps begun anew
      }
    }
  }

  async listSessions(projectKey) {
    return (await this.listSessionSummaries(projectKey)).map(({ sessionId, mtime }) => ({ sessionId, mtime }));
  }

  async listSessionSummaries(projectKey) {
    this.#place({ projectKey, sessionId: "x" });
    const found = [];
    for await (const t of this.#client.threads({ source_prefix: this.#sessionsOf(projectKey), user: this.#user })) {
      if (t.metadata?.summary !== undefined) found.push(t.metadata.summary[0]); // else it has transcripts of subagents only
    }
    return found;
  }

  async delete(key) {
    const at = this.#place(key);
    await this.#alone(at.key, async () => {
      if (at.isMain) {
        await this.#client.thread(at.ref).delete().catch(unlessGone);
      } else {
        for (const name of [at.said, at.others]) await this.#client.thread(at.ref).deleteBranch(name).catch(unlessGone);
      }
      this.#remembered.delete(at.key);
    });
  }

  async listSubkeys({ projectKey, sessionId }) {
    const at = this.#place({ projectKey, sessionId });
    const found = new Set();
    try {
      for await (const b of this.#client.thread(at.ref).branches()) {
        const name = /^(?:subpath|other)\/(.+)$/s.exec(b.name)?.[1];
        if (name !== undefined && b.length > 0) found.add(decodeURIComponent(name));
      }
    } catch (err) {
      unlessGone(err);
    }
    return [...found];
  }

  /** Changes of one transcript by this store are one after the other. */
  #alone(key, work) {
    const mine = (this.#queues.get(key) ?? Promise.resolve()).then(work);
    const settled = mine.catch(() => {}).then(() => this.#queues.get(key) === settled && this.#queues.delete(key));
    this.#queues.set(key, settled);
    return mine;
  }
}

function unlessGone(err) {
  if (!is(err, "not-found")) throw err;
}

/** A filter for entries whose ids are not known, the first with its id. */
function isNew(known) {
  const here = new Set();
  return (entry) => {
    const id = idOf(entry);
    if (id === undefined) return true;
    if (known?.all.has(id) || here.has(id)) return false;
    here.add(id);
    return true;
  };
}

/** Divides entries into parts that fit into a request. */
function* divide(entries) {
  let part = [];
  let size = 0;
  for (const entry of entries) {
    const bytes = Buffer.byteLength(JSON.stringify(entry));
    if (part.length > 0 && (size + bytes > maxBytes || part.length === maxEntries)) {
      yield part;
      part = [];
      size = 0;
    }
    part.push(entry);
    size += bytes;
  }
  if (part.length > 0) yield part;
}
