// The table of who pays, cell by cell.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Usage, UsageSource } from '../base/usage.ts'
import { noUsage, outputTokens } from '../base/usage.ts'
import type { Delivered, Outcome } from './who-pays.ts'
import { chargedUsage, outcomes, rules } from './who-pays.ts'

const reported: Usage = { input: 7, cacheRead: 2, output: 5 }
const early: Usage = { input: 7, cacheRead: 2, output: 0 }
const estimated: Usage = { input: 70, output: 50 }

type Charged = 'none' | 'reported' | 'estimated' | 'input' | 'mixed'

const charged: Readonly<Record<Charged, readonly [Usage, UsageSource]>> = {
  none: [noUsage, 'none'],
  reported: [reported, 'reported'],
  estimated: [estimated, 'estimated'],
  input: [{ input: 70, output: 0 }, 'estimated'],
  mixed: [{ ...early, output: 50 }, 'estimated'],
}

/** What was seen: `-` nothing went upstream, `>` the request did, `<` content came, `<<` from a second attempt. */
type Seen = '-' | '>' | '<' | '<<'
type Row = readonly [Outcome, Seen, rule: string, withUsage: Charged, withoutUsage: Charged]

const rows: readonly Row[] = [
  ['completed', '>', 'completed_empty', 'reported', 'none'],
  ['completed', '<<', 'completed_fallback', 'reported', 'estimated'],
  ['client_left', '-', 'left_unsent', 'none', 'none'],
  ['client_left', '>', 'left_waiting', 'reported', 'input'],
  ['client_left', '<', 'left_reading', 'reported', 'estimated'],
  ['client_left', '<<', 'left_reading', 'reported', 'estimated'],
  ['refused', '-', 'refused', 'none', 'none'],
  ['refused', '>', 'refused', 'none', 'none'],
  ['refused', '<', 'refused', 'none', 'none'],
  ['upstream_failed', '-', 'upstream_failed', 'none', 'none'],
  ['upstream_failed', '>', 'upstream_failed', 'none', 'none'],
  ['upstream_failed', '<', 'upstream_broke_off', 'reported', 'none'],
  ['too_long', '-', 'too_long', 'none', 'none'],
  ['too_long', '>', 'too_long', 'none', 'none'],
  ['too_long', '<', 'too_long_answered', 'reported', 'estimated'],
  ['drained', '-', 'drained', 'none', 'none'],
  ['drained', '>', 'drained', 'none', 'none'],
  ['drained', '<', 'drained_answered', 'reported', 'none'],
  ['revoked', '-', 'revoked', 'none', 'none'],
  ['revoked', '>', 'revoked', 'none', 'none'],
  ['revoked', '<', 'revoked_answered', 'reported', 'estimated'],
  ['gateway_fault', '-', 'gateway_fault', 'none', 'none'],
  ['gateway_fault', '>', 'gateway_fault', 'none', 'none'],
  ['gateway_fault', '<', 'gateway_fault', 'none', 'none'],
  ['task_ended', '>', 'task_ended', 'none', 'none'],
  ['task_lost', '>', 'task_lost', 'none', 'none'],
  ['replayed', '-', 'replayed', 'none', 'none'],
  ['replayed', '<', 'replayed', 'none', 'none'],
]

const seenAs = (outcome: Outcome, seen: Seen, usage: Usage | undefined): Delivered => ({
  outcome,
  forwarded: seen !== '-',
  content: seen.startsWith('<'),
  fellBack: seen === '<<',
  reported: usage,
  stale: false,
  estimate: () => estimated,
})

const expected = (rule: string, kind: Charged) => ({ rule, usage: charged[kind][0], source: charged[kind][1] })

test.each(rows)('%s, seen %s: %s charges %s with usage and %s without', (...row) => {
  const [outcome, seen, rule, known, unknown] = row
  expect(chargedUsage(seenAs(outcome, seen, reported))).toEqual(expected(rule, known))
  expect(chargedUsage(seenAs(outcome, seen, undefined))).toEqual(expected(rule, unknown))
})

test('a completed answer is charged as reported, or estimated under a rule of its own', () => {
  expect(chargedUsage(seenAs('completed', '<', reported))).toEqual(expected('completed', 'reported'))
  expect(chargedUsage(seenAs('completed', '<', undefined))).toEqual(expected('completed_unreported', 'estimated'))
})

test('a result of a task is charged as reported, or by its size under a rule of its own', () => {
  expect(chargedUsage(seenAs('task_succeeded', '<', reported))).toEqual(expected('task_reported', 'reported'))
  expect(chargedUsage(seenAs('task_succeeded', '<', undefined))).toEqual(expected('task_unreported', 'estimated'))
})

test('a report that came before the first word, or knows of none, does not make the words free', () => {
  expect(chargedUsage(seenAs('completed', '<', early))).toEqual(expected('completed', 'mixed'))
  expect(chargedUsage(seenAs('completed', '<<', early))).toEqual(expected('completed_fallback', 'mixed'))
  expect(chargedUsage(seenAs('client_left', '<', early))).toEqual(expected('left_reading', 'mixed'))
  expect(chargedUsage(seenAs('too_long', '<', early))).toEqual(expected('too_long_answered', 'mixed'))
  expect(chargedUsage(seenAs('client_left', '>', early)).usage).toEqual(early)
})

test('of words after the last report, what it does not know is counted', () => {
  const stale = (usage: Usage): Delivered => ({ ...seenAs('completed', '<', usage), stale: true })
  expect(chargedUsage(stale(reported))).toMatchObject({ usage: { ...reported, output: 50 }, source: 'estimated' })
  const thought = { input: 7, output: 5, reasoning: 20 }
  expect(chargedUsage(stale(thought)).usage).toEqual({ ...thought, output: 30 })
  expect(chargedUsage(stale({ input: 7, output: 500 }))).toMatchObject({ usage: { output: 500 }, source: 'reported' })
})

describe('always', () => {
  const failures = ['refused', 'upstream_failed', 'too_long', 'drained', 'gateway_fault'] as const
  const delivered = fc.record({
    outcome: fc.constantFrom(...failures),
    ...{ forwarded: fc.boolean(), content: fc.boolean(), fellBack: fc.boolean() },
    reported: fc.option(fc.record({ input: fc.nat(), output: fc.nat(3) }), { nil: undefined }),
    stale: fc.boolean(),
    estimate: fc.constant(() => estimated),
  })

  test('an error without output is free, and a failure that is not ours to time is never estimated', () => {
    fc.assert(
      fc.property(delivered, seen => {
        const { usage, source } = chargedUsage(seen)
        if (!seen.content || outputTokens(usage) === 0) expect([usage, source]).toEqual([noUsage, 'none'])
        if (seen.outcome !== 'too_long') expect(source).not.toBe('estimated')
      }),
    )
  })

  test('nothing is estimated that is not needed', () => {
    const estimate = (): never => {
      throw new Error('estimated')
    }
    for (const seen of ['>', '<', '<<'] as const) {
      expect(chargedUsage({ ...seenAs('completed', seen, reported), estimate }).usage).toEqual(reported)
    }
  })

  test('a crash is charged by its recovery and nowhere else', () => {
    expect(() => chargedUsage(seenAs('gateway_crash', '<', reported))).toThrow('recovery')
  })

  test('every outcome has a last rule that takes what is left, and every rule a name of its own', () => {
    for (const outcome of Object.keys(outcomes)) expect(rules.some(rule => rule.outcome === outcome)).toBe(true)
    expect(new Set(rules.map(({ id }) => id)).size).toBe(rules.length)
  })
})
