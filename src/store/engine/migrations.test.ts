// Every migration since the version before the management interface keeps all rows: the fixture has a value in every
// column of every table before each migration, and all of them are compared after it.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { migrate, readMigrations } from './database.ts'

type Row = Readonly<Record<string, unknown>>
type Tables = Readonly<Record<string, readonly Row[]>>

const OLD_SCHEMA = 4

/** Run after the migration of that number: rows and values for the tables and columns that it has created. */
const seeds: Readonly<Record<number, string>> = {
  [OLD_SCHEMA]: `
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
    INSERT INTO code VALUES
      (9, randomblob(32), 'b', 5, 'x', 1, 2, NULL, NULL), (10, randomblob(32), 'b', 5, 'x', 1, 2, 3, 77);
    INSERT INTO price (version, model, origin, price, author, made_ms) VALUES (3, 'p/m', 'operator', '{}', 'x', 1);
    INSERT INTO idempotency (key_id, name, fingerprint, call_id, done) VALUES (88, 'i', randomblob(32), 6, 1);
    INSERT INTO kept_answer VALUES (6, randomblob(9));
    INSERT INTO record VALUES (6, 88, 77, 'openai-chat', 'p', 'm', 'p#abcdef', 502, 'upstream_failed', 'client_left',
      'left_reading', 'reported', 1, 11, 12, 13, 14, 15, 100, 16, 17, 3, '[]', '[1]', '{}', 18, 19, 'u', 't', 'thinking',
      'cafe', 'beef', 'fast', '{"a":1}');
    INSERT INTO kept_response
      VALUES (1, 77, 'resp_1', 88, 'completed', 'm', 'p#abcdef', 'up_1', 'resp_0', 1, 2, 3, randomblob(9));
    INSERT INTO kept_reasoning VALUES (1, 77, 'call_1', 2, 3, randomblob(9));
    INSERT INTO kept_file VALUES (1, 77, 'file-1', 'p#abcdef', 2, 3);
    INSERT INTO task VALUES
      (7, 77, 'cgt-1', 88, 'p', 'm', 'p#abcdef', '{}', 'up_2', 'running', 1, 2, 3, 4, 5, randomblob(9));
    INSERT INTO count_factor VALUES ('p/m', 3, 1.25, 0.5);
    INSERT INTO limit_rule (resource, span, amount, key_id, account_id, tier, model, per, author, changed_ms)
      VALUES ('requests', 'day', 37, 88, 77, 'pro', 'a/*', 'key', 'x', 4);
    INSERT INTO limit_debt VALUES ('1 key 88', 5, 6);
    INSERT INTO model_route VALUES ('fast', 'balanced', '[]', 'x', 4);
    INSERT INTO setting (name, value) VALUES ('s', 'v');
    INSERT INTO channel_rule VALUES ('openai#abcdef', 1, 3, 4, 5, 6, 7, zeroblob(40), 'eu,us', 'x', 1234);`,
  5: `INSERT INTO audit VALUES (1, 2, 'cli', '127.0.0.1', 'req_1', 'key.create', 'key_1', 77, '{}', randomblob(32));`,
  6: `
    INSERT INTO person VALUES (11, 'a@b.test', 'A', 'owner', 'hash', 1, 2, 3, 4, 5, 6);
    INSERT INTO member VALUES (77, 11, 3, 4, 5);
    INSERT INTO session VALUES (12, 11, 1, 2, 3, 4, 'revoked', '::1', '::', 'agent', randomblob(9));
    INSERT INTO refresh VALUES (randomblob(32), 12, 1, 2);
    INSERT INTO totp VALUES (11, randomblob(9), 2, 3);
    INSERT INTO recovery_code VALUES (11, randomblob(32), 1);
    INSERT INTO invitation VALUES
      (13, randomblob(32), 'join', 'a@b.test', 'member', 77, 2, 11, 1, 2, 3, 11, 4, 5);`,
  7: `
    UPDATE api_key SET expires_ms = 1, disabled_ms = 2, endpoints = 'chat', addresses = '10.0.0.0/8',
      old_digest = randomblob(32), old_until_ms = 3, old_pepper = '0badcafe';
    UPDATE account SET type = 'personal', tier = 'pro', allows = 'a/*', denies = 'b/*' WHERE id = 77;`,
  8: `
    INSERT INTO provider VALUES ('mine', '{}', 'x', 1, 2, 3);
    INSERT INTO channel VALUES ('ch_1', 1, 2, 3, 4, 5, 6, randomblob(40), 'eu', 'mine', 'n', 'https://a.test/v1',
      'https://a.test', randomblob(40), 'abcd', '{}', '{"a":1}', '{"b":1}', 'x', 7, 8, 9);`,
  9: `
    UPDATE code SET voided_ms = 3 WHERE id = 9;
    INSERT INTO webhook VALUES
      (14, 77, 'https://a.test/secret', 'https://a.test', 'balance.low', randomblob(40), 1, 2, 'x', 3, 4);
    INSERT INTO webhook_delivery VALUES (15, 14, 'balance.low', 77, '{}', 1, 2, 3, 1, 4, 200, 5, 'e');
    INSERT INTO balance_alert VALUES (77, 5, 2, 3);`,
  10: `
    INSERT INTO record_deletion VALUES (16, 77, 88, 'u', 1, 9, 5, 2, 'x', 3, 4);
    INSERT INTO deleted_record VALUES (3, 77, 4, 5);
    INSERT INTO deleted_sum VALUES (77, 3, 4, 5, 6);`,
  11: `
    INSERT INTO secret_mark VALUES ('pepper', '0badcafe', 1, 2, 1);
    UPDATE api_key SET pepper = '0badcafe';
    UPDATE code SET pepper = '0badcafe';`,
  14: `INSERT INTO kept_reference VALUES (1, 77, 'file:1', 'ch_1', 2, 3);`,
  17: `
    INSERT INTO service_token VALUES (17, randomblob(32), 'abcd', 't', 'member', 77, 2, 'cli', 1, 2, 3, 4,
      randomblob(32), 5, 6);`,
  18: `
    UPDATE channel SET credential_from = 'env:KEY' WHERE id = 'ch_1';
    UPDATE webhook SET secret_from = 'file:a', secret_mark = '0badcafe';`,
  20: 'UPDATE session SET previous = randomblob(32);',
  21: `UPDATE api_key SET playground_of = 'usr_1' WHERE id = 88;`,
  22: `UPDATE person SET preferences = '{"theme":"dark"}';`,
  23: `INSERT INTO download_ticket VALUES (randomblob(32), 12, '{}', 3);`,
  24: `UPDATE record SET conversation = '0123456789abcdef';`,
  25: `INSERT INTO daily_hash VALUES (1, 77, 20000, 2, 900, 'charge', 6, randomblob(32));`,
}

