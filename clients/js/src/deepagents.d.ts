import { ContextStore, type BranchData, type BranchInfo, type ChatData, type ChatInfo, type CheckpointData, type CheckpointInfo, type DeleteChatOptions, type GraphData, type ListChatsOptions, type MessageData, type SearchOptions, type SearchResult, type StoredChatData } from "@deepagents/context";
import type { Client } from "./index.js";

export interface ContextStoreOptions {
  /** Begins the source ids of the threads; default `deepagents/`. */
  prefix?: string;
  /** The user whose chats are listed and, by methods without a chat id, searched. */
  user?: string;
  /** As of {@link LineageContextStore.chat}. */
  chatId?: string;
}

/** A context store of deepagents on a store. */
export class LineageContextStore extends ContextStore {
  constructor(client: Client, options?: ContextStoreOptions);
  /** Returns a store whose methods without a chat id work on this chat only. Several chats can have messages with the same id. */
  chat(chatId: string): LineageContextStore;
  createChat(chat: ChatData): Promise<StoredChatData>;
  upsertChat(chat: ChatData): Promise<StoredChatData>;
  getChat(chatId: string): Promise<StoredChatData | undefined>;
  updateChat(chatId: string, updates: Partial<Pick<ChatData, "title" | "metadata">>): Promise<StoredChatData>;
  listChats(options?: ListChatsOptions): Promise<ChatInfo[]>;
  deleteChat(chatId: string, options?: DeleteChatOptions): Promise<boolean>;
  addMessage(message: MessageData): Promise<void>;
  getMessage(messageId: string): Promise<MessageData | undefined>;
  getMessageChain(headId: string): Promise<MessageData[]>;
  getMessages(chatId: string): Promise<MessageData[]>;
  hasChildren(messageId: string): Promise<boolean>;
  createBranch(branch: BranchData): Promise<void>;
  getBranch(chatId: string, name: string): Promise<BranchData | undefined>;
  getActiveBranch(chatId: string): Promise<BranchData | undefined>;
  setActiveBranch(chatId: string, branchId: string): Promise<void>;
  updateBranchHead(branchId: string, messageId: string | null): Promise<void>;
  listBranches(chatId: string): Promise<BranchInfo[]>;
  createCheckpoint(checkpoint: CheckpointData): Promise<void>;
  getCheckpoint(chatId: string, name: string): Promise<CheckpointData | undefined>;
  listCheckpoints(chatId: string): Promise<CheckpointInfo[]>;
  deleteCheckpoint(chatId: string, name: string): Promise<void>;
  searchMessages(chatId: string, query: string, options?: SearchOptions): Promise<SearchResult[]>;
  getGraph(chatId: string): Promise<GraphData>;
}

/** Another program has added to the branch. The message that was to be its head is in the chat. */
export class HeadConflictError extends Error {
  readonly branchId: string;
  readonly messageId: string | null;
  readonly actualHead: string | null;
}
