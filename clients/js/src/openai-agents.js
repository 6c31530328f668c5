import { UserError } from "@openai/agents-core";
import { createHash, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { is } from "./errors.js";
import { decode, encode, stable } from "./openai-agents/items.js";

const branch = "main";
const maxAttempts = 50;

/**
 * A session of the OpenAI Agents SDK: the history of a thread of the store. What `popItem`, compaction and changes take out of the session
 * can be seen in the moves of its branch, and undone, for the time that those are kept; `clearSession` deletes.
 */
export class LineageSession {
  #client;
  #prefix;
  #user;
  #id;
  #ref;
  #last = Promise.resolve();

  constructor(client, { sessionId = randomUUID(), prefix = "openai-agents/", user } = {}) {
    if (typeof sessionId !== "string" || sessionId === "" || !sessionId.isWellFormed()) throw new TypeError(`sessionId is not a text: ${JSON.stringify(sessionId)}`);
    this.#client = client;
    this.#prefix = prefix;
    this.#user = user;
    this.#id = sessionId;
    this.#ref = `=${prefix}${sessionId}`;
  }

  async getSessionId() {
    return this.#id;
  }

  async getItems(limit) {
    if (limit !== undefined && limit <= 0) return [];
    return (await this.#read(limit)).map((m) => m.item);
  }

  /** The messages of the session, the last so many. */
  async #read(last) {
    const found = [];
    try {
      const context = this.#client.thread(this.#ref).context(branch);
      for await (const m of context.messages({ last: last && Math.ceil(last) })) found.push({ id: m.id, position: m.position, item: decode(m.data) });
    } catch (err) {
      if (!is(err, "not-found")) throw err;
    }
    return found;
  }

  async addItems(items) {
    if (items.length === 0) return;
    const messages = items.map(encode);
    await this.#alone(() => this.#client.batch([this.#create(), this.#append(messages)]));
  }

  async popItem() {
    let popped;
    await this.#change(1, (last) => {
      popped = last.at(-1)?.item;
      return last.length === 0 ? undefined : { keep: last.length - 1, add: [] };
    });
    return popped;
  }

  /** Deletes the items of the session. Forks keep theirs. */
  async clearSession() {
    await this.#alone(() => this.#attempts(async () => {
      const at = { thread: this.#ref };
      const old = `cleared/${randomUUID()}`;
      await this.#client.batch([
        { ...at, op: "update_branch", branch, name: old },
        { ...at, op: "create_branch", name: branch, empty: true, switch: true },
        { ...at, op: "delete_branch", branch: old },
      ]).catch((err) => {
        if (!is(err, "not-found")) throw err; // there is no session
      });
    }));
  }

  /** Replaces the items by those of a compaction. */
  async replaceHistoryWithCompaction(items) {
    await this.#change(undefined, () => ({ keep: 0, add: items }));
  }

  async applyHistoryMutations({ mutations }) {
    if (mutations.length === 0) return;
    await this.#change(undefined, (all) => {
      let items = all.map((m) => m.item);
      for (const m of mutations) if (m.type === "replace_function_call") items = replaceCall(items, m);
      const keep = items.findIndex((item, i) => all[i]?.item !== item);
      if (keep === -1) return items.length === all.length ? undefined : { keep: items.length, add: [] };
      return { keep, add: items.slice(keep) };
    });
  }

  async applyHistoryTransaction({ operationId, transaction }) {
    if (typeof operationId !== "string" || operationId.trim() === "") throw new UserError("operationId is not a text");
    const { type } = transaction ?? {};
    const lists = type === "append_items" ? [transaction.items] : type === "replace_suffix" ? [transaction.expectedSuffix, transaction.replacement] : [];
    if (lists.length === 0 || !lists.every(Array.isArray)) throw new UserError("not a transaction of the history of a session");
    const [expected, add] = lists.length === 2 ? lists : [[], lists[0]];
    const asked = stable(transaction);
    const key = `operation/${createHash("sha256").update(operationId).digest("hex")}`; // ids of any length
    await this.#change(Math.max(expected.length, 1), async (last) => {
      const applied = await this.#value(key);
      if (applied !== undefined) {
        if (applied !== asked) throw new UserError("the operationId was applied with another transaction");
        return undefined;
      }
      const suffix = last.slice(last.length - expected.length);
      if (suffix.length !== expected.length || stable(suffix.map((m) => m.item)) !== stable(expected)) {
        throw new UserError("the end of the history is not what the transaction expects");
      }
      return { keep: last.length - expected.length, add, value: { key, value: asked } };
    });
  }

  async #value(key) {
    try {
      return (await this.#client.thread(this.#ref).context(branch).values.get(key)).value;
    } catch (err) {
      if (is(err, "not-found")) return undefined;
      throw err;
    }
  }

  /**
   * Makes a session that has the items of this one, or the first `at` of them, and shares them with it.
   */
  async fork({ sessionId = randomUUID(), at } = {}) {
    const fork = new LineageSession(this.#client, { sessionId, prefix: this.#prefix, user: this.#user });
    const operations = [{ op: "copy_thread", thread: this.#ref, id: this.#prefix + sessionId, metadata: fork.#metadata() }];
    if (at !== undefined) {
      if (!Number.isSafeInteger(at) || at < 0) throw new TypeError(`at ${at}: it is a number of items`);
      const { length } = await this.#client.thread(this.#ref).context(branch).get();
      if (at > length) throw new TypeError(`at ${at}: the session has ${length} items`);
      if (at < length) operations.push({ op: "move", thread: fork.#ref, context: branch, to: to(at), reason: "fork" });
    }
    await this.#client.batch(operations);
    return fork;
  }

  #metadata() {
    return { framework: "openai-agents", session_id: this.#id };
  }
  #create() {
    return { op: "create_thread", id: this.#prefix + this.#id, reuse: true, user: this.#user, metadata: this.#metadata() };
  }
  #append(messages, tip) {
    return { op: "append", thread: this.#ref, context: branch, messages, if_tip: tip };
  }

  /**
   * Changes the end of the history in one commit. `decide` gets the last messages, all for undefined, and says how many of them stay, and what
   * follows; or undefined to leave it.
   */
  #change(last, decide) {
    return this.#alone(() => this.#attempts(async () => {
      const found = await this.#read(last);
      const change = await decide(found);
      if (change === undefined) return;
      const tip = found.at(-1)?.id ?? "empty";
      const length = found.at(-1)?.position ?? 0;
      const kept = length - found.length + change.keep;
      const operations = [this.#create()];
      const at = { thread: this.#ref, context: branch };
      if (kept < length) operations.push({ ...at, op: "move", to: to(kept), if_tip: tip, reason: "changed" });
      if (change.add.length > 0) operations.push(this.#append(change.add.map(encode), kept < length ? undefined : tip));
      if (change.value !== undefined) operations.push({ ...at, op: "set_value", ...change.value });
      await this.#client.batch(operations);
    }));
  }

  async #attempts(change) {
    for (let tried = 1; ; tried++) {
      try {
        return await change();
      } catch (err) {
        if (tried === maxAttempts || !is(err, "tip-moved", "exists", "conflict", "not-found")) throw err;
        await sleep(Math.random() * 2 ** Math.min(tried, 8));
      }
    }
  }

  /** Changes by this session are one after the other. */
  #alone(work) {
    const mine = this.#last.then(work);
    this.#last = mine.catch(() => {});
    return mine;
  }
}

/** The position after n items. */
const to = (n) => (n === 0 ? "empty" : `:${n}`);

function replaceCall(items, { callId, replacement }) {
  const first = items.findIndex((i) => i.type === "function_call" && i.callId === callId);
  if (first === -1) return items;
  const others = (i, k) => k <= first || i.type !== "function_call" || i.callId !== callId;
  return items.with(first, replacement).filter(others);
}
