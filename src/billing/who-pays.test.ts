// Tests every row of the table that decides charges.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Usage, UsageSource } from '../base/money/usage.ts'
import { noUsage, outputTokens } from '../base/money/usage.ts'
import type { FinishedCall, Outcome } from './who-pays.ts'
import { chargeRules, decideCharge, outcomes } from './who-pays.ts'

const reported: Usage = { input: 7, cacheRead: 2, output: 5 }
const early: Usage = { input: 7, cacheRead: 2, output: 0 }
const estimated: Usage = { input: 70, output: 50 }

type Charged =
  | 'none'
  | 'reported'
  | 'estimated'
  | 'input'
  | 'mixed'
  | 'reported + reasoning'
  | 'estimated + reasoning'
  | 'input + reasoning'

/** The hidden reasoning tokens of calls that may have some. */
const HIDDEN = 20

const charged: Readonly<Record<Charged, readonly [Usage, UsageSource]>> = {
  none: [noUsage, 'none'],
  reported: [reported, 'reported'],
  estimated: [estimated, 'estimated'],
  input: [{ input: 70, output: 0 }, 'estimated'],
  mixed: [{ ...early, output: 50 }, 'estimated'],
  'reported + reasoning': [{ ...reported, reasoning: HIDDEN }, 'estimated'],
  'estimated + reasoning': [{ ...estimated, reasoning: HIDDEN }, 'estimated'],
  'input + reasoning': [{ input: 70, output: 0, reasoning: HIDDEN }, 'estimated'],
}

/**
 * How far the call came: `-` nothing was sent upstream, `>` the request was sent, `<` content arrived, `<<` content arrived
 * from a second attempt, `<!` content was delivered to the caller. `t`: the provider may run tools. `?`: the model may
 * have reasoned without showing it.
 */
type Progress = '-' | '>' | '>t' | '>?' | '>t?' | '<' | '<<' | '<!' | '<!?' | '<t' | '<t?' | '<?'
type Row = readonly [Outcome, Progress, rule: string, withUsage: Charged, withoutUsage: Charged]

const rows: readonly Row[] = [
  ['completed', '>', 'completed_empty', 'reported', 'none'],
  ['completed', '<<', 'completed_fallback', 'reported', 'estimated'],
  ['client_left', '-', 'left_unsent', 'none', 'none'],
  ['client_left', '>', 'left_waiting', 'reported', 'input'],
  ['client_left', '<', 'left_reading', 'reported', 'estimated'],
  ['client_left', '<<', 'left_reading', 'reported', 'estimated'],
  ['client_left', '-', 'left_unsent', 'none', 'none'],
  ['client_left', '>?', 'left_waiting', 'reported + reasoning', 'input + reasoning'],
  ['client_left', '<?', 'left_reading', 'reported + reasoning', 'estimated + reasoning'],
  ['refused', '-', 'refused', 'none', 'none'],
  ['refused', '>', 'refused', 'none', 'none'],
  ['refused', '<', 'refused', 'none', 'none'],
  ['refused', '>?', 'refused', 'none', 'none'],
  ['refused', '>t?', 'refused_tools', 'reported + reasoning', 'input + reasoning'],
  ['refused', '<!', 'refused_answered', 'reported', 'estimated'],
  ['refused', '<!?', 'refused_answered', 'reported + reasoning', 'estimated + reasoning'],
  ['upstream_failed', '-', 'upstream_failed', 'none', 'none'],
  ['upstream_failed', '>', 'upstream_failed', 'none', 'none'],
  ['upstream_failed', '>?', 'upstream_failed', 'none', 'none'],
  ['upstream_failed', '>t?', 'upstream_failed_tools', 'reported + reasoning', 'input + reasoning'],
  ['upstream_failed', '<', 'upstream_broke_off', 'reported', 'none'],
  ['upstream_failed', '<?', 'upstream_broke_off', 'reported', 'none'],
  ['upstream_failed', '<t', 'upstream_broke_off_tools', 'reported', 'estimated'],
  ['upstream_failed', '<t?', 'upstream_broke_off_tools', 'reported + reasoning', 'estimated + reasoning'],
  ['over_bound', '-', 'over_bound', 'none', 'none'],
  ['over_bound', '>?', 'over_bound', 'none', 'none'],
  ['over_bound', '>t', 'over_bound_tools', 'reported', 'input'],
  ['over_bound', '>t?', 'over_bound_tools', 'reported + reasoning', 'input + reasoning'],
  ['over_bound', '<', 'over_bound_answered', 'reported', 'estimated'],
  ['over_bound', '<?', 'over_bound_answered', 'reported + reasoning', 'estimated + reasoning'],
  ['too_long', '-', 'too_long', 'none', 'none'],
  ['too_long', '>', 'too_long', 'none', 'none'],
  ['too_long', '>t', 'too_long_tools', 'reported', 'input'],
  ['too_long', '<', 'too_long_answered', 'reported', 'estimated'],
  ['too_long', '<?', 'too_long_answered', 'reported + reasoning', 'estimated + reasoning'],
  ['drained', '-', 'drained', 'none', 'none'],
  ['drained', '>', 'drained', 'none', 'none'],
  ['drained', '<', 'drained_delivered', 'reported', 'estimated'],
  ['drained', '<?', 'drained_delivered', 'reported + reasoning', 'estimated + reasoning'],
  ['revoked', '-', 'revoked', 'none', 'none'],
  ['revoked', '>', 'revoked_waiting', 'reported', 'input'],
  ['revoked', '>?', 'revoked_waiting', 'reported + reasoning', 'input + reasoning'],
  ['revoked', '<', 'revoked_answered', 'reported', 'estimated'],
  ['revoked', '<?', 'revoked_answered', 'reported + reasoning', 'estimated + reasoning'],
  ['gateway_fault', '-', 'gateway_fault', 'none', 'none'],
  ['gateway_fault', '>', 'gateway_fault', 'none', 'none'],
  ['gateway_fault', '<', 'gateway_fault', 'none', 'none'],
  ['gateway_fault', '<!?', 'gateway_fault_delivered', 'reported', 'estimated'],
  ['task_ended', '>', 'task_ended', 'none', 'none'],
  ['task_lost', '>', 'task_lost', 'none', 'none'],
  ['replayed', '-', 'replayed', 'none', 'none'],
  ['replayed', '<', 'replayed', 'none', 'none'],
]

