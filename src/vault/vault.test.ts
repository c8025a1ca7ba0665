// Tests the vault with a real file and writer thread: what it returns, to which account, after a restart, and for how long.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../../test/support/database.ts'
import { bounds } from '../base/bounds.ts'
import { Seal } from '../base/secrets/seal.ts'
import { buildSecretRing } from '../base/secrets/secret-ring.ts'
import type { SqliteReader } from '../store/engine/reader.ts'
import { openCallReader } from '../store/engine/reader.ts'
import { Writer } from '../store/engine/writer.ts'
import type { ResponseFacts, TaskFacts } from '../store/vault/vault-types.ts'
import type { ResponseBody } from './responses.ts'
import type { Vault } from './vault.ts'
import { openVault } from './vault.ts'

const [alice, bob] = [11, 12]
const DAY_MS = 24 * 3_600_000

let folder: string
let path: string
let writer: Writer
let reader: SqliteReader
let vault: Vault
let nowMs: number
let problems: string[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-vault-'))
  path = join(folder, 'weir.db')
  nowMs = Date.UTC(2026, 10, 15)
  problems = []
  await open()
})
afterEach(async () => {
  await close()
  rmSync(folder, { recursive: true, force: true })
})

async function open(secret = 'a'): Promise<void> {
  ;[writer] = await Writer.open({ path, ballastBytes: 0 }, detail => {
    throw new Error(detail)
  })
  reader = openCallReader(path)
  const seal = new Seal(buildSecretRing(secret.repeat(43)))
  const onProblem = (detail: string): void => void problems.push(detail)
  vault = await openVault({ writer, reader, seal, dateMs: () => nowMs, days: 30, onProblem })
}

async function close(): Promise<void> {
  await vault.close()
  reader.close()
  await writer.close()
}

async function restart(secret?: string): Promise<void> {
  await close()
  await open(secret)
}

/** Changes the file as somebody with access to it could. */
function tamper(sql: string): void {
  const db = openDatabase(path, { readwrite: true })
  db.run(sql)
  db.close()
}

function facts(id: string, more: Partial<ResponseFacts> = {}): ResponseFacts {
  return {
    accountId: alice,
    id,
    keyId: 21,
    status: 'completed',
    model: 'p/m',
    channel: 'p#1',
    upstreamId: null,
    previousId: null,
    createdMs: nowMs,
    ...more,
  }
}

const body = (text: string): ResponseBody => ({
  input: [{ role: 'user', content: text }],
  output: [{ type: 'message', text: `re: ${text}` }],
  response: { id: text, object: 'response' },
})

const keyOf = (id: string, accountId = alice) => ({ accountId, id })

describe('a response', () => {
  test('is returned after a restart, to its account only, and its text is not readable in the file', async () => {
    expect(await vault.responses.put(facts('resp_1'), body('a secret word'))).toBe('kept')
    await restart()
    expect(await vault.responses.get(keyOf('resp_1'))).toEqual({
      ...facts('resp_1'),
      expiresMs: nowMs + 30 * DAY_MS,
      body: body('a secret word'),
    })
    expect(await vault.responses.get(keyOf('resp_1', bob))).toBeUndefined()
    expect(await vault.responses.delete(keyOf('resp_1', bob))).toBe(false)
    expect(readFileSync(path).includes('a secret word')).toBe(false)
    expect(await vault.responses.delete(keyOf('resp_1'))).toBe(true)
    expect(await vault.responses.get(keyOf('resp_1'))).toBeUndefined()
  })

  test('cannot be decrypted in another row or account, nor with another key, and nothing is thrown', async () => {
    await vault.responses.put(facts('resp_1'), body('x'))
    await vault.responses.put(facts('resp_2', { channel: 'p#1', upstreamId: 'up' }), body('y'))
    tamper(`UPDATE kept_response SET account_id = ${bob} WHERE id = 'resp_1'`)
    expect(await vault.responses.get(keyOf('resp_1', bob))).toBeUndefined()
    expect(problems).toEqual([expect.stringContaining('was copied from another row')])
    tamper(`UPDATE kept_response SET account_id = ${alice} WHERE id = 'resp_1'`)
    expect(await vault.responses.get(keyOf('resp_1'))).toBeDefined()
    await restart('b')
    expect(await vault.responses.get(keyOf('resp_1'))).toBeUndefined()
    expect(await vault.responses.get(keyOf('resp_2'))).toMatchObject({ upstreamId: 'up' }) // its upstream still stores the response
    expect(problems.at(-1)).toContain('an encryption key that is not configured')
  })

  test('that the upstream stores has a row and no body', async () => {
    await vault.responses.put(facts('resp_up', { upstreamId: 'resp_up' }))
    const stored = await vault.responses.get(keyOf('resp_up'))
    expect([stored?.channel, stored?.upstreamId, stored?.body]).toEqual(['p#1', 'resp_up', undefined])
  })

  test('in the background changes until it is finished', async () => {
    await vault.responses.put(facts('resp_1', { status: 'queued' }), body('queued'))
    expect(await vault.responses.change(keyOf('resp_1'), 'in_progress')).toBe('changed')
    expect(await vault.responses.get(keyOf('resp_1'))).toMatchObject({ status: 'in_progress', body: body('queued') })
    expect(await vault.responses.change(keyOf('resp_1'), 'completed', body('done'))).toBe('changed')
    expect(await vault.responses.change(keyOf('resp_1'), 'cancelled')).toBe('over')
    expect(await vault.responses.change(keyOf('resp_1', bob), 'cancelled')).toBe('unknown')
    expect(await vault.responses.get(keyOf('resp_1'))).toMatchObject({ status: 'completed', body: body('done') })
  })

  test('is deleted after thirty days', async () => {
    await vault.responses.put(facts('resp_1'), body('x'))
    nowMs += 30 * DAY_MS - 1
    expect(await vault.responses.get(keyOf('resp_1'))).toBeDefined()
    nowMs += 1
    expect(await vault.responses.get(keyOf('resp_1'))).toBeUndefined()
  })

  test('that is too large, or has a too long id, is not stored', async () => {
    expect(await vault.responses.put(facts('resp_1'), body('x'.repeat(bounds.storedResponseBytesMax)))).toBe(
      'too_large',
    )
    const endless = 'x'.repeat(bounds.storedIdCharsMax + 1)
    expect(await vault.responses.put(facts(endless), body('x'))).toBe('too_large')
    expect([await vault.responses.get(keyOf(endless)), await vault.responses.get(keyOf(''))]).toEqual([
      undefined,
      undefined,
    ])
  })
})

