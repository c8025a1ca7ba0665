import { describe, expect, test } from 'bun:test'
import { countDropped, funnelOf, readRouting } from './funnel.ts'

describe('the funnel of a choice', () => {
  test('has the steps that dropped something, in the order of the gateway', () => {
    const rows = funnelOf(7, { busy: 1, tags_missing: 2, broken: 1, quota_spent: 1 })
    expect(rows.map(({ step, left }) => [step, left])).toEqual([
      ['name', 7],
      ['rights', 5],
      ['health', 3],
      ['room', 2],
    ])
    expect(rows[2]!.dropped).toEqual([
      ['broken', 1],
      ['quota_spent', 1],
    ])
  })

  test('a reason that is not known belongs to the model', () => {
    expect(funnelOf(2, { price_unknown: 1 }).at(-1)).toEqual({ step: 'fit', left: 1, dropped: [['price_unknown', 1]] })
  })

  test('never has less than nothing left', () => {
    expect(funnelOf(1, { broken: 3 }).at(-1)!.left).toBe(0)
  })

  test('counts candidates by reason', () => {
    const candidates = ['broken', null, 'broken', 'busy'].map(dropped => ({ model: 'a/b', channel: 'a#1', dropped }))
    expect(countDropped(candidates)).toEqual({ broken: 2, busy: 1 })
  })
})

describe('routing of a record', () => {
  test('limits are read in both forms', () => {
    const limit = { resource: 'requests', span: 'minute', remaining: 58, limit: 60 }
    expect(readRouting({ candidates: 5, limits: [['requests', 'minute', 58, 60]] })?.limits).toEqual([limit])
    expect(readRouting({ candidates: 5, limits: [limit] })?.limits).toEqual([limit])
    expect(readRouting({ limits: [['concurrency', '', 4, 8]] })?.limits[0]?.span).toBe(null)
  })

  test('is undefined where the record says nothing', () => {
    expect(readRouting(null)).toBe(undefined)
    expect(readRouting('text')).toBe(undefined)
    expect(readRouting({ candidates: 1 })).toMatchObject({ candidates: 1, policy: null, dropped: {}, overrides: [] })
  })
})
