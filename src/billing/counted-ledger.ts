// A ledger that tells how each call ended, once that is durable.

import type { Ledger } from './ledger.ts'

export function countedLedger(ledger: Ledger, count: (outcome: string) => void): Ledger {
  return {
    hold: request => ledger.hold(request),
    checkpoint: (callId, used, usage) => ledger.checkpoint(callId, used, usage),
    async settle(record, cost, extras) {
      await ledger.settle(record, cost, extras)
      count(record.outcome)
    },
    async record(record) {
      await ledger.record(record)
      count(record.outcome)
    },
  }
}
