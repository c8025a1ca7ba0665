// A ledger with its roller in a process that is killed: writes calls as fast as it can, some of them late and some
// refunded, while the roller sums them up. It writes a dot for each call that is settled.
//
// rolling-child.ts <folder>

import { join } from 'node:path'
import { buildIdMinter } from '../../src/base/ids.ts'
import { Writer } from '../../src/store/engine/writer.ts'
import type { MoneyText } from '../../src/store/ledger/money-text.ts'
import { StatisticsWorker } from '../../src/store/statistics/statistics-worker.ts'

const folder = process.argv[2]!
const database = join(folder, 'weir.db')
const fail = (detail: string): never => {
  throw new Error(detail)
}
const [writer, { lastId }] = await Writer.open({ path: database, ballastBytes: 0 }, fail)
const mintId = buildIdMinter(Date.now, lastId)
const rolling = new StatisticsWorker({ database, statistics: join(folder, 'stats.db'), writer, onError: fail })

const emptyFields = { priceVersion: null, endUser: null, tags: null }
const draft = { dialect: 'openai-chat', provider: 'p', model: 'm', streamed: false, ...emptyFields }

async function makeAccount(): Promise<{ accountId: number; keyId: number }> {
  const [accountId, keyId] = [mintId(), mintId()]
  const keyFields = { pepper: 'aabbccdd', suffix: 'abcd', name: 'x', tier: 'pro', qpm: null, existing: false }
  const digest = keyId.toString(16).padStart(64, '0')
  const key = { id: keyId, accountId, digest, credit: '1000000000', creditRef: mintId() } as const
  await writer.run('createKey', { ...key, ...keyFields }, { actor: 'cli' })
  return { accountId, keyId }
}

async function call(owner: { accountId: number; keyId: number }, at: number): Promise<void> {
  const [callId, cost] = [mintId(), `${BigInt(at % 7) * 100n}` as MoneyText]
  const kind = at % 5 === 0 ? 'task' : 'call'
  await writer.run('hold', { callId, kind, ...owner, amount: '600', wants: '0', draft })
  if (kind === 'task') await Bun.sleep(at % 60)
  const record = {
    ...draft,
    ...owner,
    callId,
    lines: null,
    channel: `p#${at % 3}`,
    status: 200,
    error: null,
    outcome: at % 4 === 0 ? 'upstream_failed' : 'completed',
    rule: 'x',
    usageSource: 'reported',
    attempts: null,
    timings: null,
    firstContentMs: at % 50,
    durationMs: at % 300,
    inputTokens: 3,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 2,
    reasoningTokens: 0,
  }
  await writer.run('settle', { record, cost })
  process.stdout.write('.')
  if (at % 9 !== 0 || cost === '0') return
  const refund = { kind: 'refund', ref: callId, accountId: owner.accountId, amount: 'all' } as const
  await writer.run('post', { ...refund, reference: null, author: 'x' }, { actor: 'cli' })
}

const owners = await Promise.all([1, 2, 3].map(makeAccount))
await Promise.all(
  Array.from({ length: 16 }, async (_, lane) => {
    for (let at = lane; ; at += 16) await call(owners[at % owners.length]!, at)
  }).concat(
    (async () => {
      for (;;) await rolling.catchUp()
    })(),
  ),
)
