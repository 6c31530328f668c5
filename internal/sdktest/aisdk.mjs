// Reads histories of UI messages, a JSON list a line, and prints for each an empty line, or what the AI SDK refuses.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(process.argv[2] + '/'));
const { convertToModelMessages, validateUIMessages } = await import(pathToFileURL(require.resolve('ai')));

for await (const line of createInterface({ input: process.stdin })) {
  let refused = '';
  try {
    const messages = JSON.parse(line);
    if (messages.length > 0) {
      await validateUIMessages({ messages });
      await convertToModelMessages(messages, { ignoreIncompleteToolCalls: true });
    }
  } catch (e) {
    refused = String(e);
  }
  console.log(JSON.stringify(refused));
}
