// The suite of LangGraph for checkpoint savers, as it is published.
import { deltaChannelHistoryTests, specTest } from "@langchain/langgraph-checkpoint-validation";
import { randomUUID } from "node:crypto";
import { connect } from "@lineage-store/client";
import { LineageSaver } from "@lineage-store/client/langgraph";

const client = await connect({ store: process.env.LINEAGE_STORE, runtime: process.env.LINEAGE_RUNTIME });

const initializer = {
  checkpointerName: "@lineage-store/client/langgraph",
  createCheckpointer: () => new LineageSaver(client, { prefix: `${randomUUID()}/` }),
  afterAll: () => client.close(),
};

specTest(initializer);
deltaChannelHistoryTests(initializer);
