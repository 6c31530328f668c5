import { Transport } from "./transport.js";
import { events } from "./events.js";
import { findServer } from "./find.js";

/** A part of a path. Everything is encoded, so that no name leads to another route. */
const part = (name) => {
  if (typeof name !== "string" || name === "" || name === "." || name === "..") throw new TypeError(`not a name: ${JSON.stringify(name)}`);
  return encodeURIComponent(name);
};

/**
 * Connects to a server: that of `url` (with `token`), of `socket`, or the one that serves `store` on this machine, or that runs. One
 * that was found is found again after a restart, by its store.
 */
export async function connect({ url, token, socket, store, runtime, ...options } = {}) {
  if (url !== undefined || socket !== undefined) return new Client({ url, token, socket, ...options });
  const server = await findServer({ store, runtime });
  const find = () => findServer({ store: server.store, runtime });
  return new Client({ url: server.url, socket: server.socket, token, find, ...options });
}

/** Values under keys: of a context, a thread, a user, an application or the store. */
class Values {
  constructor(client, path) {
    this.client = client;
    this.path = `${path}/values`;
  }
  list(query, options) {
    return this.client.list(this.path, query, options);
  }
  get(key, query, options) {
    return this.client.send("GET", `${this.path}/${part(key)}`, { ...options, query });
  }
  set(key, value, options) {
    return this.client.send("PUT", `${this.path}/${part(key)}`, { ...options, body: value });
  }
  delete(key, options) {
    return this.client.send("DELETE", `${this.path}/${part(key)}`, options);
  }
  /** What the owner itself has set under the key, the latest first. */
  history(key, options) {
    return this.client.all(`${this.path}/${part(key)}/history`, {}, options);
  }
}

/** A history: a branch or another context of a thread, or one outside threads. */
export class Context {
  constructor(client, path) {
    this.client = client;
    this.path = path;
    this.values = new Values(client, path);
  }
  #post(route, body, options) {
    const { ifTip, ...rest } = options ?? {};
    const headers = ifTip === undefined ? undefined : { "If-Match": `"${ifTip === "" || ifTip === null ? "empty" : ifTip}"` };
    return this.client.send("POST", `${this.path}/${route}`, { ...rest, headers, body });
  }
  get(options) {
    return this.client.send("GET", this.path, options);
  }
  update(body, options) {
    return this.client.send("PATCH", this.path, { ...options, body });
  }
  delete(options) {
    return this.client.send("DELETE", this.path, options);
  }
  /** The messages of the history, oldest first. */
  messages(query, options) {
    return this.client.list(`${this.path}/messages`, query, options);
  }
  /** The body of a request to the API of a model, with the history in its dialect. */
  request(dialect, query, options) {
    return this.client.send("GET", `${this.path}/messages`, { ...options, query: { ...query, dialect } });
  }
  resolved(query, options) {
    return this.client.send("GET", `${this.path}/resolved`, { ...options, query });
  }
  /** Appends messages. With `ifTip`, only if that is the tip; "" is an empty history. */
  append(messages, { together, dialect, ...options } = {}) {
    return this.#post("messages", { messages, together }, { ...options, query: { dialect } });
  }
  /** Appends bytes as a message, a file or a revision of a document. */
  appendFile(bytes, { mediaType = "application/octet-stream", query, ...options } = {}) {
    return this.client.send("POST", `${this.path}/files`, { ...options, query, body: bytes, headers: { "Content-Type": mediaType }, key: null });
  }
  /**
   * Yields `{id, event, data}` for each step that is added, from after the message `after` ("empty": the first) or from now on: its messages
   * with the event `messages`, `moved` where the context was moved, and `deleted` at the end.
   */
  follow({ after, signal } = {}) {
    return events(this.client.transport, `${this.path}/follow`, {}, { lastEventID: after, signal });
  }
  move(to, { reason, ...options } = {}) {
    return this.#post("move", { to, reason }, options);
  }
  undo(options) {
    return this.#post("undo", undefined, options);
  }
  moves(query, options) {
    return this.client.all(`${this.path}/moves`, query, options);
  }
  merge(from, options) {
    return this.#post("merge", { from }, options);
  }
  edit(body, options) {
    return this.#post("edits", body, options);
  }
  /** Adds the result of a subagent to its parent. */
  return(message, options) {
    return this.#post("return", { message }, options);
  }
  /** Sends a message of this context, by default the last one, to another. */
  sendTo(to, { at, ...options } = {}) {
    return this.#post("send", { to, at }, options);
  }
  /** The messages that only this history has (side a), or only the one that ends at `position` (side b), and at the end their number. */
  diff(position, query, options) {
    return this.client.list(`${this.path}/diff`, { ...query, with: position }, options);
  }
  documents(query, options) {
    return this.client.all(`${this.path}/documents`, query, options);
  }
  /** A revision of a document, the latest without `revision`. */
  document(name, query, options) {
    return this.client.send("GET", `${this.path}/documents/${part(name)}`, { ...options, query });
  }
  diffDocument(name, query, options) {
    return this.client.send("GET", `${this.path}/documents/${part(name)}/diff`, { ...options, query });
  }
  /** Erases a message from every history. What other messages have of it beside its text stays: these items have stays. */
  async erase(at, { dryRun, ...options } = {}) {
    return (await this.#post("erase", { at, dry_run: dryRun }, { ...options, key: null })).items;
  }
  alternatives(query, options) {
    return this.client.all(`${this.path}/alternatives`, query, options);
  }
  offer(body, options) {
    return this.#post("alternatives", body, options);
  }
  choose(alternative, options) {
    return this.#post("choose", { alternative }, options);
  }
  summaries(query, options) {
    return this.client.all(`${this.path}/summaries`, query, options);
  }
  summarize(body, options) {
    return this.#post("summaries", body, options);
  }
  deleteSummary(id, options) {
    return this.client.send("DELETE", `${this.path}/summaries/${part(id)}`, options);
  }
}

