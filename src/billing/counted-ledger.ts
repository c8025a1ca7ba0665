// A ledger that tells how each call ended, once that is durable.

import type { Ledger } from './ledger.ts'

export function countedLedger(ledger: Ledger, count: (outcome: string) => void): Ledger {
  return {
    ...ledger,
    async settle(record, cost, extras) {
      const done = await ledger.settle(record, cost, extras)
      count(record.outcome)
      return done
    },
    async record(record) {
      await ledger.record(record)
      count(record.outcome)
    },
  }
}
