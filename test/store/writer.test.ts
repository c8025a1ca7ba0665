// The writer thread from outside: one commit for everything that is queued, each operation with its own result, nothing
// lost.

import { afterEach, beforeEach, describe, expect, setSystemTime, spyOn, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { Refusal } from '../../src/base/errors.ts'
import type { OperationInput } from '../../src/store/engine/operations.ts'
import { Writer } from '../../src/store/engine/writer.ts'
import type { WriterOptions } from '../../src/store/engine/writer-messages.ts'
import { recordIndexes } from '../../src/store/ledger/late-indexes.ts'
import { holdOf, recordOf } from '../support/books.ts'
import { openDatabase } from '../support/database.ts'
import { until } from '../support/gateway.ts'
import { pooled } from '../support/pooled.ts'

const by = { actor: 'test' }

let folder: string
let path: string
let open: Writer[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-writer-'))
  path = join(folder, 'weir.db')
  open = []
})
afterEach(async () => {
  for (const writer of open) await writer.close()
  rmSync(folder, { recursive: true, force: true })
})

async function openWriter(more: Partial<WriterOptions> = {}): Promise<Writer> {
  const [writer] = await Writer.open({ path, ballastBytes: 0, ...more }, detail => {
    throw new Error(detail)
  })
  open.push(writer)
  return writer
}

async function closeWriter(writer: Writer): Promise<void> {
  open = open.filter(other => other !== writer)
  await writer.close()
}

function read<T>(sql: string): T[] {
  const db = openDatabase(path, { readonly: true })
  try {
    return db.query(sql).all() as T[]
  } finally {
    db.close()
  }
}

const settings = (): number => read('SELECT name FROM setting').length

function keyOf(id: number, more: Partial<OperationInput<'createKey'>> = {}): OperationInput<'createKey'> {
  const digest = id.toString(16).padStart(64, '0')
  const keyFields = { digest, suffix: 'x', name: 'x', tier: 'pro', qpm: null, existing: false, creditRef: id }
  return { id: id + 1_000, accountId: id, pepper: 'aabbccdd', ...keyFields, credit: '1000', ...more }
}

/** Commits in the write-ahead log: the last frame of a commit has the size of the database, all others zero. */
function commits(): number {
  const wal = `${path}-wal`
  if (!existsSync(wal)) return 0
  const bytes = readFileSync(wal)
  if (bytes.length < 32) return 0
  const frame = 24 + bytes.readUInt32BE(8)
  let count = 0
  for (let at = 32; at + frame <= bytes.length; at += frame) if (bytes.readUInt32BE(at + 4) > 0) count++
  return count
}

test('a closed writer has closed its file: nothing but the database is left', async () => {
  const writer = await openWriter()
  await writer.run('setSetting', { name: 'x', value: '1' })
  await closeWriter(writer)
  expect(readdirSync(folder).filter(name => name.startsWith('weir.db'))).toEqual(['weir.db'])
})

