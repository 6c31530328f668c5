import type { SessionKey, SessionStore, SessionStoreEntry, SessionSummaryEntry } from "@anthropic-ai/claude-agent-sdk";
import type { Client } from "./index.js";

export interface SessionStoreOptions {
  /** Begins the source ids of the threads; default `claude-agent/`. */
  prefix?: string;
  /** The user that new sessions belong to. Only the sessions of the user are listed. */
  user?: string;
}

/** A session store of the Claude Agent SDK on a store. */
export class LineageSessionStore implements SessionStore {
  constructor(client: Client, options?: SessionStoreOptions);
  append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void>;
  load(key: SessionKey): Promise<SessionStoreEntry[] | null>;
  listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]>;
  listSessionSummaries(projectKey: string): Promise<SessionSummaryEntry[]>;
  delete(key: SessionKey): Promise<void>;
  listSubkeys(key: { projectKey: string; sessionId: string }): Promise<string[]>;
}
