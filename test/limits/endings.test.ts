// A hundred thousand calls that end in every way, reported once, twice, late or never: no concurrency slot is ever
// lost, and none is taken by more calls than allowed.

import { expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import type { LimitLease } from '../../src/limits/leases.ts'
import type { LimitedCall } from '../../src/limits/limited-call.ts'
import { Limits } from '../../src/limits/limits.ts'
import { chanceOf } from '../support/chance.ts'
import { concurrency, row, subject, tokens } from './rows.ts'

const ENDINGS = 100_000

const rules = [
  row(1, { ...concurrency(5), per: ['key'] }),
  row(2, { ...concurrency(8), per: ['account'] }),
  row(3, { ...concurrency(20), model: 'openai/*' }),
  row(4, { ...concurrency(3), per: ['key', 'model'] }),
  row(5, concurrency(30)),
  row(6, { ...tokens(1e10), per: ['key'] }),
]
const models = ['openai/a', 'openai/b', 'anthropic/c']

interface Open {
  readonly lease: LimitLease
  readonly of: LimitedCall
  readonly sinceMs: number
}

const isOpenai = ({ model }: LimitedCall): boolean => model!.startsWith('openai/')

/** Whether each limit has a free slot, by counting the open calls. */
function hasFreeSlot(open: readonly Open[], of: LimitedCall): boolean {
  const countOpen = (is: (one: LimitedCall) => boolean): number => open.filter(one => is(one.of)).length
  return (
    countOpen(({ keyId }) => keyId === of.keyId) < 5 &&
    countOpen(({ accountId }) => accountId === of.accountId) < 8 &&
    (!isOpenai(of) || countOpen(isOpenai) < 20) &&
    countOpen(({ keyId, model }) => keyId === of.keyId && model === of.model) < 3 &&
    open.length < 30
  )
}

test('none of a hundred thousand calls loses a concurrency slot', () => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  const chance = chanceOf(seed)
  const pick = (count: number): number => Math.floor(chance() * count)
  const limits = new Limits()
  limits.setRules(rules)
  let open: Open[] = []
  let [ms, ended] = [0, 0]
  while (ended < ENDINGS) {
    ms += chance() < 0.001 ? bounds.leaseMsMax / 2 : pick(30)
    const call = subject({ keyId: pick(9), accountId: 100 + pick(4), model: models[pick(3)]!, tokens: pick(500) })
    const expired = open.filter(({ sinceMs }) => ms - sinceMs >= bounds.leaseMsMax)
    open = open.filter(one => !expired.includes(one))
    const admission = limits.admit(call, ms)
    expect({ seed, ended, admitted: admission.admitted }).toEqual({ seed, ended, admitted: hasFreeSlot(open, call) })
    if (admission.admitted) open.push({ lease: admission.lease, of: call, sinceMs: ms })
    const over = Array.from({ length: Math.min(pick(3), open.length) }, () => open.splice(pick(open.length), 1)[0]!)
    // Some of the expired calls never report their end.
    for (const { lease } of [...over, ...expired.filter(() => chance() < 0.5)]) {
      endSomehow(lease, { way: pick(6), tokens: pick(900), ms })
      ended++
    }
  }
  expect(limits.size.leases).toBe(open.length)
  for (const { lease } of open) lease.release()
  expect(limits.size.leases).toBe(0)
  for (const model of models) {
    const quotas = limits
      .quotasOfCall(subject({ keyId: 3, model }), ms)
      .filter(({ resource }) => resource === 'concurrency')
    for (const { limit, remaining } of quotas) expect({ seed, remaining }).toEqual({ seed, remaining: limit })
  }
})

/** Ends the lease with or without a token count, once or twice, and with further reports after the end. */
function endSomehow(lease: LimitLease, { way, tokens: used, ms }: { way: number; tokens: number; ms: number }): void {
  if (way > 0) lease.correct(used, ms)
  lease.release()
  if (way === 2) lease.release()
  if (way === 3) lease.correct(0, ms)
  if (way === 4) lease.correct(used, ms + 5)
}
