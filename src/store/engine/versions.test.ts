// The version of a row rises when people edit the row, and not when calls change it: calls must not pay for triggers.

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { migrate } from './database.ts'

let db: Database

beforeEach(() => {
  db = new Database(':memory:', { strict: true, safeIntegers: true })
  db.run('PRAGMA recursive_triggers = ON')
  migrate(db)
  db.run("INSERT INTO account (id, name, kind, created_ms) VALUES (11, 'a', 'postpaid', 0)")
  db.run(
    `INSERT INTO api_key (id, digest, suffix, name, account_id, tier, created_ms)
     VALUES (21, zeroblob(32), 'abcd', 'k', 11, 'pro', 0)`,
  )
  db.run(
    `INSERT INTO service_token (id, digest, suffix, name, role, creator, created_ms)
     VALUES (31, zeroblob(32), 'abcd', 't', 'admin', 'cli', 0)`,
  )
  db.run("INSERT INTO budget (scope_id, span, cap, ceiling, period) VALUES (21, 'day', 9, 9, 0)")
})
afterEach(() => db.close())

const version = (table: string): number =>
  Number((db.query('SELECT version FROM '.concat(table, ' ORDER BY 1 DESC')).get() as { version: bigint }).version)

/** Counts the version triggers that a statement fires. */
function countTriggers(sql: string): number {
  const triggers = db.query("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all() as { name: string }[]
  for (const { name } of triggers) if (!name.endsWith('_version')) db.run('DROP TRIGGER '.concat(name))
  const steps = db.query('EXPLAIN '.concat(sql)).all() as { opcode: string }[]
  return steps.filter(({ opcode }) => opcode === 'Program').length
}

const callUpdates: readonly (readonly [table: string, sql: string])[] = [
  ['account', 'UPDATE account SET held = held + 1 WHERE id = 11 AND frozen_ms IS NULL'],
  ['account', 'UPDATE account SET held = held - 0, balance = balance - 1 WHERE id = 11'],
  ['budget', 'UPDATE budget SET held = held + 1 WHERE scope_id = 21'],
  ['budget', 'UPDATE budget SET held = held - 0, spent = spent + 1 WHERE scope_id = 21'],
]

test.each(callUpdates)('a call updates %s without a trigger: %s', (table, sql) => {
  expect(countTriggers(sql)).toBe(0)
  db.run(sql)
  expect(version(table)).toBe(1)
})

test('the count of triggers is above zero for an update that fires one', () => {
  expect(countTriggers("UPDATE account SET name = 'b' WHERE id = 11")).toBeGreaterThan(0)
})

describe('the version rises once by a change of', () => {
  const account = ["name = 'b'", "kind = 'prepaid'", "tier = 'pro'", 'credit_limit = 5', 'keeps_bodies = 1']
  const more = ['frozen_ms = 1', "allows = 'a'", "denies = 'b'"]
  test.each([...account, ...more])('account: %s', change => {
    db.run('UPDATE account SET '.concat(change, ' WHERE id = 11'))
    expect(version('account WHERE id = 11')).toBe(2)
  })

  const key = [
    "name = 'b'",
    "tier = 'free'",
    'qpm = 5',
    'strict_cap = 1',
    'keeps_bodies = 1',
    'strict = 1',
    'explains = 1',
  ]
  const lists = ['allows', 'denies', 'requires', 'endpoints', 'addresses'].map(column => `${column} = 'a'`)
  const dates = ['expires_ms = 1', 'disabled_ms = 1', 'revoked_ms = 1']
  const renewal = "digest = randomblob(32), suffix = 'efgh', old_digest = digest, old_until_ms = 1"
  const token = ["name = 'b'", 'expires_ms = 1', 'revoked_ms = 1', renewal]
  test.each(token)('service token: %s', change => {
    db.run('UPDATE service_token SET '.concat(change, ' WHERE id = 31'))
    expect(version('service_token')).toBe(2)
  })

  test.each([...key, ...lists, ...dates, renewal])('key: %s', change => {
    db.run('UPDATE api_key SET '.concat(change, ' WHERE id = 21'))
    expect(version('api_key')).toBe(2)
  })

  test('budget: cap = 5', () => {
    db.run('UPDATE budget SET cap = 5 WHERE scope_id = 21')
    expect(version('budget')).toBe(2)
  })
})

test('an old key digest and its end are both set or both null', () => {
  expect(() => db.run('UPDATE api_key SET old_until_ms = 1')).toThrow('CHECK')
  expect(() => db.run('UPDATE api_key SET old_digest = zeroblob(32)')).toThrow('CHECK')
  expect(() => db.run('UPDATE api_key SET old_digest = zeroblob(31), old_until_ms = 1')).toThrow('CHECK')
})

test('a use of a service token does not change its version', () => {
  db.run('UPDATE service_token SET used_ms = 1 WHERE id = 31')
  expect(version('service_token')).toBe(1)
})

test('a service token has either a role for the site or a rank in one account', () => {
  expect(() => db.run("UPDATE service_token SET role = 'member'")).toThrow('CHECK')
  expect(() => db.run('UPDATE service_token SET account_id = 11, rank = 3')).toThrow('CHECK')
  expect(() => db.run("UPDATE service_token SET account_id = 11, role = 'member'")).toThrow('CHECK')
  db.run("UPDATE service_token SET account_id = 11, rank = 3, role = 'member'")
})
