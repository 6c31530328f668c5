/** Any JSON. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** An object of the server, as `lineage … --json` prints it; docs/json.md has the members of each type. */
export interface Record {
  type: string;
  [member: string]: any;
}

export interface ThreadRecord extends Record {
  type: "thread";
  id: string;
  source_id?: string;
  user?: string;
  title?: string;
  branch: string;
  context?: string;
  branches: number;
  messages: number;
  metadata?: Json;
  created_at: string;
  updated_at: string;
}

export interface ContextRecord extends Record {
  type: "context";
  id: string;
  thread?: string;
  kind: string;
  branch?: string;
  parent?: string;
  base: string | null;
  tip: string | null;
  length: number;
  metadata?: Json;
}

export interface BranchRecord extends Record {
  type: "branch";
  name: string;
}

export interface MessageRecord extends Record {
  type: "message";
  id: string;
  parent: string | null;
  position: number;
  kind: "message" | "document" | "asset";
  role: string;
  content_id: string;
  media_type: string;
  size: number;
  text: string;
  /** The body if it is JSON. */
  data?: Json;
  source_id?: string;
  metadata?: Json;
  created_at: string;
}

export interface AppendedRecord extends Record {
  type: "appended";
  context: string;
  ids: string[];
  tip: string;
  length: number;
}

export interface MovedRecord extends Record {
  type: "moved";
  from: string | null;
  to: string | null;
  length: number;
}

export interface ValueRecord extends Record {
  type: "value";
  key: string;
  value?: Json;
}

/** A message to append: one of `text`, `content`, `data` (base64) or `content_id`; or a message of a provider as it is. */
export interface MessageInput {
  role?: string;
  text?: string;
  content?: unknown;
  data?: string;
  content_id?: string;
  name?: string;
  id?: string;
  model?: string;
  user?: string;
  media_type?: string;
  metadata?: Json;
  created_at?: string;
  [member: string]: unknown;
}

/** An operation of a batch: the body of its route, `op`, and the parts of the route's path. `#0` is what operation 0 made. */
export interface Operation {
  op: string;
  [member: string]: unknown;
}

export type Dialect = "openai" | "responses" | "anthropic" | "ui";
export type Query = { [name: string]: string | number | boolean | string[] | undefined };

export interface RequestOptions {
  signal?: AbortSignal;
  /** The Idempotency-Key of a write; default a random one. A write without one (null) is not sent again. */
  key?: string | null;
}
export interface ListOptions extends RequestOptions {
  /** At most so many records. */
  max?: number;
}
export interface TipOptions extends RequestOptions {
  /** Only if this is the tip of the context; "" for an empty history. */
  ifTip?: string | null;
}

export interface StreamEvent<Data = any> {
  /** With which a stream continues. */
  id?: string;
  event: string;
  data: Data;
}

/** Bytes, or a stream of them. A stream is sent once only. */
export type Bytes = Uint8Array | AsyncIterable<Uint8Array>;

export interface ClientOptions {
  /** The address of a server. */
  url?: string;
  /** The path of its socket, in place of the address: no token is needed. */
  socket?: string;
  token?: string;
  /** How often a request is sent again where no answer came; default 3. */
  retries?: number;
  /** How long to wait for a sign of life, in ms; default 120,000. */
  timeout?: number;
}

export interface FindOptions {
  /** The store: its folder, or the address of one on PostgreSQL. Default any. */
  store?: string;
  /** The folder in which servers are found. */
  runtime?: string;
}

export interface FoundServer {
  store: string;
  url: string;
  socket?: string;
  pid: number;
  readOnly: boolean;
  started: string;
}

/** Connects to the server of an address or socket, or else to one that runs on this machine. That one is found again after a restart. */
export function connect(options?: ClientOptions & FindOptions): Promise<Client>;
/** Finds the servers of this user on this machine, the newest first. */
export function findServers(options?: FindOptions): Promise<FoundServer[]>;
/** Finds one server, that may be changed if there is one. */
export function findServer(options?: FindOptions): Promise<FoundServer>;

export class Values {
  list(query?: Query, options?: ListOptions): AsyncGenerator<ValueRecord>;
  get(key: string, query?: Query, options?: RequestOptions): Promise<ValueRecord>;
  set(key: string, value: unknown, options?: RequestOptions): Promise<ValueRecord>;
  delete(key: string, options?: RequestOptions): Promise<void>;
  /** What the owner itself has set under the key, the latest first. */
  history(key: string, options?: RequestOptions): AsyncGenerator<ValueRecord>;
}

