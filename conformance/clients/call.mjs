// The official TypeScript client as a program: lists tools and prompts, uses some, and prints what it got.
//
//   node call.mjs OPTIONS           OPTIONS is JSON:
//     clients     folder whose node_modules holds @modelcontextprotocol/client
//     era         "auto" or "legacy"
//     command     program and arguments of a server on stdio, with env
//     calls       name and arguments of each call, made one after the other
//     prompts     name and arguments of prompts to get, if any
//     answer      what the user fills into each form; without it the client shows none
//
// Prints JSON lines: listed, asked (each form), and called (one each); prompts, and got (one each). The tools are listed first: then the client checks every answer
// against the output schema of its tool, and ends with an error where it does not fit.

import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const options = JSON.parse(process.argv[2]);
const require = createRequire(path.join(options.clients, 'package.json'));
const load = name => import(pathToFileURL(require.resolve(name)).href);
const sdk = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');

const say = (what, facts) => process.stdout.write(JSON.stringify({ what, ...facts }) + '\n');

const [command, ...args] = options.command;
const capabilities = options.answer ? { elicitation: {} } : {};
const negotiation = { versionNegotiation: { mode: options.era } };
const client = new sdk.Client({ name: 'call', version: '1' }, { capabilities, ...negotiation });
if (options.answer) {
    client.setRequestHandler('elicitation/create', async request => {
        say('asked', { message: request.params.message, schema: request.params.requestedSchema });
        return { action: 'accept', content: options.answer };
    });
}
await client.connect(new StdioClientTransport({ command, args, env: options.env, stderr: 'inherit' }));

const { tools } = await client.listTools();
say('listed', { names: tools.map(tool => tool.name) });
for (const call of options.calls) say('called', await client.callTool(call));
if (options.prompts) {
    const { prompts } = await client.listPrompts();
    say('prompts', { names: prompts.map(prompt => prompt.name) });
    for (const prompt of options.prompts) say('got', await client.getPrompt(prompt));
}
await client.close();
