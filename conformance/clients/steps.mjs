// What every client of Node does, in the same order as steps.py, with the same lines on stdout.
//
// A runner gives run() a function that takes the work and gives an object with some of the methods named there.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const LIMIT = 60_000;
export const work = JSON.parse(process.argv[2]);
const require = createRequire(path.join(work.packages, 'package.json'));
export const load = name => import(pathToFileURL(require.resolve(name)).href);
export const versionOf = name => JSON.parse(readFileSync(path.join(work.packages, 'node_modules', name, 'package.json'))).version;

const say = (what, facts) => process.stdout.write(JSON.stringify({ what, ...facts }) + '\n');
const failed = (step, error, facts) => {
    console.error(error);
    say('failed', { step, error: `${error.name}: ${error.message}`.slice(0, 500), ...facts });
};
export const textOf = blocks =>
    blocks.map(one => one.content ?? one).flat().filter(one => one.text).map(one => one.text).join('\n');
export const contentsOf = ([content]) => content.text ?? content.blob;

export async function run(name, opened) {
    say('versions', { [name]: versionOf(name) });
    let client;
    try {
        client = await opened(work);
        await walk(client);
    } catch (error) {
        failed('session', error);
    }
    await client?.close();
}

async function walk(client) {
    const steps = ['version', 'resources', 'read', 'tools', 'call', 'prompt', 'agent', 'subscribe'];
    say('can', { steps: steps.filter(step => client[step]).sort() });
    const step = async (name, doing, facts) => {
        if (!client[name]) return;
        let timer;
        const late = new Promise((_, no) => (timer = setTimeout(() => no(new Error('no answer in time')), LIMIT)));
        try {
            await Promise.race([doing(), late]);
        } catch (error) {
            failed(name, error, facts);
        } finally {
            clearTimeout(timer);
        }
    };
    let uris = [];
    await step('version', async () => say('version', { version: await client.version() }));
    await step('resources', async () => say('resources', { uris: (uris = await client.resources()) }));
    for (const uri of uris) await step('read', async () => say('read', { uri, text: await client.read(uri) }), { uri });
    await step('tools', async () => say('tools', { names: await client.tools() }));
    for (const { name, arguments: given } of work.calls)
        await step('call', async () => say('call', { name, text: await client.call(name, given) }), { name });
    await step('prompt', async () => say('prompt', { text: await client.prompt(work.prompt.name, work.prompt.arguments) }));
    await step('subscribe', async () => {
        const uri = uris.find(one => one.endsWith(work.watch));
        let heard;
        const told = new Promise(resolve => (heard = resolve));
        await client.subscribe(uri, heard);
        say('subscribed', { uri });
        say('subscribe', { uri: await told });
    });
}
