// The suite of the repository of the Claude Agent SDK for session stores, which the test that runs this has copied here.
import { randomUUID } from "node:crypto";
import { LineageSessionStore } from "@lineage-store/client/claude-agent";
import { client } from "../test/client.js";
import { runSessionStoreConformance } from "./conformance.ts";

runSessionStoreConformance(() => new LineageSessionStore(client, { prefix: `${randomUUID()}/` }));
