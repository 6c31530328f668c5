// The suite of LangGraph for checkpoint savers, as it is published.
import { deltaChannelHistoryTests, specTest } from "@langchain/langgraph-checkpoint-validation";
import { randomUUID } from "node:crypto";
import { LineageSaver } from "@lineage-store/client/langgraph";
import { client } from "./client.js";

const initializer = {
  checkpointerName: "@lineage-store/client/langgraph",
  createCheckpointer: () => new LineageSaver(client, { prefix: `${randomUUID()}/` }),
};

specTest(initializer);
deltaChannelHistoryTests(initializer);
