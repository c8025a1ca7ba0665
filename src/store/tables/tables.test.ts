// Tests that the descriptions of columns match the tables that the migrations create, and that rows are read as written.

import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { migrate } from '../engine/database.ts'
import { sqliteSteps } from '../engine/sqlite-steps.ts'
import type { RecordRow } from '../ledger/hold-types.ts'
import { recordInserter } from '../ledger/ledger-operations.ts'
import { accountColumns, budgetColumns, hiddenKeyColumns, keyColumns } from './accounts.ts'
import type { Columns, SqlRow } from './columns.ts'
import { auditList, rowInserter, rowReader, rowUpdater, selectList } from './columns.ts'
import { fullRecordColumns, transferColumns } from './records.ts'
import {
  authorColumns,
  channelColumns,
  limitColumns,
  routeColumns,
  storedChannelColumns,
  tierColumns,
} from './rules.ts'
import { hiddenTokenColumns, serviceTokenColumns } from './service-tokens.ts'

const db = new Database(':memory:', { strict: true, safeIntegers: true })
migrate(db)
const runSteps = sqliteSteps(db)
afterAll(() => db.close())

const keys = { ...keyColumns, ...hiddenKeyColumns }
const serviceTokens = { ...serviceTokenColumns, ...hiddenTokenColumns }
const channels = { ...channelColumns, ...storedChannelColumns, ...authorColumns }
const tables: readonly (readonly [table: string, columns: Columns])[] = [
  ['api_key', keys],
  ['account', accountColumns],
  ['service_token', serviceTokens],
  ['budget', budgetColumns],
  ['record', fullRecordColumns],
  ['transfer', transferColumns],
  ['tier', tierColumns],
  ['limit_rule', limitColumns],
  ['model_route', { ...routeColumns, ...authorColumns }],
  ['channel', channels],
]

interface TableColumn {
  readonly name: string
  readonly type: string
  readonly notnull: bigint
  readonly dflt_value: string | null
}

const columnsOf = (table: string): readonly TableColumn[] =>
  db.query<TableColumn, []>('PRAGMA table_info('.concat(table, ')')).all()

test.each(tables)('%s has all columns of its description', (table, columns) => {
  const known = columnsOf(table).map(({ name }) => name)
  const described = Object.values(columns).map(([sql]) => sql)
  expect(described.filter(sql => !known.includes(sql))).toEqual([])
})

test.each([
  ['api_key', keys],
  ['account', accountColumns],
  ['service_token', serviceTokens],
] as const)('a new row of %s has a value for each column without a default', (table, columns: Columns) => {
  const written = Object.values(columns)
    .filter(([, , ...marks]) => marks.includes('insert') || marks.includes('update'))
    .map(([sql]) => sql)
  const needed = columnsOf(table).filter(column => column.notnull === 1n && column.dflt_value === null)
  expect(needed.map(({ name }) => name).filter(name => !written.includes(name))).toEqual([])
})

test('every column of a record is described', () => {
  const described = Object.values<readonly [string, ...unknown[]]>(fullRecordColumns).map(([sql]) => sql)
  expect(described.toSorted()).toEqual(
    columnsOf('record')
      .map(({ name }) => name)
      .toSorted(),
  )
})

describe('a change of each column that people may edit raises the version:', () => {
  test.each([
    ['api_key', keyColumns],
    ['account', accountColumns],
    ['service_token', serviceTokenColumns],
  ] as const)('%s', (table, columns: Columns) => {
    const trigger = db
      .query<{ sql: string }, [string]>(
        "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?1 || '_version'",
      )
      .get(table)!
    const [, list = ''] = /UPDATE OF ([^]*?) ON /.exec(trigger.sql)!
    const raising = list.split(',').map(name => name.trim())
    const changeable = Object.values(columns).filter(([, , ...marks]) => marks.includes('update'))
    expect(changeable.map(([sql]) => sql).filter(sql => !raising.includes(sql))).toEqual([])
  })
})

test('no secret column is in the audit log', () => {
  for (const [, columns] of tables) {
    const audited = auditList(columns).split(', ')
    expect(['digest', 'pepper', 'credential', 'proxy'].filter(name => audited.includes(name))).toEqual([])
  }
})

test('a key is read as it was inserted, and as it was changed', () => {
  const insertAccount = rowInserter('account', accountColumns)
  runSteps(insertAccount({ id: 11, type: 'team', name: 'team', kind: 'prepaid', createdMs: 5 }))
  const key = {
    id: 21,
    accountId: 11,
    suffix: 'abcd',
    name: 'mine',
    tier: 'pro',
    createdMs: 6,
    digest: Buffer.alloc(32),
  }
  const insertKey = rowInserter('api_key', keys)
  runSteps(
    insertKey({
      ...key,
      pepper: 'p',
      madeByMember: false,
      playgroundOf: null,
      strict: true,
      allows: ['a/*', 'b'],
      denies: [],
    }),
  )
  const find = db.query<SqlRow, []>(`SELECT ${selectList(keyColumns)} FROM api_key WHERE id = 21`)
  const read = rowReader(keyColumns)
  const { digest: _, ...shown } = key
  const fresh = { ...shown, qpm: null, strictCap: false, strict: true, allows: ['a/*', 'b'], denies: null, version: 1 }
  expect(read(find.get()!)).toMatchObject(fresh)
  const current = db.query<SqlRow, []>('SELECT * FROM api_key WHERE id = 21').get()!
  const update = rowUpdater('api_key', keyColumns)
  runSteps(update(21, current, { qpm: 7, strict: false, allows: null, expiresMs: 9 }))
  expect(read(find.get()!)).toMatchObject({
    ...fresh,
    ...{ qpm: 7, strict: false, allows: null, expiresMs: 9, version: 2 },
  })
})

test('a record is read as it was inserted', () => {
  const numbers = { inputTokens: 1, cacheReadTokens: 2, cacheWriteTokens: 3, outputTokens: 4, reasoningTokens: 5 }
  const texts = {
    dialect: 'd',
    provider: 'p',
    model: 'm',
    channel: 'c',
    error: 'e',
    outcome: 'o',
    rule: 'r',
    requestedModel: 'a',
    conversation: 'k',
  }
  const more = { endUser: 'u', tags: 't', loss: 'l', requestHash: 'x', upstreamHash: 'y', usageSource: 'reported' }
  const ids = { callId: 31, keyId: 32, accountId: 33, status: 200, priceVersion: 6, firstContentMs: 7, durationMs: 8 }
  const plain = { ...numbers, ...texts, ...more, ...ids, streamed: true }
  const json = { lines: '[1]', attempts: '[2]', timings: '[3]', routing: '[4]' }
  const record: RecordRow = { ...plain, ...json }
  expect(recordInserter(db)(record, { cost: 40n, shortfall: 41n, held: 42n })).toBe(true)
  const row = db.query<SqlRow, []>(`SELECT ${selectList(fullRecordColumns)} FROM record WHERE call_id = 31`).get()!
  expect(rowReader(fullRecordColumns)(row)).toEqual({
    ...plain,
    ...{ lines: [1], attempts: [2], timings: [3], routing: [4], cost: '40', shortfall: '41', held: '42' },
  })
})

test('each column that people may edit is in the audit log, except for secrets, the author and the time', () => {
  const unlogged = tables.flatMap(([, columns]) =>
    Object.values(columns)
      .filter(([, , ...marks]) => marks.includes('update') && !marks.includes('audit'))
      .map(([sql]) => sql),
  )
  expect([...new Set(unlogged)].toSorted()).toEqual(['author', 'changed_ms', 'credential', 'proxy'])
})