describe('group commit', () => {
  test('puts everything that is queued into one commit', async () => {
    const writer = await openWriter()
    const before = commits()
    const work = Array.from({ length: 200 }, (_, at) => writer.run('setSetting', { name: `s${at}`, value: 'x' }))
    expect(writer.queuedCount).toBe(200)
    await work[0]
    expect(settings()).toBe(200)
    await Promise.all(work)
    expect(commits() - before).toBe(1)
  })

  test('takes one batch at most, and the rest goes into the next', async () => {
    const writer = await openWriter()
    const before = commits()
    const count = bounds.ledgerBatchMax * 2 + 1
    const names = Array.from({ length: count }, (_, at) => `s${at}`)
    await Promise.all(names.map(name => writer.run('setSetting', { name, value: 'x' })))
    expect(settings()).toBe(count)
    expect(commits() - before).toBe(3)
    expect(writer.queuedCount).toBe(0)
  })

  test('is followed by the entries of many new rows at once', async () => {
    const writer = await openWriter()
    const records = Array.from({ length: 1_500 }, (_, at) => recordOf(1 + at, 11, { endUser: 'u', outcome: 'refused' }))
    await pooled(records, 256, async record => void (await writer.run('record', { record })))
    // One index after each batch.
    for (const _ of Object.keys(recordIndexes)) await writer.run('setSetting', { name: 's', value: 'x' })
    await closeWriter(writer)
    const counts = read<{ kind: number; n: number }>('SELECT kind, count(*) AS n FROM record_index GROUP BY kind')
    expect(counts.map(({ kind }) => kind)).toEqual(Object.values(recordIndexes).map(({ kind }) => kind))
    for (const { n } of counts) expect(n).toBeGreaterThanOrEqual(1_000)
  })

  test('does not fail when an index cannot be written', async () => {
    const writer = await openWriter()
    const other = openDatabase(path)
    other.run('DROP TABLE record_index')
    other.close()
    const records = Array.from({ length: 1_500 }, (_, at) => recordOf(1 + at, 11))
    await pooled(records, 256, async record =>
      expect(await writer.run('record', { record })).toEqual({ done: 'recorded' }),
    )
    expect(await writer.run('setSetting', { name: 's', value: 'x' })).toEqual({ done: 'set' })
  })

  test('keeps the order of the requests', async () => {
    const writer = await openWriter()
    const values = Array.from({ length: 500 }, (_, at) => String(at))
    await Promise.all(values.map(value => writer.run('setSetting', { name: 'same', value })))
    expect(read('SELECT value FROM setting')).toEqual([{ value: '499' }])
  })

  test('ends calls before it starts others, so that their money is available', async () => {
    const writer = await openWriter()
    await writer.run('createKey', keyOf(11), by)
    await writer.run('hold', holdOf(7, 11, '1000'))
    const next = writer.run('hold', holdOf(8, 11, '900'))
    await writer.run('settle', { record: recordOf(7, 11), cost: '100' })
    expect(await next).toEqual({ done: 'held' })
  })

  test('resolves when a change is durable: another connection sees it', async () => {
    const writer = await openWriter()
    for (let at = 1; at <= 20; at++) {
      await writer.run('setSetting', { name: `s${at}`, value: 'x' })
      expect(settings()).toBe(at)
    }
  })
})

describe('an operation that fails', () => {
  test('does not affect those beside it', async () => {
    const writer = await openWriter()
    const work = [
      writer.run('createKey', keyOf(11), by),
      writer.run('createKey', keyOf(12, { digest: '00' }), by), // too short for the table
      writer.run('hold', holdOf(7, 11, '400')),
      writer.run('hold', holdOf(7, 11, '100')), // a second hold of one call
      writer.run('createKey', keyOf(13), by),
    ]
    const results = await Promise.allSettled(work)
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'])
    expect((results[1] as PromiseRejectedResult).reason.message).toMatch(/^storage_away: CHECK/)
    expect((results[3] as PromiseRejectedResult).reason.message).toContain('UNIQUE')
    expect(read('SELECT id, balance, held FROM account WHERE id > 4 ORDER BY id')).toEqual([
      { id: 11, balance: 1_000, held: 400 },
      { id: 13, balance: 1_000, held: 0 },
    ])
  })

  test('has changed nothing, not even in the next commit', async () => {
    const writer = await openWriter()
    await writer.run('createKey', keyOf(11), by)
    await writer.run('hold', holdOf(7, 11, '400'))
    // The settle fails after its money was moved: the call has no key for which an answer could be stored.
    const settle = { record: recordOf(7, 11), cost: '150', idempotency: { sealed: null } } as const
    const fault = await writer.run('settle', settle).catch((thrown: Error) => thrown)
    expect((fault as Error).message).toContain('assertion failed')
    await writer.run('createKey', keyOf(12), by)
    expect(read('SELECT sum(balance) AS sum FROM account')).toEqual([{ sum: 0 }])
    expect(read('SELECT balance FROM account WHERE id = 1')).toEqual([{ balance: 0 }])
  })

  test('leaves the writer working', async () => {
    const writer = await openWriter()
    const fault = await writer.run('createKey', keyOf(12, { digest: '' }), by).catch((thrown: Error) => thrown)
    expect(fault).toBeInstanceOf(Error)
    expect(await writer.run('createKey', keyOf(11), by)).toEqual({ done: 'created' })
  })

  test('says nothing about the writer unless the database has failed', async () => {
    const writer = await openWriter()
    const messageOf = (work: Promise<unknown>): Promise<unknown> => work.catch((fault: Error) => fault.message)
    expect(await messageOf(writer.run('createKey', keyOf(12, { digest: '' }), by))).toContain('CHECK')
    await writer.run('createKey', keyOf(11), by)
    await writer.run('hold', holdOf(7, 11, '400'))
    // The call has no key for which an answer could be stored.
    const settle = { record: recordOf(7, 11), cost: '150', idempotency: { sealed: null } } as const
    expect(await messageOf(writer.run('settle', settle))).toContain('assertion failed')
    expect(writer.isHealthy).toBe(true)
    const other = openDatabase(path)
    other.run('DROP TABLE setting')
    other.close()
    expect(await messageOf(writer.run('setSetting', { name: 's', value: 'x' }))).toContain('no such table')
    expect(writer.isHealthy).toBe(false)
  })
})

