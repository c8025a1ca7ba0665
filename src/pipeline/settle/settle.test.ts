// Unsettled calls: all of them are retried, and once more at shutdown.

import { expect, test } from 'bun:test'
import { buildLog } from '../../base/log.ts'
import { noLimitLease } from '../../limits/leases.ts'
import type { CallEnding, Exchange } from '../exchange.ts'
import { newAttempt, newCallParts } from '../exchange.ts'
import { Timings } from '../timings.ts'
import type { BodyStorage } from './keep-bodies.ts'
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
  let isAway = true
  async function deduct({ callId, outcome }: { callId: number; outcome: string }): Promise<void> {
    if (isAway || callId === 7) throw new Error('not now')
    expect(outcome).toBe('gateway_fault') // its caller got an error and no answer
    written.push(callId)
  }
  const keeping: BodyStorage = { idempotencyEnd: () => ({}), storeBodies() {} }
  const settling = buildSettler({ deduct, bodyStorage: keeping, log: buildLog('error', () => {}) })
  for (const callId of [7, 8, 9]) {
    await expect(settling.settle(exchangeOf(callId), completed)).rejects.toThrow('not now')
  }
  await settling.close()
  expect(settling.unsettledCalls).toBe(3)
  isAway = false
  for (let round = 0; round < 3; round++) await settling.close()
  expect(written).toEqual([8, 9])
  expect(settling.unsettledCalls).toBe(1)
})

test('an unsettled call keeps only its record, and too many of them refuse new calls', async () => {
  let isAway = true
  const written: Record<string, unknown>[] = []
  async function deduct(row: object, { amount }: { amount: bigint }, extras: unknown): Promise<void> {
    if (isAway) throw new Error('not now')
    written.push({ ...row, amount, extras })
  }
  const answer = Buffer.alloc(1_000_000, 'x')
  const keeping: BodyStorage = {
    idempotencyEnd: () => ({ idempotency: { sealed: answer.toString() } }),
    storeBodies() {},
  }
  const settling = buildSettler({ deduct, bodyStorage: keeping, log: buildLog('error', () => {}), unsettledMax: 3 })
  const kept: WeakRef<object>[] = []
  async function owe(callId: number): Promise<void> {
    const body = Buffer.alloc(1_000_000)
    const meter = { ...newMeter(), forwarded: true, content: true, outputBytes: 40, delivered: true }
    const exchange = {
      ...exchangeOf(callId),
      attempt: { ...newAttempt(), meter },
      call: { body, json: {}, stream: true, inputBytes: 8 },
    }
    kept.push(new WeakRef(exchange), new WeakRef(body))
    await settling.settle(exchange as unknown as Exchange, completed).catch(() => {})
  }
  for (let callId = 1; callId <= 3; callId++) {
    settling.checkUnsettled()
    await owe(callId)
  }
  expect(() => settling.checkUnsettled()).toThrow('storage_away')
  await owe(4) // these calls were already running: their settlements are not dropped
  expect(settling.unsettledCalls).toBe(4)
  for (let round = 0; round < 10; round++) {
    await new Promise(resolve => setTimeout(resolve, 1))
    Bun.gc(true)
  }
  const left = kept.filter(ref => ref.deref() !== undefined)
  expect(left.length).toBeLessThanOrEqual(2) // the last may still be on the stack
  isAway = false
  await settling.close()
  expect([settling.unsettledCalls, written.length]).toEqual([0, 4])
  for (const row of written) {
    expect(row).toMatchObject({ outcome: 'completed', extras: { idempotency: { sealed: null } } })
  }
  settling.checkUnsettled()
})
