// Compiled, and not run: the types are those of the frameworks.
import type { SessionStore } from "@anthropic-ai/claude-agent-sdk";
import type { ContextStore } from "@deepagents/context";
import { StateGraph, MessagesAnnotation } from "@langchain/langgraph";
import type { Session, SessionHistoryTransactionAwareSession } from "@openai/agents-core";
import { connect, is, type MessageRecord } from "@lineage-store/client";
import { LineageSessionStore } from "@lineage-store/client/claude-agent";
import { HeadConflictError, LineageContextStore } from "@lineage-store/client/deepagents";
import { LineageSaver } from "@lineage-store/client/langgraph";
import { LineageSession } from "@lineage-store/client/openai-agents";

const client = await connect({ store: "~/.lineage", url: "http://127.0.0.1:7411", token: "t" });
export const graph = new StateGraph(MessagesAnnotation).compile({ checkpointer: new LineageSaver(client, { user: "ann" }) });
export const session: Session & SessionHistoryTransactionAwareSession = new LineageSession(client, { sessionId: "s" });
export const sessions: SessionStore = new LineageSessionStore(client, { user: "ann" });
export const contexts: ContextStore = new LineageContextStore(client, { user: "ann" }).chat("c");
try {
  const { tip } = await client.thread("=key").context().append([{ role: "user", text: "hello" }], { ifTip: "" });
  for await (const m of client.thread("=key").context("main").messages({ last: 3 })) {
    const message: MessageRecord = m;
    console.log(message.text, tip);
  }
} catch (err) {
  if (is(err, "tip-moved")) console.log(err.tip?.length);
  if (err instanceof HeadConflictError) console.log(err.actualHead?.length);
  // @ts-expect-error: there is no such method
  client.unknown();
}
