// Uses `lineage mcp`, or /mcp of a server, with the TypeScript SDK, and prints what it answers as one JSON object.
//   node client.mjs SDK stdio PROGRAM ARG…
//   node client.mjs SDK http URL TOKEN
import { pathToFileURL } from 'node:url';

const [sdk, kind, ...rest] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${sdk}/dist/esm/client/${name}.js`).href);
const { Client } = await load('index');

let transport;
if (kind === 'stdio') {
  const { StdioClientTransport } = await load('stdio');
  transport = new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env, cwd: process.cwd(), stderr: 'inherit' });
} else {
  const { StreamableHTTPClientTransport } = await load('streamableHttp');
  transport = new StreamableHTTPClientTransport(new URL(rest[0]), { requestInit: { headers: { Authorization: `Bearer ${rest[1]}` } } });
}

const client = new Client({ name: 'typescript', version: '1' });
await client.connect(transport);
const call = (name, args) => client.callTool({ name, arguments: args });
const { tools } = await client.listTools();
const { resources } = await client.listResources();
const { resourceTemplates } = await client.listResourceTemplates();
const { prompts } = await client.listPrompts();
const seen = {
  server: client.getServerVersion().name,
  tools: tools.map((tool) => tool.name),
  resources: resources.map((resource) => resource.title),
  templates: resourceTemplates.map((template) => template.uriTemplate),
  prompts: prompts.map((prompt) => prompt.name),
  threads: await call('threads', {}),
  read: await call('read', {}),
  search: await call('search', { query: 'lisbon' }),
  other: await call('read', { thread: 'Another project' }),
  appended: await call('append', { role: 'user', text: 'by typescript' }).catch((error) => ({ error: String(error) })),
  history: await client.readResource({ uri: resources[0].uri }),
  completion: await client.complete({ ref: { type: 'ref/resource', uri: resourceTemplates[0].uriTemplate }, argument: { name: 'thread', value: '' } }),
  prompt: await client.getPrompt({ name: 'continue_from', arguments: {} }),
};
// Two calls at once, one of which is cancelled.
const cancel = new AbortController();
const cancelled = client.callTool({ name: 'usage', arguments: {} }, undefined, { signal: cancel.signal }).catch((error) => String(error));
const both = call('tree', {});
cancel.abort();
seen.cancelled = await cancelled;
seen.tree = await both;
await client.close();
console.log(JSON.stringify(seen));
