import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { contentsOf, run, textOf, work } from './steps.mjs';

const library = path.join(work.packages, 'node_modules', 'mcporter', 'dist', 'index.js');

await run('mcporter', async ({ url, key, command, env }) => {
    const { createRuntime } = await import(pathToFileURL(library).href);
    const where = url
        ? { kind: 'http', url: new URL(url), headers: { Authorization: `Bearer ${key}` } }
        : { kind: 'stdio', command: command[0], args: command.slice(1), cwd: process.cwd() };
    const runtime = await createRuntime({ servers: [{ name: 'octavo', command: where, env }] });
    return {
        resources: async () => (await runtime.listResources('octavo')).resources.map(one => one.uri),
        read: async uri => contentsOf((await runtime.readResource('octavo', uri)).contents),
        tools: async () => (await runtime.listTools('octavo')).map(one => one.name),
        call: async (name, given) => textOf((await runtime.callTool('octavo', name, { args: given })).content),
        close: () => runtime.close()
    };
});