/** What the migration of that number is meant to change in rows that were there before it. */
const changes: Readonly<Record<number, (before: Tables) => Tables>> = {
  // The rules of a channel are carried over to the channel table.
  8: ({ channel_rule = [], ...rest }) => ({
    ...rest,
    channel: channel_rule.map(({ channel: id, changed_ms, version: _old, ...rule }) => ({
      ...rule,
      id,
      changed_ms,
      created_ms: changed_ms,
      version: changed_ms,
      provider: null,
      credential: null,
    })),
  }),
  // `clamps` is replaced by `strict_cap`, which is off; a key that this changes has another version.
  16: ({ api_key = [], ...rest }) => ({
    ...rest,
    api_key: api_key.map(({ clamps, version, ...key }) => ({
      ...key,
      strict_cap: 0,
      version: Number(version) + Number(clamps),
    })),
  }),
}

let db: Database

const rowsOf = (table: string): Row[] => db.query('SELECT * FROM '.concat(table, ' ORDER BY 1, 2')).all() as Row[]

const tablesOf = (): Tables => {
  const names = db.query("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1").all() as { name: string }[]
  return Object.fromEntries(names.map(({ name }) => [name, rowsOf(name)]))
}

const emptyColumns = (tables: Tables): string[] =>
  Object.entries(tables).flatMap(([table, rows]) => {
    const columns = db.query('PRAGMA table_info('.concat(table, ')')).all() as { name: string }[]
    const empty = columns.filter(({ name }) => rows.every(row => row[name] === null))
    return empty.map(({ name }) => `${table}.${name}`)
  })

interface Step {
  readonly before: Tables
  readonly after: Tables
  /** The columns without a value in the fixture, before the next migration. */
  readonly empty: readonly string[]
}

