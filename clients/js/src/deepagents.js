import { ContextStore } from "@deepagents/context";
import { LineageError, is } from "./errors.js";
import { merged } from "./deepagents/merge.js";
import { timeOf, branchOf, chatOf, checkpointOf, infoOf, messageOf, text, when } from "./deepagents/records.js";

/** Another program has added to the branch, and the new head does not follow that. The message that was to be the head is in the chat. */
export class HeadConflictError extends Error {
  constructor(branchId, messageId, cause) {
    super(`Branch ${JSON.stringify(branchId)} has moved: ${JSON.stringify(messageId)} does not follow its head ${JSON.stringify(cause.tip || null)}`, { cause });
    this.name = "HeadConflictError";
    this.branchId = branchId;
    this.messageId = messageId;
    this.actualHead = cause.tip || null;
  }
}

/**
 * A context store of deepagents. A chat is a thread of the store. The rules for ids, branches and checkpoints are the server's. Message ids
 * are unique in a chat, not in the store: see {@link chat}.
 */
export class LineageContextStore extends ContextStore {
  #client;
  #prefix;
  #user;
  #chat;
  #read = new Map(); // the metadata of chats as they were last returned

  constructor(client, { prefix = "deepagents/", user, chatId } = {}) {
    super();
    this.#client = client;
    this.#prefix = prefix;
    this.#user = user;
    this.#chat = chatId;
  }

  /** Returns a store whose methods without a chat id work on this chat only. */
  chat(chatId) {
    return new LineageContextStore(this.#client, { prefix: this.#prefix, user: this.#user, chatId: text("chat id", chatId) });
  }

  #thread(chatId) {
    return this.#client.thread(`=${this.#prefix}${text("chat id", chatId)}`);
  }

  /** Changes a chat. */
  async #change(chatId, work) {
    try {
      return await work(this.#thread(chatId));
    } catch (err) {
      throw this.#errorOf(chatId, err);
    }
  }

