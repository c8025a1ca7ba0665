// What is owed: calls whose settle did not become durable are tried again, all of them, and once more at the end.

import { expect, test } from 'bun:test'
import { buildLog } from '../base/log.ts'
import { noLease } from '../limits/leases.ts'
import type { Ending, Exchange } from './exchange.ts'
import { freshMeter } from './meter.ts'
import { buildSettling } from './settling.ts'
import { Timings } from './timings.ts'

const completed: Ending = { outcome: 'completed', status: 200 }

function exchangeOf(callId: number): Exchange {
  return {
    ...{ callId, requestId: `req_${callId}`, startedMs: 0, attempts: [], mayHold: true },
    ...{ meter: freshMeter(), timings: new Timings(() => 0), protocol: { name: 'x' } },
    permit: { caller: { keyId: 1, accountId: 2 }, quotas: [], lease: noLease },
  } as unknown as Exchange
}

test('one that can never be written does not stand in the way of the others', async () => {
  const written: number[] = []
  let isAway = true
  async function deduct({ callId, outcome }: { callId: number; outcome: string }): Promise<void> {
    if (isAway || callId === 7) throw new Error('not now')
    expect(outcome).toBe('gateway_fault') // its caller has been told so, and got nothing
    written.push(callId)
  }
  const keeping = { claimEnd: () => ({}), handOver() {} }
  const settling = buildSettling(deduct, keeping, buildLog('error', () => {}))
  for (const callId of [7, 8, 9]) {
    await expect(settling.settle(exchangeOf(callId), completed)).rejects.toThrow('not now')
  }
  await settling.close()
  expect(settling.owing).toBe(3)
  isAway = false
  for (let round = 0; round < 3; round++) await settling.close()
  expect(written).toEqual([8, 9])
  expect(settling.owing).toBe(1)
})
