// Hold, settle and record of many calls at the same time, on a real database file with real commits. It runs in its own
// process, so that its CPU time is that of the ledger. Prints one line of JSON.
//
// calls.ts <database> <calls> <in flight> <accounts>

import { buildIdMinter } from '../../src/base/ids.ts'
import type { OperationInput } from '../../src/store/engine/operations.ts'
import { Writer } from '../../src/store/engine/writer.ts'
import type { RecordRow } from '../../src/store/ledger/hold-types.ts'

const [path = '', calls = '20000', inFlight = '64', accounts = '100'] = process.argv.slice(2)

const draft = {
  dialect: 'openai-chat',
  provider: 'openai',
  model: 'gpt-4o-mini',
  streamed: false,
  priceVersion: 321,
  endUser: null,
  tags: null,
}

function recordOf(callId: number, accountId: number): RecordRow {
  return {
    ...draft,
    callId,
    keyId: accountId + 1,
    accountId,
    channel: 'openai#1',
    status: 200,
    error: null,
    outcome: 'completed',
    rule: 'completed',
    usageSource: 'reported',
    inputTokens: 812,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 214,
    reasoningTokens: 0,
    lines: '[["input",812,"0.15"],["output",214,"0.60"]]',
    attempts: '[["openai#1","answered",412]]',
    timings: '{"Auth":0,"RateLimit":0,"Route":0,"Adapter":0.1,"fwd":412.3,"cost":0,"deduct":0.4,"record":0}',
    firstContentMs: 412,
    durationMs: 413,
  }
}

async function makeAccounts(writer: Writer, count: number, mintId: () => number): Promise<number[]> {
  const made = Array.from({ length: count }, async () => {
    const [accountId, id, creditRef] = [mintId(), mintId(), mintId()]
    const digest = `${id}`.padStart(64, '0')
    const key: OperationInput<'createKey'> = {
      id,
      accountId,
      existing: false,
      digest,
      pepper: 'aabbccdd',
      suffix: 'abcd',
      name: 'bench',
      tier: 'pro',
      qpm: null,
      credit: '1000000000000000',
      creditRef,
    }
    await writer.run('createKey', key, { actor: 'test' })
    return accountId
  })
  return await Promise.all(made)
}

const [writer, start] = await Writer.open({ path, ballastBytes: 0 }, detail => {
  throw new Error(detail)
})
const mintId = buildIdMinter(Date.now, start.lastId)
const ids = await makeAccounts(writer, Number(accounts), mintId)

/** The lanes take turns, so that the active calls belong to different accounts. */
let turn = 0

async function lane(count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const [callId, accountId] = [mintId(), ids[turn++ % ids.length]!]
    await writer.run('hold', {
      callId,
      kind: 'call',
      accountId,
      keyId: accountId + 1,
      amount: '1234567',
      wants: '0',
      draft,
    })
    await writer.run('settle', { record: recordOf(callId, accountId), cost: '250200' })
  }
}

async function run(count: number): Promise<{ callsPerSecond: number; cpuMicros: number }> {
  const [sinceMs, cpu] = [performance.now(), process.cpuUsage()]
  const lanes = Number(inFlight)
  await Promise.all(Array.from({ length: lanes }, () => lane(Math.ceil(count / lanes))))
  const used = process.cpuUsage(cpu)
  const seconds = (performance.now() - sinceMs) / 1_000
  return { callsPerSecond: Math.round(count / seconds), cpuMicros: (used.user + used.system) / count }
}

await run(Number(calls) / 4)
process.stdout.write(`${JSON.stringify(await run(Number(calls)))}\n`)
await writer.close()