/** A history: a branch or another context. */
export class Context {
  readonly client: Client;
  readonly path: string;
  readonly values: Values;
  get(options?: RequestOptions): Promise<ContextRecord>;
  update(body: { [member: string]: unknown }, options?: RequestOptions): Promise<ContextRecord>;
  delete(options?: RequestOptions): Promise<void>;
  messages(query?: Query, options?: ListOptions): AsyncGenerator<MessageRecord>;
  /** The body of a request to the API of a model. */
  request(dialect: Exclude<Dialect, "ui">, query?: Query, options?: RequestOptions): Promise<{ [member: string]: any }>;
  resolved(query?: Query, options?: RequestOptions): Promise<{ resolved: Record; items: Record[] }>;
  append(messages: MessageInput[], options?: TipOptions & { together?: boolean; dialect?: Dialect }): Promise<AppendedRecord>;
  appendFile(bytes: Bytes, options?: RequestOptions & { mediaType?: string; query?: Query }): Promise<AppendedRecord>;
  follow(options?: { after?: string; signal?: AbortSignal }): AsyncGenerator<StreamEvent>;
  move(to: string, options?: TipOptions & { reason?: string }): Promise<MovedRecord>;
  undo(options?: RequestOptions): Promise<MovedRecord>;
  moves(query?: Query, options?: RequestOptions): AsyncGenerator<Record>;
  merge(from: string, options?: RequestOptions): Promise<Record>;
  edit(body: { at: string; [member: string]: unknown }, options?: RequestOptions): Promise<ContextRecord>;
  return(message: MessageInput, options?: RequestOptions): Promise<Record>;
  sendTo(to: string, options?: RequestOptions & { at?: string }): Promise<Record>;
  /** The messages that only this history has (side a), or only the one that ends at `position` (side b), and at the end their number. */
  diff(position: string, query?: Query, options?: ListOptions): AsyncGenerator<Record>;
  documents(query?: { name?: string }, options?: RequestOptions): AsyncGenerator<MessageRecord>;
  document(name: string, query?: { revision?: number }, options?: RequestOptions): Promise<MessageRecord>;
  diffDocument(name: string, query: { from: number; to?: number }, options?: RequestOptions): Promise<Record>;
  /** Erases a message from every history. What other messages have of it beside its text stays: these items have stays. */
  erase(at: string, options?: RequestOptions & { dryRun?: boolean }): Promise<Record[]>;
  alternatives(query?: Query, options?: RequestOptions): AsyncGenerator<Record>;
  offer(body: { [member: string]: unknown }, options?: RequestOptions): Promise<{ items: Record[] }>;
  choose(alternative: string, options?: RequestOptions): Promise<MovedRecord>;
  summaries(query?: Query, options?: RequestOptions): AsyncGenerator<Record>;
  summarize(body: { [member: string]: unknown }, options?: RequestOptions): Promise<Record>;
  deleteSummary(id: string, options?: RequestOptions): Promise<void>;
}

/** A conversation with its branches. */
export class Thread {
  readonly client: Client;
  readonly ref: string;
  readonly path: string;
  readonly values: Values;
  get(options?: RequestOptions): Promise<ThreadRecord>;
  update(body: { title?: string; user?: string; metadata?: Json; merge?: { [member: string]: Json }; if_metadata?: Json }, options?: RequestOptions): Promise<ThreadRecord>;
  /** Deletes the thread; with `user` only if it belongs to that user. */
  delete(options?: RequestOptions & { query?: { user?: string } }): Promise<void>;
  copy(body?: { id?: string; title?: string; user?: string; metadata?: Json; reuse?: boolean }, options?: RequestOptions): Promise<ThreadRecord>;
  branches(query?: Query, options?: ListOptions): AsyncGenerator<BranchRecord>;
  createBranch(body: { name: string; reuse?: boolean; from?: string; empty?: boolean; switch?: boolean; [member: string]: unknown }, options?: RequestOptions): Promise<BranchRecord>;
  updateBranch(name: string, body: { name?: string; active?: true }, options?: RequestOptions): Promise<BranchRecord>;
  deleteBranch(name: string, options?: RequestOptions): Promise<void>;
  checkpoints(query?: Query, options?: ListOptions): AsyncGenerator<Record>;
  setCheckpoint(name: string, at?: string, options?: RequestOptions): Promise<Record>;
  deleteCheckpoint(name: string, options?: RequestOptions): Promise<void>;
  contexts(query?: Query, options?: ListOptions): AsyncGenerator<ContextRecord>;
  fork(body: { from?: string; [member: string]: unknown }, options?: RequestOptions): Promise<ContextRecord>;
  /** The context of a branch or of an id; without a name that of the active branch. */
  context(name?: string): Context;
  /** The histories of the thread as lines that fork off one another. */
  graph(options?: RequestOptions): Promise<{ items: Record[] }>;
  /** A message of the chat that the thread is, by its `id`, or the messages `to` one, the last first. */
  chatMessages(query: { id: string } | { to: string; limit?: number; after?: string }, options?: ListOptions): AsyncGenerator<Record>;
  /** Adds a message after any other, by the ids that their creators chose. No branch moves. */
  addChatMessage(body: { id: string; parent?: string; role: string; kind?: string; data: Json; created_at?: string; replace?: boolean }, options?: RequestOptions): Promise<void>;
  chatBranches(query?: { name?: string; active?: boolean; limit?: number }, options?: ListOptions): AsyncGenerator<Record>;
  createChatBranch(body: { id?: string; name: string; head?: string; active?: boolean; created_at?: string }, options?: RequestOptions): Promise<void>;
  updateChatBranch(id: string, body: { active?: true; head?: string; along?: boolean }, options?: RequestOptions): Promise<void>;
  chatCheckpoints(query?: { name?: string; limit?: number }, options?: ListOptions): AsyncGenerator<Record>;
  setChatCheckpoint(body: { id?: string; name: string; message: string; created_at?: string }, options?: RequestOptions): Promise<void>;
  chatGraph(options?: RequestOptions): Promise<Record>;
  searchChat(q: string, query?: { role?: string[]; limit?: number }, options?: RequestOptions): AsyncGenerator<Record>;
  export(query?: Query, options?: RequestOptions): Promise<Uint8Array>;
  native(options?: RequestOptions): Promise<Uint8Array>;
  resume(body?: { [member: string]: unknown }, options?: RequestOptions): Promise<Record>;
}

