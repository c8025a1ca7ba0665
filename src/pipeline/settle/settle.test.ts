// Unsettled calls: all of them are retried, and once more at shutdown.

import { expect, test } from 'bun:test'
import { buildLog } from '../../base/log.ts'
import { noLimitLease } from '../../limits/leases.ts'
import type { CallEnding, Exchange } from '../exchange.ts'
import { newAttempt, newCallParts } from '../exchange.ts'
import { Timings } from '../timings.ts'
import type { CallBodyStorage } from './keep-bodies.ts'
import { buildSettler } from './settle.ts'
import { newMeter } from './usage-meter.ts'

const completed: CallEnding = { outcome: 'completed', status: 200 }

function exchangeOf(callId: number): Exchange {
  return {
    callId,
    requestId: `req_${callId}`,
    startedMs: 0,
    attempts: [],
    ...newCallParts(),
    settlement: { mayHaveHold: true },
    lifetime: {},
    attempt: newAttempt(),
    timings: new Timings(() => 0),
    protocol: { name: 'x' },
    permit: { caller: { keyId: 1, accountId: 2 }, quotas: [], lease: noLimitLease },
  } as unknown as Exchange
}

test('a settlement that can never be written does not block the others', async () => {
  const written: number[] = []
  let isStorageAway = true
  async function deduct({ callId, outcome }: { callId: number; outcome: string }): Promise<void> {
    if (isStorageAway || callId === 7) throw new Error('not now')
    expect(outcome).toBe('gateway_fault') // the caller got an error and no answer
    written.push(callId)
  }
  const bodyStorage: CallBodyStorage = { idempotencyEnd: () => ({}), storeBodies() {} }
  const settler = buildSettler({ deduct, bodyStorage, log: buildLog('error', () => {}) })
  for (const callId of [7, 8, 9]) {
    await expect(settler.settle(exchangeOf(callId), completed)).rejects.toThrow('not now')
  }
  await settler.close()
  expect(settler.unsettledCalls).toBe(3)
  isStorageAway = false
  for (let round = 0; round < 3; round++) await settler.close()
  expect(written).toEqual([8, 9])
  expect(settler.unsettledCalls).toBe(1)
})

test('an unsettled call keeps only its record in memory, and too many unsettled calls make new calls refused', async () => {
  let isStorageAway = true
  const written: Record<string, unknown>[] = []
  async function deduct(row: object, { amount }: { amount: bigint }, extras: unknown): Promise<void> {
    if (isStorageAway) throw new Error('not now')
    written.push({ ...row, amount, extras })
  }
  const answer = Buffer.alloc(1_000_000, 'x')
  const bodyStorage: CallBodyStorage = {
    idempotencyEnd: () => ({ idempotency: { sealed: answer.toString() } }),
    storeBodies() {},
  }
  const most = 20
  const settler = buildSettler({ deduct, bodyStorage, log: buildLog('error', () => {}), unsettledMax: most })
  const references: WeakRef<object>[] = []
  async function addUnsettled(callId: number): Promise<void> {
    const body = Buffer.alloc(1_000_000)
    const meter = { ...newMeter(), forwarded: true, content: true, outputBytes: 40, delivered: true }
    const exchange = {
      ...exchangeOf(callId),
      attempt: { ...newAttempt(), meter },
      call: { body, json: {}, stream: true, inputBytes: 8 },
    }
    references.push(new WeakRef(exchange), new WeakRef(body))
    await settler.settle(exchange as unknown as Exchange, completed).catch(() => {})
  }
  for (let callId = 1; callId <= most; callId++) {
    settler.checkUnsettled()
    await addUnsettled(callId)
  }
  expect(() => settler.checkUnsettled()).toThrow('storage_away')
  await addUnsettled(most + 1) // this call was already running: its settlement is not dropped
  expect(settler.unsettledCalls).toBe(most + 1)
  for (let round = 0; round < 10; round++) {
    await new Promise(resolve => setTimeout(resolve, 1))
    Bun.gc(true)
  }
  const alive = references.filter(ref => ref.deref() !== undefined)
  expect(alive.length).toBeLessThan(references.length / 2) // some may still be on the stack, which has no types
  isStorageAway = false
  await settler.close()
  expect([settler.unsettledCalls, written.length]).toEqual([0, most + 1])
  for (const row of written) {
    expect(row).toMatchObject({ outcome: 'completed', extras: { idempotency: { sealed: null } } })
  }
  settler.checkUnsettled()
})
