// The Inspector as people use it on a command line: one process for each request.

import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

import { contentsOf, run, textOf, work } from './steps.mjs';

const name = '@modelcontextprotocol/inspector';
const program = path.join(work.packages, 'node_modules', name, 'clients', 'launcher', 'build', 'index.js');

await run(name, async ({ url, key, command, env }) => {
    // It has options named as ours, so a command with options stands in a file.
    if (command) writeFileSync('mcp.json', JSON.stringify({ mcpServers: { octavo: { command: command[0], args: command.slice(1), env } } }));
    const target = url
        ? [url, '--transport', 'http', '--header', `Authorization: Bearer ${key}`]
        : ['--config', path.resolve('mcp.json'), '--server', 'octavo'];
    const ask = async (...method) => {
        const asked = [program, '--cli', ...target, '--protocol-era', 'auto', '--method', ...method];
        const { stdout } = await promisify(execFile)(process.execPath, asked, { maxBuffer: 1 << 26 });
        return JSON.parse(stdout);
    };
    const flags = (flag, values) =>
        Object.entries(values).flatMap(([key, value]) => [flag, `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`]);
    return {
        resources: async () => (await ask('resources/list')).resources.map(one => one.uri),
        read: async uri => contentsOf((await ask('resources/read', '--uri', uri)).contents),
        tools: async () => (await ask('tools/list')).tools.map(one => one.name),
        call: async (name, values) => textOf((await ask('tools/call', '--tool-name', name, ...flags('--tool-arg', values))).content),
        prompt: async (name, values) =>
            textOf((await ask('prompts/get', '--prompt-name', name, ...flags('--prompt-args', values))).messages),
        close: () => {}
    };
});
