// The record of a call says when each stage and each attempt began and how long it took.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { RecordedAttempt, TimelineSpan } from '../../src/store/records/call-times.ts'
import { channelId } from '../../src/upstreams/channels.ts'
import { answer, fail } from '../../tools/fake-upstream/answers.ts'
import type { Harness } from '../support/gateway.ts'
import { openCall, startHasty } from './caller.ts'

interface ShownRecord {
  readonly durationMs: number
  readonly firstContentMs: number
  readonly timeline: readonly TimelineSpan[]
  readonly attempts: readonly RecordedAttempt[]
}

let harness: Harness
let key: string
beforeAll(async () => {
  harness = await startHasty({ world: { random: () => 0 }, upstreamKeys: 'first-key, second-key' })
  key = await harness.key({ qpm: 1_000 })
})
afterAll(() => harness.stop())

async function recordOfCall(stream: boolean): Promise<ShownRecord> {
  const caller = await openCall(harness, key, { stream }).whole()
  await harness.idle()
  return (await harness.weir('record', { call: caller.header('x-request-id') })) as unknown as ShownRecord
}

const endOf = ({ atMs, ms }: { readonly atMs: number | null; readonly ms: number }): number => atMs! + ms
/** The times are rounded: of stages to tenths, of attempts and of the call to whole milliseconds. */
const ROUNDING_MS = 1.1

test.each([false, true])('stages and attempts follow each other (streamed: %p)', async stream => {
  harness.upstream.plan(fail(503), answer('Hello'))
  const { timeline, attempts, durationMs, firstContentMs } = await recordOfCall(stream)
  const stages = timeline.filter(({ stage }) => stage !== 'wait').map(({ stage }) => stage)
  expect(stages.slice(0, 5)).toEqual(['auth', 'read', 'limit', 'route', 'hold'])
  expect(stages.slice(5, -1).toSorted()).toEqual(['adapt', 'adapt', 'forward'])
  expect(stages.at(-1)).toBe('cost')
  const inOrder = timeline.filter(({ stage }) => stage !== 'forward')
  for (const [at, span] of inOrder.entries()) {
    expect(span.atMs).toBeGreaterThanOrEqual(at === 0 ? 0 : endOf(inOrder[at - 1]!) - ROUNDING_MS)
  }
  expect(endOf(timeline.at(-1)!)).toBeLessThanOrEqual(durationMs + ROUNDING_MS)

  const model = 'openai/gpt-4o-mini'
  expect(attempts).toMatchObject([
    { model, status: 503, verdict: 'broken', firstMs: null },
    { model, status: 200, verdict: 'answered' },
  ])
  const channels = ['first-key', 'second-key'].map(text => channelId('openai', text))
  expect(attempts.map(({ channel }) => channel).toSorted()).toEqual(channels.toSorted())
  const [failed, answered] = attempts as [RecordedAttempt, RecordedAttempt]
  expect(answered.atMs).toBeGreaterThanOrEqual(endOf(failed) - ROUNDING_MS)
  expect(Math.abs(answered.atMs! + answered.firstMs! - firstContentMs)).toBeLessThanOrEqual(ROUNDING_MS)
  expect(answered.ms).toBeGreaterThanOrEqual(answered.firstMs!)
  const forward = timeline.find(({ stage }) => stage === 'forward')!
  expect(Math.abs(forward.atMs! - failed.atMs!)).toBeLessThanOrEqual(ROUNDING_MS)
  expect(Math.abs(endOf(forward) - endOf(answered))).toBeLessThanOrEqual(ROUNDING_MS)
})

test('an attempt that the upstream refuses has its status and no first content', async () => {
  harness.upstream.plan(fail(400))
  const { attempts, timeline } = await recordOfCall(false)
  expect(attempts).toMatchObject([{ status: 400, verdict: 'caller_at_fault', firstMs: null }])
  expect(timeline.map(({ stage }) => stage)).toContain('cost')
})
