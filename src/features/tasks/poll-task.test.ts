// Several processes poll the tasks of one store: a task is polled by one of them at a time, and one that is being started
// is left alone as long as its process is alive.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildLog } from '../../base/log.ts'
import { Seal } from '../../base/secrets/seal.ts'
import { buildSecretRing } from '../../base/secrets/secret-ring.ts'
import { Stop } from '../../base/stop.ts'
import type { SqliteReader } from '../../store/engine/reader.ts'
import { openCallReader } from '../../store/engine/reader.ts'
import type { Jobs } from '../../store/engine/store-engine.ts'
import { Writer } from '../../store/engine/writer.ts'
import type { Vault } from '../../vault/vault.ts'
import { openVault } from '../../vault/vault.ts'
import type { TaskPollsParts } from './poll-task.ts'
import { TaskPolls, taskJob } from './poll-task.ts'

let folder: string
let writer: Writer
let reader: SqliteReader
let vault: Vault
let nowMs: number
/** Which process has which job. */
let leases: Map<string, string>
let asked: string[]
let dropped: number[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-polls-'))
  const path = join(folder, 'weir.db')
  ;[writer] = await Writer.open({ path, ballastBytes: 0 }, detail => {
    throw new Error(detail)
  })
  reader = openCallReader(path)
  const seal = new Seal(buildSecretRing('a'.repeat(43)))
  nowMs = Date.UTC(2026, 10, 15)
  vault = await openVault({ writer, reader, seal, dateMs: () => nowMs, days: 30, onProblem() {} })
  leases = new Map()
  asked = []
  dropped = []
})
afterEach(async () => {
  await vault.close()
  reader.close()
  await writer.close()
  rmSync(folder, { recursive: true, force: true })
})

const jobsOf = (process: string): Pick<Jobs, 'isOurs' | 'isElsewhere' | 'giveBack'> => ({
  async isOurs(job) {
    if (!leases.has(job)) leases.set(job, process)
    return leases.get(job) === process
  },
  isElsewhere: async job => leases.has(job) && leases.get(job) !== process,
  async giveBack(job) {
    if (leases.get(job) === process) leases.delete(job)
  },
})

function begin(process: string): TaskPolls {
  const provider = { id: 'p' }
  const catalogue = { providers: new Map([['p', provider]]), findOrSuccessor: () => ({ id: 'p-1' }) }
  return new TaskPolls({
    tasks: vault.tasks,
    jobs: jobsOf(process),
    settler: {
      async finish() {},
      async close({ callId }, status) {
        dropped.push(callId)
        await vault.tasks.change({ callId, status, dueMs: null, updatedMs: nowMs })
      },
    },
    catalogue: catalogue as unknown as TaskPollsParts['catalogue'],
    async queryUpstream() {
      asked.push(process)
      return { status: 200, headers: new Headers(), body: Buffer.from('{"id":"cgt-1","status":"running"}') } as never
    },
    log: buildLog('error', line => asked.push(line)),
    stop: new Stop<Error>(),
    chance: () => 0.5,
    dateMs: () => nowMs,
    isStarting: () => false,
  })
}

async function createTask(upstreamId?: string): Promise<void> {
  const about = { provider: 'p', model: 'm', channel: 'p-1', admitted: '{}' }
  await vault.tasks.create({ callId: 7, accountId: 11, keyId: 21, id: 'cgt-1', createdMs: nowMs, ...about }, nowMs)
  if (upstreamId !== undefined)
    await vault.tasks.change({ callId: 7, status: 'queued', dueMs: nowMs, updatedMs: nowMs, upstreamId })
  nowMs += 5_000
}

test('a task that two processes have found due is polled by one of them, and the other gets what it wrote', async () => {
  await createTask('cgt-1')
  const [task] = await vault.tasks.listDue(nowMs)
  const polls = [begin('a'), begin('b')]
  const polled = await Promise.all(polls.map(one => one.poll(task!)))
  // Later, with what it had read before.
  polled.push(await polls[1]!.poll(task!))
  expect(asked).toHaveLength(1)
  expect(polled.at(-1)).toMatchObject({ status: 'running', updatedMs: nowMs })
  expect(leases.size).toBe(0)
})

test('a task that is being started is dropped only when its process is dead', async () => {
  leases.set(taskJob(7), 'a')
  await createTask()
  const [task] = await vault.tasks.listDue(nowMs)
  const polls = begin('b')
  expect(await polls.poll(task!)).toMatchObject({ upstreamId: null })
  expect(dropped).toEqual([])
  leases.clear()
  expect(await polls.poll(task!)).toBeUndefined()
  expect(dropped).toEqual([7])
})

test('a task that was started after it was read is polled, and not dropped', async () => {
  leases.set(taskJob(7), 'a')
  await createTask()
  const [task] = await vault.tasks.listDue(nowMs)
  await vault.tasks.change({ callId: 7, status: 'queued', dueMs: nowMs, updatedMs: nowMs, upstreamId: 'cgt-1' })
  leases.clear()
  expect(await begin('b').poll(task!)).toMatchObject({ upstreamId: 'cgt-1' })
  expect(dropped).toEqual([])
})
