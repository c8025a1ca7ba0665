// What the pipeline needs of the limits. One process counts in memory and answers at once; several processes count
// together, and their answers may take a moment.

import type { LimitDebt } from '../store/ledger/limit-debts.ts'
import type { LimitRow } from '../store/rules/rules.ts'
import type { CountedCall } from './limit-owner.ts'
import type { LimitedCall, LimitedCaller } from './limited-call.ts'
import type { LimitAdmission, LimitRefusal, Quota } from './limits.ts'

export interface LimitCounter {
  setRules(rows: readonly LimitRow[]): void
  admit(subject: LimitedCall, nowMs: number): LimitAdmission | Promise<LimitAdmission>
  admitRest(subject: LimitedCall, counted: CountedCall, nowMs: number): LimitAdmission | Promise<LimitAdmission>
  refusalOfKey(who: LimitedCaller, nowMs: number): LimitRefusal | undefined
  refusalOfCall(subject: LimitedCall, nowMs: number): LimitRefusal | undefined | Promise<LimitRefusal | undefined>
  quotasOfKey(who: LimitedCaller, nowMs: number): readonly Quota[] | Promise<readonly Quota[]>
  quotasOfCall(subject: LimitedCall, nowMs: number): readonly Quota[] | Promise<readonly Quota[]>
  takeDayUsage(nowMs: number, dateMs: number): readonly LimitDebt[]
  readonly size: { readonly owners: number; readonly leases: number }
}
