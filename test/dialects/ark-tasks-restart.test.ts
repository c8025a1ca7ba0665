// Tasks over restarts, crashes and days: each is settled once, whenever the gateway was killed, and none keeps its hold.

import type { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from '../../src/boot/open-store.ts'
import { openStore } from '../../src/boot/open-store.ts'
import { readConfig } from '../../src/config.ts'
import type { Task } from '../../src/vault/tasks.ts'
import { jsonAnswer } from '../../tools/fake-upstream/answers.ts'
import { gate, script } from '../../tools/fake-upstream/script.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { says } from '../passthrough/upstream.ts'
import { bookFaults } from '../support/books.ts'
import { openDatabase } from '../support/database.ts'
import { until } from '../support/gateway.ts'
import { operatorOf } from '../support/operator.ts'
import type { TaskHarness } from './tasks-harness.ts'
import { ask, createTask, film, startTasks } from './tasks-harness.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

let folder: string
let upstream: FakeUpstream
let harness: TaskHarness
let key: string

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-tasks-'))
  upstream = await startFakeUpstream()
  harness = await start()
  key = await harness.key()
})
afterEach(async () => {
  await harness.stop()
  await upstream.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Starts a gateway on the same folder with the same upstream. */
function start(aheadMs = 0, everyMs = 1e6, env: Record<string, string> = {}): Promise<TaskHarness> {
  const upstreamEnv = () => ({ POND_URL: `${upstream.url}/api/v3` })
  return startTasks({ folder, upstreamEnv, aheadMs, world: { tasksEveryMs: everyMs }, env })
}

async function restart(aheadMs = 0, everyMs = 10): Promise<void> {
  harness = await start(aheadMs, everyMs)
}

/** Stops the gateway and changes its store, to produce the state after a crash. */
async function whileDown(change: (store: Store) => Promise<unknown>): Promise<void> {
  await harness.stop()
  const store = await openStore(
    readConfig({ WEIR_DATA: folder, WEIR_BALLAST_MB: '0', WEIR_LOCAL_SERVERS: 'off', LOG_LEVEL: 'error' }),
  )
  await change(store)
  await store.close()
}

function read<T>(query: (db: Database) => T): T {
  const db = openDatabase(join(folder, 'weir.db'), { readonly: true, safeIntegers: true })
  try {
    return query(db)
  } finally {
    db.close()
  }
}

const taskRows = () => read(db => db.query('SELECT id, status, due_ms AS due FROM task').all())
const faults = () => read(bookFaults)
const records = (): unknown[] => harness.records().map(({ outcome, rule, cost }) => [outcome, rule, cost])

async function onlyTask({ vault }: Store): Promise<Task> {
  const row = read(db => db.query('SELECT call_id AS callId, account_id AS accountId FROM task').get())
  const { callId, accountId } = row as { callId: bigint; accountId: bigint }
  return (await vault.tasks.getByCall(Number(callId), Number(accountId)))!
}

async function waitUntilSettled(): Promise<void> {
  const isUnderWay = () => read(db => db.query('SELECT 1 FROM task WHERE due_ms IS NOT NULL').get()) !== null
  await until(() => harness.openHolds() === 0 && !isUnderWay(), 'all tasks are settled')
  expect(faults()).toEqual([])
}

const succeeded = (id: string) =>
  Buffer.from(JSON.stringify({ id, status: 'succeeded', usage: { completion_tokens: 5_000, total_tokens: 5_000 } }))

describe('a gateway that was killed', () => {
  test('while a task was running settles it after the next start, at the price of its creation', async () => {
    await createTask(harness, key)
    const price = { input: '0', output: '99' }
    await whileDown(({ manage }) =>
      operatorOf(() => manage).weir('prices set', { model: 'pond/film', price: JSON.stringify(price) }),
    )
    await restart(HOUR_MS)
    for (let polls = 1; polls <= 3; polls++) {
      await until(() => upstream.requests.length > polls, 'the task is polled')
      await harness.noneDue()
      harness.advance(HOUR_MS)
    }
    await waitUntilSettled()
    expect(records()).toEqual([['task_succeeded', 'task_reported', 50_000_000]])
    expect(await harness.balance(key)).toMatchObject({ balance: '99.95', held: '0.00' })
  })

  test('between the row of a task and its hold drops the row', async () => {
    await createTask(harness, key)
    await whileDown(async store => {
      const { callId, ...task } = await onlyTask(store)
      await store.vault.tasks.create({ ...task, callId: callId + 1, id: 'task_x' }, Date.now() + DAY_MS)
    })
    await restart(0, 1e6)
    await until(() => taskRows().length === 1, 'it is dropped')
    expect(records()).toEqual([['gateway_crash', 'crash_undelivered', 0]])
    expect([harness.openHolds(), faults()]).toEqual([1, []])
  })

  test('between the hold and the answer of the upstream releases the hold', async () => {
    await createTask(harness, key)
    await whileDown(async store => {
      const { callId, accountId, keyId, ...task } = await onlyTask(store)
      const ids = { callId: callId + 1, accountId, keyId }
      await store.vault.tasks.create({ ...task, ...ids, id: 'task_x' }, Date.now() + DAY_MS)
      const { draft } = JSON.parse(task.admitted)
      await store.writer.run('hold', { ...ids, kind: 'task', amount: '700', wants: '0', draft })
    })
    await restart(0, 1e6)
    await until(() => harness.openHolds() === 1, 'its hold is released')
    await until(() => taskRows().length === 1, 'it is dropped')
    expect(records()).toEqual([['gateway_crash', 'crash_undelivered', 0]])
    expect(faults()).toEqual([])
  })

  test('between the final answer of the upstream and the settlement settles by that answer, without a request', async () => {
    const id = await createTask(harness, key)
    await whileDown(async store => {
      const { callId } = await onlyTask(store)
      const change = { callId, status: 'succeeded', dueMs: 1, updatedMs: 1, polledMs: 1 } as const
      await store.vault.tasks.change(change, succeeded(id))
    })
    const sent = upstream.requests.length
    await restart()
    await waitUntilSettled()
    expect([records(), upstream.requests.length]).toEqual([[['task_succeeded', 'task_reported', 50_000_000]], sent])
  })

  test('between the settlement and the update of the row does not charge again', async () => {
    const id = await createTask(harness, key)
    await whileDown(async store => {
      const { callId, accountId, keyId, admitted } = await onlyTask(store)
      const change = { callId, status: 'succeeded', dueMs: 1, updatedMs: 1, polledMs: 1 } as const
      await store.vault.tasks.change(change, succeeded(id))
      const nothing = { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0, lines: null }
      const ending = { outcome: 'task_succeeded', rule: 'task_reported', usageSource: 'reported', status: 200 }
      const rest = {
        channel: 'pond#1',
        error: null,
        attempts: null,
        timings: null,
        firstContentMs: null,
        durationMs: 1,
      }
      const usage = { ...nothing, outputTokens: 5_000 }
      const record = { ...JSON.parse(admitted).draft, ...usage, ...ending, ...rest, callId, accountId, keyId }
      await store.writer.run('settle', { record, cost: '50000000' })
    })
    await restart()
    await waitUntilSettled()
    expect(records()).toEqual([['task_succeeded', 'task_reported', 50_000_000]])
    expect(taskRows()).toEqual([{ id, status: 'succeeded', due: null }])
    expect((await ask(harness, key, 'GET', { suffix: `/${id}` })).json).toMatchObject({ status: 'succeeded' })
  })
})

describe('P22: a task whose upstream does not answer', () => {
  const readStatus = async (id: string): Promise<unknown> => {
    harness.advance(2_000)
    return (await ask(harness, key, 'GET', { suffix: `/${id}` })).json.status
  }

  test('keeps its hold for seven days, and is then given up for free', async () => {
    const id = await createTask(harness, key)
    const failure = says({ error: { message: 'oops' } }, 500)
    upstream.plan(failure, failure, says({ status: 'running' }))
    expect(await readStatus(id)).toBe('queued')
    harness.advance(7 * DAY_MS - HOUR_MS)
    expect([await readStatus(id), harness.openHolds()]).toEqual(['queued', 1])
    harness.advance(HOUR_MS)
    expect([await readStatus(id), harness.openHolds()]).toEqual(['expired', 0])
    expect(records()).toEqual([['task_lost', 'task_lost', 0]])
    expect(faults()).toEqual([])
    upstream.plan(says({ status: 'succeeded', content: { video_url: 'https://x' } }))
    expect(await readStatus(id)).toBe('expired') // the late result was not paid for, and is not returned
    expect(harness.logs.some(line => line.includes('a task is given up'))).toBe(true)
  })

  test('or does not know the task is given up after a day', async () => {
    const id = await createTask(harness, key)
    const unknown = says({ error: { message: 'unknown' } }, 404)
    upstream.plan(unknown, unknown)
    harness.advance(DAY_MS - HOUR_MS)
    expect([await readStatus(id), harness.openHolds()]).toEqual(['queued', 1])
    harness.advance(HOUR_MS)
    expect([await readStatus(id), harness.openHolds()]).toEqual(['expired', 0])
    expect(records()).toEqual([['task_lost', 'task_lost', 0]])
  })

  test('is polled less and less often', async () => {
    await createTask(harness, key)
    await whileDown(async () => {})
    await restart(0, 5)
    const running = says({ status: 'running' })
    upstream.plan(...Array.from({ length: 50 }, () => running))
    const sent = () => upstream.requests.length - 1
    harness.advance(2_500)
    await until(() => sent() === 1, 'after two seconds')
    await harness.noneDue()
    harness.advance(1_000)
    await Bun.sleep(40)
    expect(sent()).toBe(1)
    harness.advance(HOUR_MS)
    await until(() => sent() === 2, 'after an hour')
    await harness.noneDue()
    harness.advance(HOUR_MS / 12)
    await Bun.sleep(40)
    expect(sent()).toBe(2)
    harness.advance(HOUR_MS / 6)
    await until(() => sent() === 3, 'after ten more minutes')
  })
})

test('a shutdown waits for a task that is being created', async () => {
  await harness.stop()
  harness = await start(0, 1e6, { WEIR_DRAIN_SECONDS: '60' })
  const { promise, resolve } = Promise.withResolvers<void>()
  upstream.plan(script(gate(promise), ...jsonAnswer(200, '{"id":"cgt-slow"}')))
  const created = ask(harness, key, 'POST', film())
  await until(() => upstream.requests.length === 1, 'the upstream has the request')
  const drained = harness.gateway.drain()
  resolve()
  expect((await created).json).toEqual({ id: 'cgt-slow' })
  await drained
  expect(taskRows()).toMatchObject([{ id: 'cgt-slow', status: 'queued' }])
})

test('a shutdown ends a task that is not begun in time, and gives its hold back', async () => {
  upstream.plan(script(gate(new Promise(() => {}))))
  const asked = ask(harness, key, 'POST', film())
  await until(() => upstream.requests.length === 1, 'its upstream has it')
  await harness.gateway.drain()
  expect((await asked).status).toBe(503)
  expect([taskRows(), harness.openHolds(), faults()]).toEqual([[], 0, []])
  expect(records()).toEqual([['drained', 'drained', 0]])
})

test('a task that its account cannot pay leaves a record and no row', async () => {
  const poor = await harness.key({ credit: '1' })
  expect((await ask(harness, poor, 'POST', film())).status).toBe(402)
  await until(() => records().length === 1 && taskRows().length === 0, 'its row is gone')
  expect(records()).toEqual([['refused', 'refused', 0]])
  expect([harness.openHolds(), faults()]).toEqual([0, []])
})