describe('a chain of responses', () => {
  const link = (index: number, more: Partial<ResponseFacts> = {}, text = String(index)) =>
    vault.responses.put(
      facts(`resp_${index}`, { previousId: index === 0 ? null : `resp_${index - 1}`, ...more }),
      body(text),
    )

  test('is returned from its beginning', async () => {
    for (let index = 0; index < 3; index++) await link(index)
    const chain = await vault.responses.chain(keyOf('resp_2'))
    expect(chain.done === 'found' && chain.links.map(({ id }) => id)).toEqual(['resp_0', 'resp_1', 'resp_2'])
  })

  test("names the link that is missing, also when it is another account's", async () => {
    await link(0, { accountId: bob })
    await link(1)
    expect(await vault.responses.chain(keyOf('resp_1'))).toEqual({ done: 'missing', id: 'resp_0' })
    expect(await vault.responses.chain(keyOf('resp_9'))).toEqual({ done: 'missing', id: 'resp_9' })
  })

  test('is limited in length, also when it is a circle', async () => {
    await Promise.all(Array.from({ length: bounds.responseChainMax + 1 }, (_, index) => link(index)))
    const longest = await vault.responses.chain(keyOf(`resp_${bounds.responseChainMax - 1}`))
    expect(longest.done === 'found' && longest.links.length).toBe(bounds.responseChainMax)
    expect(await vault.responses.chain(keyOf(`resp_${bounds.responseChainMax}`))).toEqual({ done: 'too_long' })
    await link(0, { previousId: 'resp_5' })
    expect(await vault.responses.chain(keyOf('resp_5'))).toEqual({ done: 'too_long' })
  })

  test('is limited in bytes', async () => {
    const size = 7 * 1024 * 1024
    for (let index = 0; index < 5; index++) await link(index, {}, 'x'.repeat(size / 3))
    expect((await vault.responses.chain(keyOf('resp_3'))).done).toBe('found')
    expect((await vault.responses.chain(keyOf('resp_4'))).done).toBe('too_long')
  })
})