test('a refusal is a result and not an error', async () => {
  const writer = await openWriter()
  await writer.run('createKey', keyOf(11), by)
  expect(await writer.run('hold', holdOf(1, 11, '1001'))).toEqual({
    done: 'balance_too_low',
    available: '1000',
  })
})

test('a full queue refuses new holds and mere records, and never a settle', async () => {
  const writer = await openWriter()
  await writer.run('createKey', keyOf(11, { credit: '1000000' }), by)
  await writer.run('hold', holdOf(1, 11, '5'))
  // These operations have an hour until they are too late: a busy disk may need longer than usual for so many.
  setSystemTime(Date.now() + 3_600_000)
  const clock = spyOn(performance, 'now').mockReturnValue(performance.now() + 3_600_000)
  const queued = Array.from({ length: bounds.ledgerQueueMax }, (_, at) => writer.run('hold', holdOf(at + 2, 11, '1')))
  const late = holdOf(99_999, 11, '1')
  const codeOf = (work: Promise<unknown>): Promise<unknown> =>
    work.catch((fault: unknown) => (fault instanceof Refusal && fault.extras.retryAfterMs! > 0 ? fault.code : fault))
  // All in one turn of the event loop, before the thread has taken anything.
  const refused = [codeOf(writer.run('hold', late)), codeOf(writer.run('record', { record: recordOf(99_999, 11) }))]
  const settled = writer.run('settle', { record: recordOf(1, 11), cost: '3' })
  setSystemTime()
  clock.mockRestore()
  expect(await Promise.all(refused)).toEqual(['overloaded', 'overloaded'])
  await Promise.all(queued)
  expect(await settled).toEqual({ done: 'settled', charged: '3', shortfall: '0' })
  expect(read('SELECT count(*) AS n FROM hold')).toEqual([{ n: bounds.ledgerQueueMax }])
  // There is space again.
  expect(await writer.run('hold', late)).toEqual({ done: 'held' })
})

test('a blocked queue refuses new holds, too, and admits them again when it moves', async () => {
  const writer = await openWriter()
  await writer.run('createKey', keyOf(11), by)
  const otherConnection = openDatabase(path)
  otherConnection.run('BEGIN IMMEDIATE')
  const first = writer.run('setSetting', { name: 'first', value: 'x' })
  await Bun.sleep(1) // the next waits behind it
  const next = writer.run('setSetting', { name: 'next', value: 'x' })
  let callId = 7
  const pending: Promise<unknown>[] = []
  const refused = (): boolean => {
    const before = writer.queuedCount
    pending.push(writer.run('hold', holdOf(callId++, 11, '1')).catch((fault: Refusal) => fault.code))
    return writer.queuedCount === before
  }
  await until(refused, 'the queue is too old')
  otherConnection.run('ROLLBACK')
  otherConnection.close()
  await Promise.all([first, next])
  const results = await Promise.all(pending)
  expect(results.pop()).toBe('overloaded')
  expect(results.every(result => (result as { done: string }).done === 'held')).toBe(true)
  expect(await writer.run('hold', holdOf(callId, 11, '1'))).toEqual({ done: 'held' })
})

