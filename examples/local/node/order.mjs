// One order, once, in Node: `pg`, plain transactions.
//
// Fifty connections place the same order under one key at the same moment.
//
//     npm ci && DATABASE_URL=postgres://shop@host/database node order.mjs

import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const CALLERS = 50;

// One attempt in one transaction: the order's number, or how many seconds to wait.
async function attempt(client, key, item) {
    const fingerprint = createHash('sha256').update(item).digest();
    await client.query('BEGIN');
    try {
        const { rows: [claim] } = await client.query(
            `SELECT outcome, token, body, retry_after FROM idem.claim(
                 principal => 'shop', endpoint => 'orders.create', key => $1,
                 fingerprint => $2, local_only => true)`,
            [key, fingerprint],
        );
        let number;
        if (claim.outcome === 'execute') {
            const { rows: [order] } = await client.query(
                'INSERT INTO orders (item) VALUES ($1) RETURNING number', [item]);
            number = order.number;
            await client.query('SELECT idem.complete(token => $1, status => 201, body => $2)',
                               [claim.token, Buffer.from(number)]);
        } else if (claim.outcome === 'replay') {
            number = claim.body.toString();
        } else if (claim.outcome !== 'in_progress') {
            throw new Error(`not ours to execute: ${claim.outcome}`);
        }
        await client.query('COMMIT');
        return { number, wait: claim.retry_after };
    } catch (error) {
        await client.query('ROLLBACK');
        throw error;
    }
}

// The number of the order, whoever has made it. Safe to call again at any time.
async function place(client, key, item) {
    for (let turn = 0; turn < 10; turn++) {
        const { number, wait } = await attempt(client, key, item);
        if (number !== undefined) {
            return number;
        }
        await sleep(wait * 1000);
    }
    throw new Error('somebody else is still at it');
}

const key = `node-${randomUUID()}`;
const item = `lamp ${key}`;
const clients = Array.from({ length: CALLERS },
                           () => new pg.Client({ connectionString: process.env.DATABASE_URL }));
await Promise.all(clients.map((client) => client.connect()));
const told = await Promise.all(clients.map((client) => place(client, key, item)));
const { rows } = await clients[0].query('SELECT number FROM orders WHERE item = $1', [item]);
await Promise.all(clients.map((client) => client.end()));

const numbers = [...new Set(told)];
const made = rows.map((row) => row.number);
console.log(`node: ${told.length} callers were told: ${numbers}; rows: ${made}`);
process.exitCode = numbers.length === 1 && made.length === 1 && made[0] === numbers[0] ? 0 : 1;
