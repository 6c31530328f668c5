import type { AgentInputItem, SessionHistoryRewriteAwareSession, SessionHistoryRewriteArgs, SessionHistoryTransactionArgs, SessionHistoryTransactionAwareSession } from "@openai/agents-core";
import type { Client } from "./index.js";

export interface SessionOptions {
  /** Default a random one. */
  sessionId?: string;
  /** Begins the source ids of the threads; default `openai-agents/`. */
  prefix?: string;
  /** The user that a new session belongs to. Who may read a session is a matter of the client's token. */
  user?: string;
}

/** A session of the OpenAI Agents SDK on a store. */
export class LineageSession implements SessionHistoryRewriteAwareSession, SessionHistoryTransactionAwareSession {
  constructor(client: Client, options?: SessionOptions);
  getSessionId(): Promise<string>;
  getItems(limit?: number): Promise<AgentInputItem[]>;
  addItems(items: AgentInputItem[]): Promise<void>;
  popItem(): Promise<AgentInputItem | undefined>;
  clearSession(): Promise<void>;
  replaceHistoryWithCompaction(items: AgentInputItem[]): Promise<void>;
  applyHistoryMutations(args: SessionHistoryRewriteArgs): Promise<void>;
  applyHistoryTransaction(args: SessionHistoryTransactionArgs): Promise<void>;
  /** Makes a session that has the items of this one, or the first `at` of them, and shares them with it. */
  fork(options?: { sessionId?: string; at?: number }): Promise<LineageSession>;
}
