// Nothing calls out: see guard.py, which does the same for Python. Loaded by NODE_OPTIONS into every Node process.

import { appendFileSync } from 'node:fs';
import net from 'node:net';

const local = /^(localhost|127(\.\d+){3}|::1|\[::1\])$/;
const connect = net.Socket.prototype.connect;

net.Socket.prototype.connect = function (...given) {
    const [first] = Array.isArray(given[0]) ? given[0] : given;
    const host = typeof first === 'object' ? (first.path ? null : first.host) : typeof first === 'number' ? given[1] : null;
    if (typeof host === 'string' && !local.test(host)) {
        if (process.env.OCTAVO_CALLED_OUT) appendFileSync(process.env.OCTAVO_CALLED_OUT, `${host}\n`);
        this.destroy(new Error(`${host} is not this machine`));
        return this;
    }
    return connect.apply(this, given);
};