describe('reasoning state', () => {
  test('is available at once, to its account only, and the newest replaces older ones', async () => {
    vault.reasoning.put(keyOf('call_1'), ['d2VpcjF7old'])
    vault.reasoning.put(keyOf('call_1'), ['d2VpcjF7a', 'd2VpcjF7b'])
    expect(await vault.reasoning.get(keyOf('call_1'))).toEqual(['d2VpcjF7a', 'd2VpcjF7b'])
    expect(await vault.reasoning.get(keyOf('call_1', bob))).toBeUndefined()
    await restart()
    expect(await vault.reasoning.get(keyOf('call_1'))).toEqual(['d2VpcjF7a', 'd2VpcjF7b'])
    expect(await vault.reasoning.get(keyOf('call_1', bob))).toBeUndefined()
    expect(readFileSync(path).includes('d2VpcjF7')).toBe(false)
    nowMs += bounds.reasoningStateMsMax
    expect(await vault.reasoning.get(keyOf('call_1'))).toBeUndefined()
    expect([vault.reasoning.dropped, problems]).toEqual([0, []])
  })

  test('expires in memory, too', async () => {
    vault.reasoning.put(keyOf('call_1'), ['x'])
    nowMs += bounds.reasoningStateMsMax
    expect(await vault.reasoning.get(keyOf('call_1'))).toBeUndefined()
  })

  test('that comes faster than the disk writes is only in memory, and this is reported once', async () => {
    const text = 'x'.repeat(200_000)
    const fitCount = Math.floor(bounds.reasoningWaitingBytesMax / (text.length + 4))
    for (let index = 0; index < fitCount + 3; index++) vault.reasoning.put(keyOf(`call_${index}`), [text])
    expect([vault.reasoning.dropped, problems.length]).toEqual([3, 1])
    expect(await vault.reasoning.get(keyOf(`call_${fitCount + 2}`))).toEqual([text])
  })

  test('uses limited memory, and is read from the disk otherwise', async () => {
    const text = 'x'.repeat(200_000)
    const many = Math.ceil(bounds.reasoningCachedBytesMax / text.length) + 10
    for (let index = 0; index < many; index++) {
      vault.reasoning.put(keyOf(`call_${index}`), [text, String(index)])
      if (index % 20 === 19) await writer.run('setSetting', { name: 'x', value: 'x' }) // everything before this operation is written then
    }
    await writer.run('setSetting', { name: 'x', value: 'x' })
    expect(vault.reasoning.dropped).toBe(0)
    expect((await vault.reasoning.get(keyOf('call_0')))?.[1]).toBe('0')
    tamper('DELETE FROM kept_reasoning')
    expect(await vault.reasoning.get(keyOf('call_0'))).toBeUndefined()
    expect((await vault.reasoning.get(keyOf(`call_${many - 1}`)))?.[1]).toBe(String(many - 1))
  })

  test('that is too large is not stored', async () => {
    vault.reasoning.put(keyOf('call_1'), ['x'.repeat(bounds.reasoningStateBytesMax)])
    expect([await vault.reasoning.get(keyOf('call_1')), vault.reasoning.dropped]).toEqual([undefined, 1])
  })
})

describe('a task', () => {
  const task: TaskFacts = {
    callId: 7_000,
    accountId: alice,
    id: 'cgt-1',
    keyId: 21,
    provider: 'p',
    model: 'm',
    channel: 'p#1',
    admitted: '{}',
    createdMs: 5,
  }
  const body = Buffer.from('{"status":"running","content":"a secret word"}')

  test('is polled until it is finished, also after a restart', async () => {
    expect(await vault.tasks.create(task, nowMs + 10)).toBe('created')
    expect(await vault.tasks.create(task, nowMs + 10)).toBe('exists')
    const change = { callId: 7_000, updatedMs: nowMs, polledMs: nowMs }
    await vault.tasks.change({ ...change, status: 'running', dueMs: nowMs + 20, upstreamId: 'up-1' }, body)
    await restart()
    expect(await vault.tasks.listDue(nowMs + 19)).toEqual([])
    const [due] = await vault.tasks.listDue(nowMs + 20)
    expect(due).toMatchObject({ id: 'cgt-1', accountId: alice, upstreamId: 'up-1', channel: 'p#1', polledMs: nowMs })
    expect(due?.body).toEqual(body)
    expect(await vault.tasks.delete(keyOf('cgt-1'))).toBe('under_way')
    expect(await vault.tasks.change({ ...change, status: 'succeeded', dueMs: null })).toBe('changed')
    expect(await vault.tasks.get(keyOf('cgt-1'))).toMatchObject({ status: 'succeeded', body })
    expect(await vault.tasks.get(keyOf('cgt-1', bob))).toBeUndefined()
    expect((await vault.tasks.list(alice, { limit: 10, offset: 0 })).total).toBe(1)
    expect(await vault.tasks.listDue(nowMs + DAY_MS)).toEqual([])
    expect(await vault.tasks.delete(keyOf('cgt-1'))).toBe('dropped')
  })

  test('has an id that is not used again after a restart', async () => {
    await vault.tasks.create({ ...task, callId: 2 ** 50 }, nowMs)
    await close()
    const [reopened, start] = await Writer.open({ path, ballastBytes: 0 }, () => {})
    expect(start.lastId).toBe(2 ** 50)
    await reopened.close()
    await open()
  })

  test('changes without the body when the body is too large', async () => {
    await vault.tasks.create(task, nowMs)
    const change = { callId: 7_000, status: 'failed', dueMs: null, updatedMs: nowMs } as const
    expect(await vault.tasks.change(change, Buffer.alloc(bounds.taskBodyBytesMax + 1))).toBe('changed')
    expect((await vault.tasks.get(keyOf('cgt-1')))?.body).toBeUndefined()
    expect(problems).toHaveLength(1)
  })
})

