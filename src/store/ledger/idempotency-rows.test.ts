// Idempotency keys and their calls, on a real file: claimed once, released, kept for a day by the ledger's own clock,
// and deleted some at a time.

import type { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { idAtMs } from '../../base/ids.ts'
import { migrate, openWriter } from '../engine/database.ts'
import type { RunSteps } from '../engine/sqlite-steps.ts'
import { sqliteSteps } from '../engine/sqlite-steps.ts'
import type { HoldInput } from './hold-types.ts'
import { deleteExpiredKeys, expiredBefore, IdempotencyRows } from './idempotency-rows.ts'

const DAY_MS = 24 * 3_600_000

let folder: string
let db: Database
let rows: IdempotencyRows
let runSteps: RunSteps
let nowMs: number

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-idempotency-'))
  db = openWriter(join(folder, 'weir.db'))
  migrate(db)
  nowMs = Date.UTC(2026, 5, 1)
  rows = new IdempotencyRows(db, () => nowMs)
  runSteps = sqliteSteps(db)
})
afterEach(() => {
  db.close()
  rmSync(folder, { recursive: true, force: true })
})

const holdInput = (callId: number, name = 'a', more: { keyId?: number; print?: string } = {}): HoldInput => ({
  callId,
  kind: 'call',
  accountId: 9,
  keyId: more.keyId ?? 8,
  amount: '0',
  wants: '0',
  draft: {
    dialect: 'd',
    provider: null,
    model: null,
    streamed: false,
    priceVersion: null,
    endUser: null,
    tags: null,
  },
  idempotency: { name, fingerprint: (more.print ?? '1').repeat(64) },
})

const countOf = (table: 'idempotency' | 'kept_answer'): number =>
  Number((db.query(`SELECT count(*) AS n FROM ${table}`).get() as { n: bigint }).n)

describe('an idempotency key', () => {
  test('is free, then running, then finished, for its own request and caller', () => {
    const id = idAtMs(nowMs)
    expect(rows.findClaim(holdInput(id))).toBeUndefined()
    rows.claim(holdInput(id))
    expect(rows.findClaim(holdInput(id + 1))).toEqual({ done: 'running', callId: id })
    expect(rows.findClaim(holdInput(id + 1, 'a', { print: '2' }))).toEqual({ done: 'other_body', callId: id })
    expect(rows.findClaim(holdInput(id + 1, 'a', { keyId: 7 }))).toBeUndefined()
    expect(rows.findClaim(holdInput(id + 1, 'b'))).toBeUndefined()
    rows.finish(id, Buffer.from('sealed').toString('base64'))
    expect(rows.findClaim(holdInput(id + 1))).toEqual({ done: 'finished', callId: id })
    expect(rows.findClaim(holdInput(id + 1, 'a', { print: '2' }))).toEqual({ done: 'other_body', callId: id })
  })

  test('is claimed once', () => {
    rows.claim(holdInput(1))
    expect(() => rows.claim(holdInput(2))).toThrow('UNIQUE')
  })

  test('that was released is free, and a second release returns false', () => {
    rows.claim(holdInput(1))
    expect([rows.release(1), rows.release(1)]).toEqual([true, false])
    expect(rows.findClaim(holdInput(2))).toBeUndefined()
  })

  test('belongs to its call for a day, and is free a moment later with its answer deleted', () => {
    const id = idAtMs(nowMs)
    rows.claim(holdInput(id))
    rows.finish(id, 'AAAA')
    nowMs += DAY_MS
    expect(rows.findClaim(holdInput(id + 9))).toEqual({ done: 'finished', callId: id })
    nowMs += 1
    expect(rows.findClaim(holdInput(id + 9))).toBeUndefined()
    expect([countOf('idempotency'), countOf('kept_answer')]).toEqual([0, 0])
    rows.claim(holdInput(id + 9))
  })

  test('of a call that is still running never becomes free by itself', () => {
    const id = idAtMs(nowMs)
    rows.claim(holdInput(id))
    nowMs += 2 * DAY_MS
    expect(rows.findClaim(holdInput(id + 9))).toEqual({ done: 'running', callId: id })
    runSteps(deleteExpiredKeys(expiredBefore(nowMs)))
    expect(countOf('idempotency')).toBe(1)
  })
})

test('expired idempotency keys are deleted some at a time, and recent ones stay', () => {
  const oldest = idAtMs(nowMs)
  for (let index = 0; index < 100; index++) {
    rows.claim(holdInput(oldest + index, `old ${index}`))
    rows.finish(oldest + index, index % 2 === 0 ? 'AAAA' : null)
  }
  nowMs += DAY_MS + 1_000
  const recent = idAtMs(nowMs)
  rows.claim(holdInput(recent, 'young'))
  rows.finish(recent, 'AAAA')
  const counts: number[] = []
  for (let count = 1; count > 0; counts.push(count)) count = runSteps(deleteExpiredKeys(expiredBefore(nowMs)))
  expect(counts).toEqual([32, 32, 32, 4, 0])
  expect([countOf('idempotency'), countOf('kept_answer')]).toEqual([1, 1])
  expect(rows.findClaim(holdInput(recent + 1, 'young'))).toEqual({ done: 'finished', callId: recent })
})