test('an operation that starts too late is not carried out: its caller has already got an error', async () => {
  const writer = await openWriter()
  await writer.run('createKey', keyOf(11), by)
  setSystemTime(Date.now() - bounds.settleMsMax - 1) // here and not in the thread: the operation has waited for so long
  const late = writer.run('hold', holdOf(7, 11, '400')).catch((fault: Refusal) => fault.code)
  setSystemTime()
  const inTime = writer.run('hold', holdOf(8, 11, '100')) // in the same batch
  expect([await late, await inTime]).toEqual(['storage_away', { done: 'held' }])
  expect(read('SELECT call_id FROM hold')).toEqual([{ call_id: 8 }])
})

describe('closing the writer', () => {
  test('waits for everything that is queued', async () => {
    const writer = await openWriter()
    const work = Array.from({ length: 1_000 }, (_, at) => writer.run('setSetting', { name: `s${at}`, value: 'x' }))
    await closeWriter(writer)
    await Promise.all(work)
    expect(settings()).toBe(1_000)
  })

  test('is immediate if it is idle', async () => {
    await closeWriter(await openWriter())
    expect(existsSync(path)).toBe(true)
  })
})

describe('opening the writer', () => {
  test('releases the remaining holds, and returns the last call', async () => {
    const writer = await openWriter()
    await writer.run('createKey', keyOf(11), by)
    await writer.run('hold', holdOf(4_100, 11, '400'))
    await writer.run('hold', holdOf(4_200, 11, '100'))
    await writer.run('settle', { record: recordOf(4_200, 11), cost: '30' })
    await closeWriter(writer)
    const [reopened, start] = await Writer.open({ path, ballastBytes: 0 }, () => {})
    open.push(reopened)
    expect(start).toEqual({ recovered: 1, lastId: 4_200 })
    expect(read('SELECT balance, held FROM account WHERE id = 11')).toEqual([{ balance: 970, held: 0 }])
    await closeWriter(reopened)
    const [third, second] = await Writer.open({ path, ballastBytes: 0 }, () => {})
    open.push(third)
    expect(second).toEqual({ recovered: 0, lastId: 4_200 })
  })

  test('returns the greatest id of any kind, so that none is given twice', async () => {
    const lastId = async (): Promise<number> => {
      const [writer, start] = await Writer.open({ path, ballastBytes: 0 }, () => {})
      open.push(writer)
      return start.lastId
    }
    const codes = [{ id: 60_000, digest: 'ab'.repeat(32) }]
    const batch = { pepper: 'aabbccdd', batch: 'b', amount: '5', author: 'x', expiresMs: null } as const
    const work: readonly ((writer: Writer) => Promise<unknown>)[] = [
      writer => writer.run('createKey', keyOf(11, { id: 10_000 }), by),
      writer => writer.run('createKey', keyOf(20_000, { id: 12 }), by),
      writer => writer.run('createKey', keyOf(13, { creditRef: 30_000 }), by),
      writer => writer.run('record', { record: recordOf(40_000, 11) }),
      writer => writer.run('hold', holdOf(50_000, 11, '5', { kind: 'task' })),
      writer => writer.run('createCodes', { ...batch, codes }, by),
    ]
    for (const [at, one] of work.entries()) {
      const writer = await openWriter()
      await one(writer)
      await closeWriter(writer)
      expect(await lastId()).toBe((at + 1) * 10_000)
      await closeWriter(open[0]!)
    }
  })

  test('refuses a file from a later version of Weir', async () => {
    await closeWriter(await openWriter())
    const db = openDatabase(path)
    db.run('PRAGMA user_version = 999')
    db.close()
    const fault = await Writer.open({ path, ballastBytes: 0 }, () => {}).catch((thrown: Error) => thrown)
    expect((fault as Error).message).toContain('later version of Weir')
  })

  test('refuses a file that is not a database', async () => {
    await Bun.write(path, 'this is no database, and it is long enough to look at. '.repeat(40))
    const fault = await Writer.open({ path, ballastBytes: 0 }, () => {}).catch((thrown: Error) => thrown)
    expect((fault as Error).message).toContain('not a database')
  })
})
