// Tests that a range is split into pieces without gaps and overlaps, of spans that are still stored.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { keepMs, msOfSpan, spans } from './plan.ts'
import { splitIntoSpans } from './ranges.ts'

const NOW_MS = Date.UTC(2026, 10, 15, 12, 34, 56)
const DAY_MS = 86_400_000

test('the pieces cover the range, which is at least as wide as the requested one', () => {
  const ages = fc.integer({ min: 1, max: 700 * DAY_MS })
  fc.assert(
    fc.property(ages, ages, fc.constantFrom('all', 'keyModel'), (one, other, cut) => {
      const [fromMs, beforeMs] = [NOW_MS - Math.max(one, other) - 1, NOW_MS - Math.min(one, other)]
      const { pieces, finest, ...range } = splitIntoSpans({ fromMs, beforeMs, nowMs: NOW_MS, keeps: keepMs[cut] })
      expect([range.fromMs <= fromMs, range.beforeMs >= beforeMs]).toEqual([true, true])
      let positionMs = range.fromMs
      for (const { span, from, before } of pieces) {
        expect(msOfSpan(span, from)).toBe(positionMs)
        expect(before).toBeGreaterThan(from)
        positionMs = msOfSpan(span, before)
      }
      expect(positionMs).toBe(range.beforeMs)
      for (const { span } of pieces) expect(spans.indexOf(span)).toBeGreaterThanOrEqual(spans.indexOf(finest))
      expect(keepMs[cut][finest]).toBeGreaterThanOrEqual(NOW_MS - fromMs)
      expect(pieces.reduce((sum, { from, before }) => sum + before - from, 0)).toBeLessThan(250)
    }),
    { numRuns: 500 },
  )
})