const migrations = readMigrations()
const numbers = migrations.map(({ version }) => version).filter(version => version > OLD_SCHEMA)
const steps: Record<number, Step> = {}

beforeAll(() => {
  db = new Database(':memory:', { strict: true })
  db.run('PRAGMA foreign_keys = ON')
  db.run('PRAGMA recursive_triggers = ON')
  let before: Tables = {}
  for (const number of [OLD_SCHEMA, ...numbers]) {
    migrate(db, { migrations: migrations.slice(0, number) })
    const after = tablesOf()
    db.run(seeds[number] ?? 'SELECT 1')
    const seeded = tablesOf()
    steps[number] = { before, after, empty: emptyColumns(seeded) }
    before = seeded
  }
})
afterAll(() => db.close())

test.each([OLD_SCHEMA, ...numbers])('the fixture of schema %d has a value in every column of every table', number => {
  expect(steps[number]!.empty).toEqual([])
})

test.each(numbers)('migration %d keeps the rows of every table', number => {
  const { before, after } = steps[number]!
  const expected = changes[number]?.(before) ?? before
  const kept = Object.entries(expected).map(([table, rows]) => {
    const columns = Object.keys(rows[0]!)
    return [table, after[table]?.map(row => Object.fromEntries(columns.map(name => [name, row[name]])))]
  })
  expect(Object.fromEntries(kept)).toEqual(expected)
})

test('no account, key or code loses a right', () => {
  const account = { type: 'team', tier: null, allows: null, denies: null, version: 1 }
  expect(steps[7]!.after.account!.at(-1)).toMatchObject(account)
  const open = { expires_ms: null, disabled_ms: null, endpoints: null, addresses: null, old_digest: null }
  expect(steps[7]!.after.api_key![0]).toMatchObject(open)
  expect(steps[9]!.after.code![0]).toMatchObject({ voided_ms: null })
  expect(steps[11]!.after.api_key![0]).toMatchObject({ pepper: null })
  expect(steps[11]!.after.code![0]).toMatchObject({ pepper: null })
})

test('every record and transfer is found by the entries that replace its indexes', () => {
  const { record_index, transfer_index, index_progress } = steps[19]!.after
  expect(record_index!.map(({ kind, value, call_id }) => [kind, value, call_id])).toEqual([
    [1, 88, 6],
    [2, 77, 6],
    [3, 'p/m', 6],
    [4, 'client_left', 6],
    [5, 'u', 6],
  ])
  expect(transfer_index).toEqual([
    { account_id: 4, seq: 1 },
    { account_id: 77, seq: 2 },
  ])
  expect(index_progress!.map(({ seq }) => seq)).toEqual([2, 0, 0, 0, 0, 0])
})

// For such a list SQLite builds a temporary table with each row, which cost 5 µs a call.
test.each(['hold', 'record', 'transfer'])('no CHECK of %s has a list of three values', table => {
  const db = new Database(':memory:')
  migrate(db)
  const { sql } = db.query<{ sql: string }, [string]>('SELECT sql FROM sqlite_schema WHERE name = ?1').get(table)!
  db.close()
  const lists = sql.match(/\bIN\s*\([^)]*\)/g) ?? []
  expect(lists.filter(list => list.split(',').length > 2)).toEqual([])
})

test('a transfer of an unknown kind and a record of unknown usage are refused', () => {
  const db = new Database(':memory:')
  migrate(db)
  const addTransfer = (kind: string) =>
    db.run('INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms) VALUES (1, ?1, 1, 2, 3, 4)', [kind])
  expect(() => addTransfer('loan')).toThrow('CHECK constraint failed')
  expect(() => addTransfer('charge')).not.toThrow()
  const addRecord = (usageSource: string) =>
    db.run(
      `INSERT INTO record (call_id, key_id, account_id, dialect, status, outcome, rule, usage_source, streamed, input_tokens,
         cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost, shortfall, held, duration_ms)
       VALUES (1, 1, 1, 'd', 200, 'o', 'r', ?1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)`,
      [usageSource],
    )
  expect(() => addRecord('guessed')).toThrow('CHECK constraint failed')
  expect(() => addRecord('reported')).not.toThrow()
  db.close()
})
