// Migrating a database of the version before the management interface keeps all of its rows unchanged.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { migrate, readMigrations } from './database.ts'

const OLD_SCHEMA = 4

let db: Database
let before: Readonly<Record<string, readonly Record<string, unknown>[]>>

const rowsOf = (table: string): Record<string, unknown>[] =>
  db.query('SELECT * FROM '.concat(table, ' ORDER BY 1, 2')).all() as Record<string, unknown>[]

/** Rows in most tables, with a value in every column. */
const seed = `
  INSERT INTO account (id, name, kind, balance, held, credit_limit, keeps_bodies, frozen_ms, created_ms)
    VALUES (77, 'a', 'prepaid', 900, 100, 50, 1, 7, 8);
  UPDATE account SET balance = -1000 WHERE id = 4;
  UPDATE account SET balance = 100 WHERE id = 1;
  INSERT INTO api_key (id, digest, suffix, name, account_id, tier, qpm, clamps, keeps_bodies, created_ms, revoked_ms,
      strict, allows, denies, requires, explains)
    VALUES (88, randomblob(32), 'abcd', 'k', 77, 'pro', 9, 1, 1, 3, 4, 1, 'a/*', 'b/*', 'eu', 1);
  INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms, reference, author)
    VALUES (5, 'top_up', 4, 77, 1000, 1, 'r', 'x'), (6, 'charge', 77, 1, 100, 1, NULL, NULL);
  INSERT INTO hold (call_id, kind, account_id, key_id, amount, used, draft) VALUES (7, 'task', 77, 88, 100, 5, '{}');
  INSERT INTO budget (scope_id, span, cap, ceiling, spent, held, period) VALUES (88, 'day', 500, 600, 5, 100, 3);
  INSERT INTO code (id, digest, batch, amount, author, made_ms, expires_ms)
    VALUES (9, randomblob(32), 'b', 5, 'x', 1, 2);
  INSERT INTO price (version, model, origin, price, author, made_ms) VALUES (3, 'p/m', 'operator', '{}', 'x', 1);
  INSERT INTO idempotency (key_id, name, fingerprint, call_id, done) VALUES (88, 'i', randomblob(32), 6, 1);
  INSERT INTO limit_rule (resource, span, amount, key_id, account_id, tier, model, per, author, changed_ms)
    VALUES ('requests', 'day', 37, 88, 77, 'pro', 'a/*', 'key', 'x', 4);
  INSERT INTO limit_debt VALUES ('1 key 88', 5, 6);
  INSERT INTO model_route VALUES ('fast', 'balanced', '[]', 'x', 4);
  INSERT INTO setting (name, value) VALUES ('s', 'v');
  INSERT INTO channel_rule VALUES ('openai#abcdef', 1, 3, 4, 5, 6, 7, zeroblob(40), 'eu,us', 'x', 1234);
`

const MONEY_TABLES = [
  'account',
  'api_key',
  'transfer',
  'hold',
  'budget',
  'code',
  'price',
  'idempotency',
  'limit_rule',
] as const
const OTHER_TABLES = ['limit_debt', 'model_route', 'setting', 'tier', 'record'] as const

beforeAll(() => {
  db = new Database(':memory:', { strict: true })
  db.run('PRAGMA foreign_keys = ON')
  db.run('PRAGMA recursive_triggers = ON')
  migrate(db, { migrations: readMigrations().slice(0, OLD_SCHEMA) })
  db.run(seed)
  before = Object.fromEntries([...MONEY_TABLES, ...OTHER_TABLES, 'channel_rule'].map(table => [table, rowsOf(table)]))
  migrate(db)
})
afterAll(() => db.close())

test.each([...MONEY_TABLES, ...OTHER_TABLES])('the rows of %s are unchanged', table => {
  const columns = Object.keys(before[table]![0] ?? {}).filter(name => name !== 'clamps') // replaced by strict_cap
  const cellsOf = (rows: readonly Record<string, unknown>[]) =>
    rows.map(row => Object.fromEntries(columns.map(name => [name, row[name]])))
  expect(cellsOf(rowsOf(table))).toEqual(cellsOf(before[table]!))
})

test('the rules of a channel are carried over to the channel table', () => {
  const [row] = rowsOf('channel')
  const [{ channel, ...rules }] = before.channel_rule as [Record<string, unknown>]
  expect(row).toMatchObject({ id: channel, ...rules, created_ms: 1_234, provider: null, credential: null })
  expect(rowsOf('channel')).toHaveLength(1)
})

test('no account, key or code loses a right', () => {
  expect(rowsOf('account').at(-1)).toMatchObject({ type: 'team', tier: null, allows: null, denies: null, version: 1 })
  const open = { expires_ms: null, disabled_ms: null, endpoints: null, addresses: null, old_digest: null, pepper: null }
  expect(rowsOf('api_key')[0]).toMatchObject(open)
  expect(rowsOf('code')[0]).toMatchObject({ voided_ms: null, pepper: null })
})
