import { contentsOf, load, run, textOf } from './steps.mjs';

const name = '@modelcontextprotocol/client';

await run(name, async ({ url, key, command, env }) => {
    const sdk = await load(name);
    const { StdioClientTransport } = await load(`${name}/stdio`);
    const client = new sdk.Client({ name: 'clients', version: '1' }, { versionNegotiation: { mode: 'auto' } });
    let heard = () => {};
    client.setNotificationHandler('notifications/resources/updated', note => heard(note.params.uri));
    const headers = { Authorization: `Bearer ${key}` };
    await client.connect(
        url
            ? new sdk.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
            : new StdioClientTransport({ command: command[0], args: command.slice(1), env, stderr: 'inherit' })
    );
    return {
        version: () => client.getNegotiatedProtocolVersion(),
        resources: async () => {
            const found = [];
            let cursor;
            do {
                const page = await client.listResources(cursor ? { cursor } : {});
                found.push(...page.resources.map(one => one.uri));
                cursor = page.nextCursor;
            } while (cursor);
            return found;
        },
        read: async uri => contentsOf((await client.readResource({ uri })).contents),
        tools: async () => (await client.listTools()).tools.map(one => one.name),
        call: async (name, given) => textOf((await client.callTool({ name, arguments: given })).content),
        prompt: async (name, given) => textOf((await client.getPrompt({ name, arguments: given })).messages),
        subscribe: async (uri, hear) => {
            heard = hear;
            await client.listen({ resourceSubscriptions: [uri] });
        },
        close: () => client.close()
    };
});
