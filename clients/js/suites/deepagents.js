// What the suites of the repository of deepagents get for @deepagents/context: the published package, with our store for its own two.
import { randomUUID } from "node:crypto";
import { LineageContextStore } from "@lineage-store/client/deepagents";
import { client } from "../test/client.js";

export * from "@deepagents/context";

/** A store with chats of its own, whatever file is named. */
class OwnStore extends LineageContextStore {
  constructor() {
    super(client, { prefix: `${randomUUID()}/` });
  }
}

export { OwnStore as InMemoryContextStore, OwnStore as SqliteContextStore };