const finishedCall = (outcome: Outcome, progress: Progress, usage: Usage | undefined): FinishedCall => ({
  outcome,
  isForwarded: progress !== '-',
  hasContent: progress.startsWith('<'),
  fellBack: progress === '<<',
  reported: usage,
  isReportOutdated: false,
  isDelivered: progress.includes('!'),
  hasProviderTools: progress.includes('t'),
  estimate: () => estimated,
  estimateHidden: () => (progress.includes('?') ? HIDDEN : 0),
})

const expected = (rule: string, kind: Charged) => ({ rule, usage: charged[kind][0], source: charged[kind][1] })

test.each(rows)('%s at %s: rule %s charges %s with a usage report and %s without one', (...row) => {
  const [outcome, progress, rule, withReport, withoutReport] = row
  expect(decideCharge(finishedCall(outcome, progress, reported))).toEqual(expected(rule, withReport))
  expect(decideCharge(finishedCall(outcome, progress, undefined))).toEqual(expected(rule, withoutReport))
})

test('without a report or a wait, no tool has run before an upstream refused or failed', () => {
  for (const outcome of ['refused', 'upstream_failed'] as const) {
    expect(decideCharge(finishedCall(outcome, '>t', undefined))).toEqual(expected(outcome, 'none'))
    expect(decideCharge(finishedCall(outcome, '>t', reported))).toEqual(expected(`${outcome}_tools`, 'reported'))
  }
})

test('a completed answer is charged as reported, or estimated under a rule of its own', () => {
  expect(decideCharge(finishedCall('completed', '<', reported))).toEqual(expected('completed', 'reported'))
  expect(decideCharge(finishedCall('completed', '<', undefined))).toEqual(expected('completed_unreported', 'estimated'))
})

test('the result of a task is charged as reported, or by its size under a rule of its own', () => {
  expect(decideCharge(finishedCall('task_succeeded', '<', reported))).toEqual(expected('task_reported', 'reported'))
  expect(decideCharge(finishedCall('task_succeeded', '<', undefined))).toEqual(expected('task_unreported', 'estimated'))
})