/** A store behind a server. */
export class Client {
  constructor(options: ClientOptions);
  readonly values: Values;
  /** Ends idle connections; requests can still be sent. */
  close(): void;
  /** Sends a request of any route. */
  send(method: string, path: string, options?: RequestOptions & { query?: Query; body?: unknown; headers?: { [name: string]: string }; bytes?: boolean }): Promise<any>;
  /** Yields the records of the list of any route. */
  list(path: string, query?: Query, options?: ListOptions): AsyncGenerator<any>;
  all(path: string, query?: Query, options?: RequestOptions): AsyncGenerator<Record>;
  threads(query?: Query, options?: ListOptions): AsyncGenerator<ThreadRecord>;
  /** Threads as chats, with the number of all their messages. */
  chats(query?: Query, options?: ListOptions): AsyncGenerator<Record>;
  createThread(body?: { id?: string; reuse?: boolean; user?: string; title?: string; metadata?: Json; [member: string]: unknown }, options?: RequestOptions): Promise<ThreadRecord>;
  /** A thread by its id, or by `=` and the id that its creator chose. */
  thread(ref: string): Thread;
  createContext(body?: { [member: string]: unknown }, options?: RequestOptions): Promise<ContextRecord>;
  context(id: string): Context;
  valuesOfUser(user: string): Values;
  valuesOfApplication(name: string): Values;
  /** Several changes in one commit: all or none. */
  batch(operations: Operation[], options?: RequestOptions): Promise<(Record | null)[]>;
  content(id: string, options?: RequestOptions): Promise<Uint8Array>;
  putContent(bytes: Bytes, options?: RequestOptions & { mediaType?: string }): Promise<Record>;
  uses(id: string, query?: Query, options?: ListOptions): AsyncGenerator<MessageRecord>;
  provenance(id: string, options?: RequestOptions): AsyncGenerator<Record>;
  /** Erases a content from every history. */
  eraseContent(id: string, options?: RequestOptions & { dryRun?: boolean }): Promise<Record[]>;
  /** Deletes everything of a user. */
  deleteUser(user: string, options?: RequestOptions): Promise<{ threads: number; messages: number; values: number }>;
  search(q: string, query?: Query, options?: ListOptions): AsyncGenerator<Record>;
  usage(query?: Query, options?: RequestOptions): AsyncGenerator<Record>;
  stats(options?: RequestOptions): Promise<Record>;
  /** Threads, or the whole store, as a bundle for another store; with its inventory in `against` only what that store lacks. */
  bundle(threads?: string[], options?: RequestOptions & { against?: Bytes }): Promise<Uint8Array>;
  /** What the store has. */
  inventory(options?: RequestOptions): Promise<Uint8Array>;
  importBundle(bundle: Bytes, query?: { on_conflict?: "keep-both" | "take-theirs" | "fail" }, options?: RequestOptions): Promise<Record>;
  import(archive: Bytes, query?: { format?: string; user?: string; prefix?: string }, options?: RequestOptions): Promise<Record>;
  events(options?: { from?: number; thread?: string | string[]; lastEventID?: string; signal?: AbortSignal }): AsyncGenerator<StreamEvent<Record[]>>;
}

/** An answer that says what went wrong. */
export class LineageError extends Error {
  /** The type of the problem, such as `not-found`, `exists` or `tip-moved`. */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail?: string;
  /** Further members of the problem. */
  readonly members: { [member: string]: unknown };
  /** Of `tip-moved`: the tip that the context has; "" for an empty history. */
  readonly tip?: string;
}

/** No answer came. */
export class ConnectionError extends Error {}

/** Reports whether an error is a problem of one of these types. */
export function is(err: unknown, ...types: string[]): err is LineageError;
