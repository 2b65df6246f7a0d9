// The official TypeScript client as a program: lists, reads, subscribes, and prints what it hears.
//
//   node watch.mjs OPTIONS          OPTIONS is JSON:
//     clients     folder whose node_modules holds @modelcontextprotocol/client
//     era         "auto" or "legacy"
//     url         the endpoint, with key for a Bearer header; or
//     command     program and arguments of a server on stdio, with env
//     read        addresses to read; "listed" for all that are listed
//     subscribe   addresses and patterns
//     count       resources/updated to wait for, then the program ends by itself
//
// Prints JSON lines: connected, listed, read (one each), subscribed, updated, list_changed, and done.

import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const options = JSON.parse(process.argv[2]);
const require = createRequire(path.join(options.clients, 'package.json'));
const load = name => import(pathToFileURL(require.resolve(name)).href);
const sdk = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');

const say = (what, facts) => process.stdout.write(JSON.stringify({ what, ...facts }) + '\n');

function transport() {
    if (options.url) {
        const headers = options.key ? { Authorization: `Bearer ${options.key}` } : {};
        return new sdk.StreamableHTTPClientTransport(new URL(options.url), { requestInit: { headers } });
    }
    const [command, ...args] = options.command;
    return new StdioClientTransport({ command, args, env: options.env, stderr: 'inherit' });
}

const client = new sdk.Client({ name: 'watch', version: '1' }, { versionNegotiation: { mode: options.era } });
let heard = 0;
let enough;
const ended = new Promise(resolve => (enough = resolve));

client.setNotificationHandler('notifications/resources/updated', note => {
    say('updated', { uri: note.params.uri, meta: note.params._meta });
    if (++heard >= options.count) enough();
});
client.setNotificationHandler('notifications/resources/list_changed', note => {
    say('list_changed', { meta: note.params?._meta });
});

await client.connect(transport());
say('connected', { version: client.getNegotiatedProtocolVersion() });

const { resources } = await client.listResources();
say('listed', { uris: resources.map(one => one.uri) });
for (const uri of options.read === 'listed' ? resources.map(one => one.uri) : options.read) {
    const { contents } = await client.readResource({ uri });
    say('read', { uri, text: contents[0].text });
}

if (options.era === 'legacy') {
    for (const uri of options.subscribe) await client.subscribeResource({ uri });
    say('subscribed', { honoured: options.subscribe });
} else {
    const subscription = await client.listen({ resourceSubscriptions: options.subscribe, resourcesListChanged: true });
    say('subscribed', { honoured: subscription.honoredFilter.resourceSubscriptions });
}

if (options.count > 0) await ended;
if (options.era === 'legacy') for (const uri of options.subscribe) await client.unsubscribeResource({ uri });
await client.close();
say('done', {});