test('a report that came before the first content, or has no output, does not make the content free', () => {
  expect(decideCharge(finishedCall('completed', '<', early))).toEqual(expected('completed', 'mixed'))
  expect(decideCharge(finishedCall('completed', '<<', early))).toEqual(expected('completed_fallback', 'mixed'))
  expect(decideCharge(finishedCall('client_left', '<', early))).toEqual(expected('left_reading', 'mixed'))
  expect(decideCharge(finishedCall('too_long', '<', early))).toEqual(expected('too_long_answered', 'mixed'))
  expect(decideCharge(finishedCall('client_left', '>', early)).usage).toEqual(early)
})

test('content after the last report is estimated', () => {
  const stale = (usage: Usage): FinishedCall => ({ ...finishedCall('completed', '<', usage), isReportOutdated: true })
  expect(decideCharge(stale(reported))).toMatchObject({ usage: { ...reported, output: 50 }, source: 'estimated' })
  const withReasoning = { input: 7, output: 5, reasoning: 20 }
  expect(decideCharge(stale(withReasoning)).usage).toEqual({ ...withReasoning, output: 30 })
  expect(decideCharge(stale({ input: 7, output: 500 }))).toMatchObject({ usage: { output: 500 }, source: 'reported' })
})

describe('for any call,', () => {
  const failures = ['refused', 'upstream_failed', 'over_bound', 'too_long', 'drained', 'gateway_fault'] as const
  const failedCall = fc.record({
    outcome: fc.constantFrom(...failures),
    isForwarded: fc.boolean(),
    hasContent: fc.boolean(),
    fellBack: fc.boolean(),
    reported: fc.option(fc.record({ input: fc.nat(), output: fc.nat(3) }), { nil: undefined }),
    isReportOutdated: fc.boolean(),
    wasWritten: fc.boolean(),
    hasProviderTools: fc.boolean(),
  })

  test('an error without output is free, and the usage of a failed upstream is never estimated, except for calls with tools', () => {
    fc.assert(
      fc.property(failedCall, ({ wasWritten, ...rest }) => {
        const call = {
          ...rest,
          isDelivered: rest.hasContent && wasWritten,
          estimate: () => estimated,
          estimateHidden: () => HIDDEN,
        }
        const { usage, source } = decideCharge(call)
        if (!call.hasContent && !call.hasProviderTools) expect([usage, source]).toEqual([noUsage, 'none'])
        if (call.outcome === 'upstream_failed' && !call.hasProviderTools) expect(source).not.toBe('estimated')
      }),
    )
  })

  test('content that was sent to a caller is never free, unless the upstream failed and reported nothing', () => {
    fc.assert(
      fc.property(failedCall, fc.constantFrom('client_left', 'revoked', ...failures), (call, outcome) => {
        const delivered = { ...call, outcome, isForwarded: true, hasContent: true, isDelivered: true }
        const { usage } = decideCharge({ ...delivered, estimate: () => estimated, estimateHidden: () => 0 })
        if (outcome !== 'upstream_failed' || call.hasProviderTools) expect(outputTokens(usage)).toBeGreaterThan(0)
      }),
    )
  })

  test('every rule says whether a caller can cause it on purpose', () => {
    for (const { onPurpose } of chargeRules) expect(onPurpose).toMatch(/\w.*\.$/s)
  })

  test('estimates are made only when they are needed', () => {
    const estimate = (): never => {
      throw new Error('estimated')
    }
    for (const progress of ['>', '<', '<<'] as const) {
      expect(decideCharge({ ...finishedCall('completed', progress, reported), estimate }).usage).toEqual(reported)
    }
  })

  test('a crash is charged by the recovery and nowhere else', () => {
    expect(() => decideCharge(finishedCall('gateway_crash', '<', reported))).toThrow('recovery')
  })

  test('the rules of each outcome cover every call, and every rule has its own id', () => {
    // A pair of complementary conditions covers every call as well.
    const complete = [
      ['always'],
      ['unanswered', 'answered'],
      ['reported', 'unreported', 'empty'],
      ['reported', 'unreported'],
    ]
    for (const outcome of Object.keys(outcomes)) {
      const conditions = chargeRules.filter(rule => rule.outcome === outcome).map(({ when }) => when)
      const isComplete = complete.some(needed => needed.every(when => conditions.some(one => one === when)))
      expect([outcome, isComplete]).toEqual([outcome, true])
    }
    expect(new Set(chargeRules.map(({ id }) => id)).size).toBe(chargeRules.length)
  })
})
