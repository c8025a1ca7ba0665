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

type Charged = 'none' | 'reported' | 'estimated' | 'input' | 'mixed' | 'thought' | 'counted thought' | 'input thought'

/** The unseen reasoning tokens in cases that may have some. */
const HIDDEN = 20

const charged: Readonly<Record<Charged, readonly [Usage, UsageSource]>> = {
  none: [noUsage, 'none'],
  reported: [reported, 'reported'],
  estimated: [estimated, 'estimated'],
  input: [{ input: 70, output: 0 }, 'estimated'],
  mixed: [{ ...early, output: 50 }, 'estimated'],
  'thought': [{ ...reported, reasoning: HIDDEN }, 'estimated'],
  'counted thought': [{ ...estimated, reasoning: HIDDEN }, 'estimated'],
  'input thought': [{ input: 70, output: 0, reasoning: HIDDEN }, 'estimated'],
}

/**
 * What was seen: `-` nothing went upstream, `>` the request did, `<` content came, `<<` from a second attempt, `<!` it
 * was written to the caller. With `t` the provider may run tools, with `?` the model may have thought unseen.
 */
type Seen = '-' | '>' | '>t' | '>?' | '>t?' | '<' | '<<' | '<!' | '<!?' | '<t' | '<t?' | '<?'
type Row = readonly [Outcome, Seen, rule: string, withUsage: Charged, withoutUsage: Charged]

const rows: readonly Row[] = [
  ['completed', '>', 'completed_empty', 'reported', 'none'],
  ['completed', '<<', 'completed_fallback', 'reported', 'estimated'],
  ['client_left', '-', 'left_unsent', 'none', 'none'],
  ['client_left', '>', 'left_waiting', 'reported', 'input'],
  ['client_left', '<', 'left_reading', 'reported', 'estimated'],
  ['client_left', '<<', 'left_reading', 'reported', 'estimated'],
  ['client_left', '-', 'left_unsent', 'none', 'none'],
  ['client_left', '>?', 'left_waiting', 'thought', 'input thought'],
  ['client_left', '<?', 'left_reading', 'thought', 'counted thought'],
  ['refused', '-', 'refused', 'none', 'none'],
  ['refused', '>', 'refused', 'none', 'none'],
  ['refused', '<', 'refused', 'none', 'none'],
  ['refused', '<!', 'refused_answered', 'reported', 'estimated'],
  ['refused', '<!?', 'refused_answered', 'thought', 'counted thought'],
  ['upstream_failed', '-', 'upstream_failed', 'none', 'none'],
  ['upstream_failed', '>', 'upstream_failed', 'none', 'none'],
  ['upstream_failed', '>t?', 'upstream_failed', 'none', 'none'],
  ['upstream_failed', '<', 'upstream_broke_off', 'reported', 'none'],
  ['upstream_failed', '<?', 'upstream_broke_off', 'reported', 'none'],
  ['upstream_failed', '<t', 'upstream_broke_off_tools', 'reported', 'estimated'],
  ['upstream_failed', '<t?', 'upstream_broke_off_tools', 'thought', 'counted thought'],
  ['over_bound', '-', 'over_bound', 'none', 'none'],
  ['over_bound', '>?', 'over_bound', 'none', 'none'],
  ['over_bound', '>t', 'over_bound_tools', 'reported', 'input'],
  ['over_bound', '>t?', 'over_bound_tools', 'thought', 'input thought'],
  ['over_bound', '<', 'over_bound_answered', 'reported', 'estimated'],
  ['over_bound', '<?', 'over_bound_answered', 'thought', 'counted thought'],
  ['too_long', '-', 'too_long', 'none', 'none'],
  ['too_long', '>', 'too_long', 'none', 'none'],
  ['too_long', '>t', 'too_long_tools', 'reported', 'input'],
  ['too_long', '<', 'too_long_answered', 'reported', 'estimated'],
  ['too_long', '<?', 'too_long_answered', 'thought', 'counted thought'],
  ['drained', '-', 'drained', 'none', 'none'],
  ['drained', '>', 'drained', 'none', 'none'],
  ['drained', '<', 'drained_delivered', 'reported', 'estimated'],
  ['drained', '<?', 'drained_delivered', 'thought', 'counted thought'],
  ['revoked', '-', 'revoked', 'none', 'none'],
  ['revoked', '>', 'revoked_waiting', 'reported', 'input'],
  ['revoked', '>?', 'revoked_waiting', 'thought', 'input thought'],
  ['revoked', '<', 'revoked_answered', 'reported', 'estimated'],
  ['revoked', '<?', 'revoked_answered', 'thought', 'counted thought'],
  ['gateway_fault', '-', 'gateway_fault', 'none', 'none'],
  ['gateway_fault', '>', 'gateway_fault', 'none', 'none'],
  ['gateway_fault', '<', 'gateway_fault', 'none', 'none'],
  ['gateway_fault', '<!?', 'gateway_fault_delivered', 'reported', 'estimated'],
  ['task_ended', '>', 'task_ended', 'none', 'none'],
  ['task_lost', '>', 'task_lost', 'none', 'none'],
  ['replayed', '-', 'replayed', 'none', 'none'],
  ['replayed', '<', 'replayed', 'none', 'none'],
]