test('a file belongs to its account and its channel', async () => {
  await vault.files.add(keyOf('file-1'), { channel: 'p#2', bytes: 3 })
  expect([await vault.files.channelOf(keyOf('file-1')), await vault.files.channelOf(keyOf('file-1', bob))]).toEqual([
    'p#2',
    undefined,
  ])
  expect([await vault.files.sum(alice), await vault.files.sum(bob)]).toEqual([
    { files: 1, bytes: 3 },
    { files: 0, bytes: 0 },
  ])
  expect(await vault.references.channelsOf(alice, ['file:file-1', 'container:file-1'])).toEqual(
    new Map([['file:file-1', 'p#2']]),
  )
  expect([await vault.files.remove(keyOf('file-1', bob)), await vault.files.remove(keyOf('file-1'))]).toEqual([
    false,
    true,
  ])
  expect(await vault.files.channelOf(keyOf('file-1'))).toBeUndefined()
})

test('an id of an answer belongs to its account and channel until it expires, also after a restart', async () => {
  await vault.references.add(alice, ['container:c1', 'item:i1'], 'p#2')
  await vault.references.add(alice, ['container:c1', 'x'.repeat(bounds.storedIdCharsMax + 1)], 'p#3')
  const ids = ['container:c1', 'item:i1', 'item:c1', 'x'.repeat(bounds.storedIdCharsMax + 1)]
  expect(await vault.references.channelsOf(alice, ids)).toEqual(
    new Map([
      ['container:c1', 'p#3'],
      ['item:i1', 'p#2'],
    ]),
  )
  expect((await vault.references.channelsOf(bob, ids)).size).toBe(0)
  await restart()
  expect((await vault.references.channelsOf(alice, ids)).size).toBe(2)
  nowMs += bounds.storedReferenceMsMax
  expect((await vault.references.channelsOf(alice, ids)).size).toBe(0)
})

describe('a token count factor', () => {
  test('is one until there are enough samples, then their mean, and survives a restart', async () => {
    expect(vault.factors.get('p/m')).toEqual({ factor: 1, band: 0.3, samples: 0 })
    for (let index = 0; index < 7; index++) vault.factors.learn('p/m', 100, 150)
    expect(vault.factors.get('p/m')).toEqual({ factor: 1, band: 0.3, samples: 7 })
    for (let index = 0; index < 13; index++) vault.factors.learn('p/m', 1_000, index % 2 === 0 ? 1_400 : 1_600)
    const beforeRestart = vault.factors.get('p/m')
    expect([beforeRestart.factor, beforeRestart.samples]).toEqual([expect.closeTo(1.495, 3), 20])
    expect(beforeRestart.band).toBeGreaterThan(0.08)
    expect(beforeRestart.band).toBeLessThan(0.13)
    await restart()
    const afterRestart = vault.factors.get('p/m')
    expect([afterRestart.factor, afterRestart.band, afterRestart.samples]).toEqual([
      ...[expect.closeTo(beforeRestart.factor, 9), expect.closeTo(beforeRestart.band, 9)],
      20,
    ])
    expect(vault.factors.get('p/other').samples).toBe(0)
  })

  test.each([
    ['no tokens were counted', 0, 100],
    ['too few tokens were counted', 31, 31],
    ['no tokens were reported', 100, 0],
    ['far too many tokens were reported', 100, 1_000_000],
    ['the report is not a number', 100, Number.NaN],
    ['the report is negative', 100, -100],
  ])('learns nothing if %s', (_why, counted, reported) => {
    for (let index = 0; index < 10; index++) vault.factors.learn('p/m', counted, reported)
    expect(vault.factors.get('p/m').samples).toBe(0)
  })

  test('that could not be stored is stored later', async () => {
    let isWriterAway = true
    const run = ((...args: Parameters<Writer['run']>) =>
      isWriterAway ? Promise.reject(new Error('away')) : writer.run(...args)) as Writer['run']
    const seal = new Seal(buildSecretRing('a'.repeat(43)))
    const onProblem = (detail: string): void => void problems.push(detail)
    const other = await openVault({ writer: { run }, reader, seal, dateMs: () => nowMs, days: 30, onProblem })
    for (let index = 0; index < 10; index++) other.factors.learn('p/m', 100, 150)
    await other.factors.flush()
    expect([problems.length, reader.vault.factors().size]).toEqual([1, 0])
    isWriterAway = false
    other.factors.learn('p/m', 100, 150)
    await other.close()
    expect(reader.vault.factors().get('p/m')?.n).toBe(11)
  })
})
