// The examples of the documentation run as they are, and can be repeated.
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const page = await readFile(join(process.env.LINEAGE_DOCS, "frameworks.md"), "utf8");
const examples = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map((m) => m[1]);

const printed = {
  client: "user Where to?\ntrue true\n",
  langgraph: "",
  "openai-agents": "[ { type: 'message', role: 'user', content: 'hello' } ]\n",
  "claude-agent": "{ role: 'user', content: 'hello' }\n",
  deepagents: "main-v2 2\n",
  "ai": "[ 'Where to?', 'To the sea.' ]\n[ 'Where to in winter?', 'To the sea.' ]\n",
};

it.each(Object.entries(printed).map(([name, text], i) => [name, text, examples[i]]))("the example of %s", async (name, text, example) => {
  const file = join(import.meta.dirname, `example-${name}.mjs`);
  await writeFile(file, example);
  const env = { ...process.env, XDG_RUNTIME_DIR: dirname(process.env.LINEAGE_RUNTIME) };
  for (const run of ["first", "second"]) {
    const { stdout } = await promisify(execFile)(process.execPath, [file], { env });
    expect(stdout, run).toBe(text);
  }
});

it("every example", () => expect(examples).toHaveLength(Object.keys(printed).length));