const seenAs = (outcome: Outcome, seen: Seen, usage: Usage | undefined): FinishedCall => ({
  outcome,
  isForwarded: seen !== '-',
  hasContent: seen.startsWith('<'),
  fellBack: seen === '<<',
  reported: usage,
  isReportOutdated: false,
  isDelivered: seen.includes('!'),
  hasProviderTools: seen.includes('t'),
  estimate: () => estimated,
  estimateHidden: () => (seen.includes('?') ? HIDDEN : 0),
})

const expected = (rule: string, kind: Charged) => ({ rule, usage: charged[kind][0], source: charged[kind][1] })

test.each(rows)('%s, seen %s: %s charges %s with usage and %s without', (...row) => {
  const [outcome, seen, rule, known, unknown] = row
  expect(decideCharge(seenAs(outcome, seen, reported))).toEqual(expected(rule, known))
  expect(decideCharge(seenAs(outcome, seen, undefined))).toEqual(expected(rule, unknown))
})

test('a completed answer is charged as reported, or estimated under a rule of its own', () => {
  expect(decideCharge(seenAs('completed', '<', reported))).toEqual(expected('completed', 'reported'))
  expect(decideCharge(seenAs('completed', '<', undefined))).toEqual(expected('completed_unreported', 'estimated'))
})

test('the result of a task is charged as reported, or by its size under a rule of its own', () => {
  expect(decideCharge(seenAs('task_succeeded', '<', reported))).toEqual(expected('task_reported', 'reported'))
  expect(decideCharge(seenAs('task_succeeded', '<', undefined))).toEqual(expected('task_unreported', 'estimated'))
})

test('a report that came before the first content, or has no output, does not make the content free', () => {
  expect(decideCharge(seenAs('completed', '<', early))).toEqual(expected('completed', 'mixed'))
  expect(decideCharge(seenAs('completed', '<<', early))).toEqual(expected('completed_fallback', 'mixed'))
  expect(decideCharge(seenAs('client_left', '<', early))).toEqual(expected('left_reading', 'mixed'))
  expect(decideCharge(seenAs('too_long', '<', early))).toEqual(expected('too_long_answered', 'mixed'))
  expect(decideCharge(seenAs('client_left', '>', early)).usage).toEqual(early)
})

test('content after the last report is estimated', () => {
  const stale = (usage: Usage): FinishedCall => ({ ...seenAs('completed', '<', usage), isReportOutdated: true })
  expect(decideCharge(stale(reported))).toMatchObject({ usage: { ...reported, output: 50 }, source: 'estimated' })
  const thought = { input: 7, output: 5, reasoning: 20 }
  expect(decideCharge(stale(thought)).usage).toEqual({ ...thought, output: 30 })
  expect(decideCharge(stale({ input: 7, output: 500 }))).toMatchObject({ usage: { output: 500 }, source: 'reported' })
})

describe('always', () => {
  const failures = ['refused', 'upstream_failed', 'over_bound', 'too_long', 'drained', 'gateway_fault'] as const
  const ended = fc.record({
    outcome: fc.constantFrom(...failures),
    isForwarded: fc.boolean(),
    hasContent: fc.boolean(),
    fellBack: fc.boolean(),
    reported: fc.option(fc.record({ input: fc.nat(), output: fc.nat(3) }), { nil: undefined }),
    isReportOutdated: fc.boolean(),
    wasWritten: fc.boolean(),
    hasProviderTools: fc.boolean(),
  })

  test('an error without output is free, and a failed upstream is never estimated, except for calls with tools', () => {
    fc.assert(
      fc.property(ended, ({ wasWritten, ...rest }) => {
        const seen = {
          ...rest,
          isDelivered: rest.hasContent && wasWritten,
          estimate: () => estimated,
          estimateHidden: () => HIDDEN,
        }
        const { usage, source } = decideCharge(seen)
        if (!seen.hasContent && !seen.hasProviderTools) expect([usage, source]).toEqual([noUsage, 'none'])
        if (seen.outcome === 'upstream_failed' && !seen.hasProviderTools) expect(source).not.toBe('estimated')
      }),
    )
  })

  test('content that was sent to a caller is never free, unless the upstream failed and reported nothing', () => {
    fc.assert(
      fc.property(ended, fc.constantFrom('client_left', 'revoked', ...failures), (seen, outcome) => {
        const written = { ...seen, outcome, isForwarded: true, hasContent: true, isDelivered: true }
        const { usage } = decideCharge({ ...written, estimate: () => estimated, estimateHidden: () => 0 })
        if (outcome !== 'upstream_failed' || seen.hasProviderTools) expect(outputTokens(usage)).toBeGreaterThan(0)
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
    for (const seen of ['>', '<', '<<'] as const) {
      expect(decideCharge({ ...seenAs('completed', seen, reported), estimate }).usage).toEqual(reported)
    }
  })

  test('a crash is charged by the recovery and nowhere else', () => {
    expect(() => decideCharge(seenAs('gateway_crash', '<', reported))).toThrow('recovery')
  })

  test('every outcome has a last rule without a condition, and every rule has its own id', () => {
    for (const outcome of Object.keys(outcomes)) expect(chargeRules.some(rule => rule.outcome === outcome)).toBe(true)
    expect(new Set(chargeRules.map(({ id }) => id)).size).toBe(chargeRules.length)
  })
})