  #errorOf(chatId, err) {
    if (!is(err, "not-found") || err.detail?.includes(" in chat ")) return err;
    return new Error(`Chat "${chatId}" not found`, { cause: err });
  }

  /** The chats that can have a message or a branch with an id: the one of this store, or those that the server finds. */
  async #having(what, id) {
    if (this.#chat !== undefined) return [this.#chat];
    if (typeof id !== "string" || id === "" || !id.isWellFormed()) return [];
    const chats = [];
    for await (const c of this.#client.chats({ [what]: id, source_prefix: this.#prefix, user: this.#user })) chats.push(c.id.slice(this.#prefix.length));
    return chats;
  }

  async #chatOf(what, id) {
    const [chat, ...more] = await this.#having(what, id);
    if (more.length === 0) return chat;
    throw new Error(`${what} ${JSON.stringify(id)} is in several chats: ${[chat, ...more].slice(0, 10).map((c) => JSON.stringify(c)).join(", ")}\nstore.chat(chatId) is the store for one of them`);
  }

  /** Remembers the metadata of a chat that is returned: changes of them are told by these. */
  #returned(chat) {
    this.#read.delete(chat.id);
    this.#read.set(chat.id, structuredClone(chat.metadata));
    if (this.#read.size > 1000) this.#read.delete(this.#read.keys().next().value);
    return chat;
  }

  async createChat(chat) {
    return this.#returned(chatOf(this.#prefix, await this.#create(chat, false)));
  }

  async upsertChat(chat) {
    return this.#returned(chatOf(this.#prefix, await this.#create(chat, true)));
  }

  async #create({ id, userId, title, metadata }, reuse) {
    try {
      return await this.#client.createThread({ id: this.#prefix + text("chat id", id), reuse, user: userId, title: title ?? undefined, metadata: metadata ?? undefined, keep: true });
    } catch (err) {
      if (is(err, "exists")) throw new Error(`Chat "${id}" already exists`, { cause: err });
      if (is(err, "other-user")) throw new Error(`Chat "${id}" belongs to a different user`, { cause: err });
      throw err;
    }
  }

  async getChat(chatId) {
    const found = await orNone(this.#thread(chatId).get());
    return found && this.#returned(chatOf(this.#prefix, found));
  }

  /** Changes a chat. Of metadata that another program has changed since they were read, only what is different from those is changed. */
  async updateChat(chatId, { title, metadata }) {
    const base = this.#read.get(chatId);
    const known = metadata !== undefined && this.#read.has(chatId);
    return this.#change(chatId, async (thread) => {
      for (let now = base, next = metadata, left = 100; ; left--) {
        try {
          return this.#returned(chatOf(this.#prefix, await thread.update({ title: title === null ? "" : title, metadata: next, if_metadata: known ? (now ?? null) : undefined })));
        } catch (err) {
          if (!known || left === 0 || !is(err, "conflict")) throw err;
          now = (await thread.get()).metadata;
          next = merged(base, metadata, now);
        }
      }
    });
  }

  async listChats({ userId, metadata, limit, offset } = {}) {
    if (limit === 0) return [];
    const query = { user: userId ?? this.#user, source_prefix: this.#prefix, offset };
    if (metadata !== undefined) query.metadata = `${metadata.key}=${JSON.stringify(metadata.value)}`;
    const chats = [];
    for await (const c of this.#client.chats(query, { max: limit })) chats.push(this.#returned(infoOf(this.#prefix, c)));
    return chats;
  }

  async deleteChat(chatId, { userId } = {}) {
    const deleted = this.#thread(chatId).delete({ query: { user: userId } });
    return (await orNone(deleted.then(() => true))) ?? false;
  }

  async addMessage({ id, chatId, parentId, name, type, data, createdAt }) {
    if (parentId === id) throw new Error(`Message ${id} cannot be its own parent`);
    const message = { id: text("message id", id), parent: parentId ?? undefined, role: name, kind: type, data, created_at: when(createdAt), replace: true };
    await this.#change(chatId, (thread) => thread.addChatMessage(message));
  }

  async getMessage(messageId) {
    const chat = await this.#chatOf("message", messageId);
    const found = chat === undefined ? undefined : await this.#message(chat, messageId);
    return found && messageOf(chat, found);
  }

  #message(chatId, id) {
    if (typeof id !== "string" || id === "" || !id.isWellFormed()) return undefined;
    return one(this.#thread(chatId).chatMessages({ id }));
  }

  async getMessageChain(headId) {
    const chat = await this.#chatOf("message", headId);
    return chat === undefined ? [] : this.#chain(chat, headId);
  }

  async #chain(chatId, to) {
    if (typeof to !== "string" || to === "" || !to.isWellFormed()) return [];
    const chain = await all(this.#thread(chatId).chatMessages({ to }));
    return chain.reverse().map((m) => messageOf(chatId, m));
  }

  async getMessages(chatId) {
    const [active] = await this.#change(chatId, async (thread) => Array.fromAsync(thread.chatBranches({ active: true })));
    return active?.head ? this.#chain(chatId, active.head) : [];
  }

  async hasChildren(messageId) {
    for (const chat of await this.#having("message", messageId)) {
      if ((await this.#message(chat, messageId))?.followed) return true;
    }
    return false;
  }

  async createBranch({ id, chatId, name, headMessageId, isActive, createdAt }) {
    const branch = { id: text("branch id", id), name: text("name", name), head: headMessageId ?? undefined, active: isActive || undefined, created_at: when(createdAt) };
    await this.#change(chatId, (thread) => thread.createChatBranch(branch));
  }

  async getBranch(chatId, name) {
    const found = name === "" ? undefined : await one(this.#thread(chatId).chatBranches({ name }));
    return found && branchOf(found, chatId);
  }

  async getActiveBranch(chatId) {
    const found = await one(this.#thread(chatId).chatBranches({ active: true }));
    return found && branchOf(found, chatId);
  }

  async setActiveBranch(chatId, branchId) {
    await this.#change(chatId, (thread) => thread.updateChatBranch(branchId, { active: true }));
  }

  async updateBranchHead(branchId, messageId) {
    const chat = await this.#chatOf("branch", branchId);
    if (chat === undefined) throw new Error(`Branch "${branchId}" not found`);
    try {
      await this.#change(chat, (thread) => thread.updateChatBranch(branchId, { head: messageId ?? "", along: true }));
    } catch (err) {
      throw is(err, "tip-moved") ? new HeadConflictError(branchId, messageId, err) : err;
    }
  }

  async listBranches(chatId) {
    return (await all(this.#thread(chatId).chatBranches())).map((b) => branchOf(b));
  }

  async createCheckpoint({ id, chatId, name, messageId, createdAt }) {
    const checkpoint = { id: text("checkpoint id", id), name: text("name", name), message: messageId, created_at: when(createdAt) };
    await this.#change(chatId, (thread) => thread.setChatCheckpoint(checkpoint));
  }

  async getCheckpoint(chatId, name) {
    const found = name === "" ? undefined : await one(this.#thread(chatId).chatCheckpoints({ name }));
    return found && checkpointOf(found, chatId);
  }

  async listCheckpoints(chatId) {
    return (await all(this.#thread(chatId).chatCheckpoints())).map((c) => checkpointOf(c));
  }

  async deleteCheckpoint(chatId, name) {
    await orNone(this.#thread(chatId).deleteCheckpoint(name));
  }

  async searchMessages(chatId, query, { roles, limit = 20 } = {}) {
    if (limit === 0) return [];
    const hits = await all(this.#thread(chatId).searchChat(query, { role: roles, limit: Math.min(limit, 1000) }));
    // deepagents: the lower, the better.
    return hits.map((m) => ({ message: messageOf(chatId, m), rank: -m.rank, snippet: m.snippet }));
  }

  async getGraph(chatId) {
    const graph = await orNone(this.#thread(chatId).chatGraph());
    return {
      chatId,
      nodes: (graph?.nodes ?? []).map((n) => ({ id: n.id, parentId: n.parent, role: n.role, content: n.preview, createdAt: timeOf(n.created_at) })),
      branches: (graph?.branches ?? []).map((b) => ({ name: b.name, headMessageId: b.head, isActive: b.active })),
      checkpoints: (graph?.checkpoints ?? []).map((c) => ({ name: c.name, messageId: c.message })),
    };
  }
}

/** The answer, or undefined if it is not found. */
async function orNone(asked) {
  try {
    return await asked;
  } catch (err) {
    if (err instanceof LineageError && err.type === "not-found") return undefined;
    throw err;
  }
}

/** The records of a list, none if it is not found. */
const all = async (records) => (await orNone(Array.fromAsync(records))) ?? [];
const one = async (records) => (await all(records))[0];
