import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver, type ChannelVersions, type Checkpoint, type CheckpointListOptions, type CheckpointMetadata, type CheckpointTuple, type PendingWrite,
  type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import type { Client } from "./index.js";

export interface SaverOptions {
  /** Begins the source ids of the threads; default `langgraph/`. Savers with different ones do not see each other's threads. */
  prefix?: string;
  /** The user that new threads belong to. Only that user's threads are listed. Who may read a thread is a matter of the client's token. */
  user?: string;
  serde?: SerializerProtocol;
}

/** A checkpoint saver of LangGraph on a store. */
export class LineageSaver extends BaseCheckpointSaver {
  constructor(client: Client, options?: SaverOptions);
  getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined>;
  list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple>;
  put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, newVersions: ChannelVersions): Promise<RunnableConfig>;
  putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath?: string): Promise<void>;
  deleteThread(threadId: string): Promise<void>;
  /** Makes a thread with the checkpoints of another, which it shares with it. */
  copyThread(sourceId: string, targetId: string): Promise<void>;
  /** Deletes all checkpoints of threads but the latest of each namespace and what it needs; or all. */
  prune(threadIds: Iterable<string>, options?: { strategy?: "keep_latest" | "delete" }): Promise<void>;
}