/** A conversation with its branches. */
export class Thread {
  constructor(client, ref) {
    this.client = client;
    this.ref = ref;
    this.path = `/v1/threads/${part(ref)}`;
    this.values = new Values(client, this.path);
  }
  get(options) {
    return this.client.send("GET", this.path, options);
  }
  update(body, options) {
    return this.client.send("PATCH", this.path, { ...options, body });
  }
  delete(options) {
    return this.client.send("DELETE", this.path, options);
  }
  /** Makes a thread whose branches share the histories of this one. */
  copy(body = {}, options) {
    return this.client.send("POST", `${this.path}/copy`, { ...options, body });
  }
  branches(query, options) {
    return this.client.list(`${this.path}/branches`, query, options);
  }
  createBranch(body, options) {
    return this.client.send("POST", `${this.path}/branches`, { ...options, body });
  }
  updateBranch(name, body, options) {
    return this.client.send("PATCH", `${this.path}/branches/${part(name)}`, { ...options, body });
  }
  deleteBranch(name, options) {
    return this.client.send("DELETE", `${this.path}/branches/${part(name)}`, options);
  }
  checkpoints(query, options) {
    return this.client.list(`${this.path}/checkpoints`, query, options);
  }
  setCheckpoint(name, at, options) {
    return this.client.send("POST", `${this.path}/checkpoints`, { ...options, body: { name, at } });
  }
  deleteCheckpoint(name, options) {
    return this.client.send("DELETE", `${this.path}/checkpoints/${part(name)}`, options);
  }
  contexts(query, options) {
    return this.client.list(`${this.path}/contexts`, query, options);
  }
  fork(body, options) {
    return this.client.send("POST", `${this.path}/contexts`, { ...options, body });
  }
  /** The context of a branch, of an id, or of the active branch. */
  context(name = "@") {
    return new Context(this.client, `${this.path}/contexts/${part(name)}`);
  }
  graph(options) {
    return this.client.send("GET", `${this.path}/graph`, options);
  }
  /**
   * A message of the chat that the thread is, by its `id`, or the messages `to` one, the last first. Messages, branches and checkpoints of
   * a chat go by the ids that their creators chose.
   */
  chatMessages(query, options) {
    return this.client.list(`${this.path}/chat/messages`, query, options);
  }
  addChatMessage(body, options) {
    return this.client.send("POST", `${this.path}/chat/messages`, { ...options, body });
  }
  chatBranches(query, options) {
    return this.client.list(`${this.path}/chat/branches`, query, options);
  }
  createChatBranch(body, options) {
    return this.client.send("POST", `${this.path}/chat/branches`, { ...options, body });
  }
  updateChatBranch(id, body, options) {
    return this.client.send("PATCH", `${this.path}/chat/branches/${part(id)}`, { ...options, body });
  }
  chatCheckpoints(query, options) {
    return this.client.list(`${this.path}/chat/checkpoints`, query, options);
  }
  setChatCheckpoint(body, options) {
    return this.client.send("POST", `${this.path}/chat/checkpoints`, { ...options, body });
  }
  chatGraph(options) {
    return this.client.send("GET", `${this.path}/chat/graph`, options);
  }
  searchChat(q, query, options) {
    return this.client.all(`${this.path}/chat/search`, { ...query, q }, options);
  }
  /** The thread as a file of a format. */
  export(query, options) {
    return this.client.send("GET", `${this.path}/export`, { ...options, query, bytes: true });
  }
  native(options) {
    return this.client.send("GET", `${this.path}/native`, { ...options, bytes: true });
  }
  resume(body, options) {
    return this.client.send("POST", `${this.path}/resume`, { ...options, body, key: null });
  }
}

/** A store behind a server. See {@link connect}. */
export class Client {
  constructor(options) {
    this.transport = new Transport(options);
    this.values = new Values(this, "/v1/store");
  }

  /** Ends idle connections, and each of the others with its request. Requests can still be sent. */
  close() {
    this.transport.close();
  }

  /** Sends a request of any route. */
  send(method, path, options) {
    return this.transport.request(method, path, options);
  }

  /** Yields the records of a list, page after page. `max` limits their number. */
  async *list(path, query = {}, { max = Infinity, ...options } = {}) {
    let after = query.after;
    for (let n = 0; n < max; ) {
      const page = await this.send("GET", path, { ...options, query: { limit: Math.min(1000, max - n), ...query, after } });
      for (const item of page.items) {
        yield item;
        if (++n >= max) return;
      }
      if (page.next === undefined) return;
      after = page.next;
    }
  }

  /** Yields the records of a list that comes whole. */
  async *all(path, query = {}, options = {}) {
    yield* (await this.send("GET", path, { ...options, query })).items;
  }

  threads(query, options) {
    return this.list("/v1/threads", query, options);
  }
  /** Threads as chats, with the number of all their messages. */
  chats(query, options) {
    return this.list("/v1/chats", query, options);
  }
  createThread(body = {}, options) {
    return this.send("POST", "/v1/threads", { ...options, body });
  }
  /** A thread by its id, or by `=` and the id that its creator chose. */
  thread(ref) {
    return new Thread(this, ref);
  }
  createContext(body = {}, options) {
    return this.send("POST", "/v1/contexts", { ...options, body });
  }
  context(id) {
    return new Context(this, `/v1/contexts/${part(id)}`);
  }
  valuesOfUser(user) {
    return new Values(this, `/v1/users/${part(user)}`);
  }
  valuesOfApplication(name) {
    return new Values(this, `/v1/applications/${part(name)}`);
  }
  /** Several changes in one commit: all or none. Returns what each made. */
  async batch(operations, options) {
    return (await this.send("POST", "/v1/batch", { ...options, body: { operations } })).items;
  }
  /** The bytes of a content. */
  content(id, options) {
    return this.send("GET", `/v1/content/${part(id)}`, { ...options, bytes: true });
  }
  putContent(bytes, { mediaType = "application/octet-stream", ...options } = {}) {
    return this.send("POST", "/v1/content", { ...options, body: bytes, headers: { "Content-Type": mediaType }, key: null });
  }
  uses(id, query, options) {
    return this.list(`/v1/content/${part(id)}/uses`, query, options);
  }
  /** A content, and what it was derived from. */
  provenance(id, options) {
    return this.all(`/v1/content/${part(id)}/provenance`, {}, options);
  }
  /** Erases a content from every history. */
  async eraseContent(id, { dryRun, ...options } = {}) {
    return (await this.send("DELETE", `/v1/content/${part(id)}`, { ...options, query: { dry_run: dryRun }, key: null })).items;
  }
  /** Deletes everything of a user, and says how much that was. */
  deleteUser(user, options) {
    return this.send("DELETE", `/v1/users/${part(user)}`, { ...options, key: null });
  }
  search(q, query, options) {
    return this.list("/v1/search", { ...query, q }, options);
  }
  usage(query, options) {
    return this.all("/v1/usage", query, options);
  }
  stats(options) {
    return this.send("GET", "/v1/stats", options);
  }
  import(archive, query, options) {
    return this.send("POST", "/v1/import", { ...options, query, body: archive, key: null });
  }
  /** Threads, or the whole store, as a bundle for another store; with its inventory in `against` only what that store lacks. */
  bundle(threads, { against, ...options } = {}) {
    const [method, path] = against === undefined ? ["GET", "/v1/bundle"] : ["POST", "/v1/bundle/against"];
    return this.send(method, path, { ...options, query: { thread: threads }, body: against, key: null, bytes: true });
  }
  inventory(options) {
    return this.send("GET", "/v1/bundle/inventory", { ...options, bytes: true });
  }
  importBundle(bundle, query, options) {
    return this.send("POST", "/v1/bundle", { ...options, query, body: bundle, key: null });
  }
  /** Yields `{id, event, data}` for each commit from `from` on, or from now on; `data` are the records of what changed. */
  events({ from, thread, lastEventID, signal } = {}) {
    return events(this.transport, "/v1/events", { from, thread }, { lastEventID, signal });
  }
}
