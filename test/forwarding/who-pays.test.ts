// Every rule of the table of who pays, made to happen on real sockets, and what it charged.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { systemClock } from '../../src/base/clock.ts'
import { chargeRules } from '../../src/billing/who-pays.ts'
import { crashRules } from '../../src/store/ledger/recovery.ts'
import { fail, jsonAnswer, silence, streamHead } from '../../tools/fake-upstream/answers.ts'
import type { Script, Step } from '../../tools/fake-upstream/script.ts'
import { chunk, close, gate, script, scripted } from '../../tools/fake-upstream/script.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { hello, until } from '../support/gateway.ts'
import type { Caller } from './caller.ts'
import { model, openCall, standstill, startHasty } from './caller.ts'
import { counts, done, errorEvent, finish, piece, role, sends, usageOnly } from './wire.ts'

/** Crashes, replays, a silent ledger and tasks are made to happen in tests of their own. */
const taskRules = ['task_reported', 'task_unreported', 'task_ended', 'task_lost']
const faultRules = ['gateway_fault', 'gateway_fault_delivered']
/** In every dialect, in test/dialects/over-bound.test.ts. */
const toolRules = ['over_bound_tools', 'upstream_broke_off_tools']
const boundRules = ['over_bound', 'over_bound_answered', 'refused_answered', ...toolRules]
const elsewhere = [...boundRules, ...faultRules, 'replayed', ...taskRules, ...Object.values(crashRules)]

const never = new Promise<void>(() => {})
const bodyOf = (stream: boolean): string => JSON.stringify({ model, messages: hello, stream })
const inputOf = (stream: boolean): number => Math.ceil(bodyOf(stream).length / 4)
const money = (input: number, output: number): number => input * 150 + output * 600

/** The provider may search for it. */
const withTools = JSON.stringify({ model: 'openai/gpt-4.1-mini', messages: hello, web_search_options: {} })

/** Eight bytes, which are two tokens. */
const said = role() + piece('four') + piece('more')
const whole = (usage: string): Script => sends(said + finish() + usage + done)
const paused = (text: string): Script => script(streamHead, chunk(text), gate(never))
const plainly = (content: string, usage: object): Script =>
  script(...jsonAnswer(200, JSON.stringify({ choices: [{ index: 0, message: { content } }], ...usage })))

type Leave = (caller: Caller, harness: Harness) => Promise<unknown>

const toTheEnd: Leave = caller => caller.whole()
const afterContent: Leave = async caller => {
  await caller.until(({ text }) => text.includes('more'), 'content is here')
  caller.leave()
}
const afterRequest: Leave = async (caller, harness) => {
  await until(() => harness.upstream.requests.length > 0, 'the request is at the upstream')
  caller.leave()
}

/** Breaks off when the caller has all of it. */
function brokenOff(text: string): Pick<Row, 'plan' | 'stream' | 'leave'> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const leave: Leave = async caller => {
    await caller.until(({ text: read }) => read.includes('more'), 'content is here')
    resolve()
    await caller.whole()
  }
  return { plan: [script(streamHead, chunk(text), gate(promise), close)], stream: true, leave }
}

interface Row {
  readonly rule: string
  readonly what: string
  readonly plan: readonly Script[]
  readonly stream: boolean
  readonly leave: Leave
  readonly charged: readonly [source: string, cost: number]
}

const row = (rule: string, what: string, rest: Omit<Row, 'rule' | 'what'>): Row => ({ rule, what, ...rest })
const estimate = money(inputOf(true), 2)

const rows: readonly Row[] = [
  row('completed', 'a stream that reports', {
    plan: [whole(usageOnly(7, 5))],
    stream: true,
    leave: toTheEnd,
    charged: ['reported', money(7, 5)],
  }),
  row('completed', 'a plain answer that reports', {
    plan: [plainly('hi', counts(7, 5))],
    stream: false,
    leave: toTheEnd,
    charged: ['reported', money(7, 5)],
  }),
  row('completed', 'a stream that reports only before it speaks', {
    plan: [sends(role(counts(7, 1)) + said + finish() + done)],
    stream: true,
    leave: toTheEnd,
    charged: ['estimated', money(7, 2)],
  }),
  row('completed', 'a stream that reports with each word', {
    plan: [sends(role(counts(7, 0)) + piece('four', counts(7, 3)) + piece('more', counts(7, 9)) + finish() + done)],
    stream: true,
    leave: toTheEnd,
    charged: ['reported', money(7, 9)],
  }),
  row('completed', 'a plain answer whose report knows of no output', {
    plan: [plainly('eight by', counts(7, 0))],
    stream: false,
    leave: toTheEnd,
    charged: ['estimated', money(7, 2)],
  }),
  row('completed_unreported', 'a stream that reports nothing', {
    plan: [whole('')],
    stream: true,
    leave: toTheEnd,
    charged: ['estimated', estimate],
  }),
  row('completed_unreported', 'a stream that takes its report back', {
    plan: [whole(usageOnly(7, 5) + usageOnly(1, 1))],
    stream: true,
    leave: toTheEnd,
    charged: ['estimated', estimate],
  }),
  row('completed_fallback', 'an answer of the second channel', {
    plan: [fail(500), whole(usageOnly(7, 5))],
    stream: true,
    leave: toTheEnd,
    charged: ['reported', money(7, 5)],
  }),
  row('completed_fallback', 'an answer of the second channel, after a report of the first', {
    plan: [sends(usageOnly(700, 500) + errorEvent()), whole('')],
    stream: true,
    leave: toTheEnd,
    charged: ['estimated', estimate],
  }),
  row('completed_empty', 'an answer of nothing that reports', {
    plan: [plainly('', counts(7, 0))],
    stream: false,
    leave: toTheEnd,
    charged: ['reported', money(7, 0)],
  }),
  row('completed_empty', 'an answer of nothing that reports nothing', {
    plan: [plainly('', {})],
    stream: false,
    leave: toTheEnd,
    charged: ['none', 0],
  }),
  row('completed_empty', 'a stream of nothing that reports nothing', {
    plan: [sends(role() + finish() + done)],
    stream: true,
    leave: toTheEnd,
    charged: ['none', 0],
  }),
  row('left_waiting', 'a caller that leaves a silent upstream', {
    plan: [silence()],
    stream: true,
    leave: afterRequest,
    charged: ['estimated', money(inputOf(true), 0)],
  }),
  row('left_waiting', 'a caller that leaves a plain call', {
    plan: [silence()],
    stream: false,
    leave: afterRequest,
    charged: ['estimated', money(inputOf(false), 0)],
  }),
  row('left_reading', 'a caller that leaves in the middle', {
    plan: [paused(said)],
    stream: true,
    leave: afterContent,
    charged: ['estimated', estimate],
  }),
  row('left_reading', 'a caller that leaves after a report', {
    plan: [paused(said + usageOnly(7, 5))],
    stream: true,
    leave: afterContent,
    charged: ['reported', money(7, 5)],
  }),
  row('left_reading', 'a caller that leaves, of whose output no report knows', {
    plan: [paused(usageOnly(7, 0) + said)],
    stream: true,
    leave: afterContent,
    charged: ['estimated', money(7, 2)],
  }),
  row('refused', 'a request that the upstream calls bad', {
    plan: [fail(400)],
    stream: true,
    leave: toTheEnd,
    charged: ['none', 0],
  }),
  row('upstream_failed', 'no channel that answers', {
    plan: [fail(500), fail(500)],
    stream: true,
    leave: toTheEnd,
    charged: ['none', 0],
  }),
  row('upstream_failed', 'streams that break off after a report and before content', {
    plan: [script(streamHead, chunk(usageOnly(7, 5)), close), fail(500)],
    stream: true,
    leave: toTheEnd,
    charged: ['none', 0],
  }),
  row('upstream_broke_off', 'half an answer without a report', {
    ...brokenOff(said),
    charged: ['none', 0],
  }),
  row('upstream_broke_off', 'half an answer with a report', {
    ...brokenOff(said + usageOnly(7, 5)),
    charged: ['reported', money(7, 5)],
  }),
  row('upstream_broke_off', 'half an answer with a report of no output', {
    ...brokenOff(usageOnly(7, 0) + said),
    charged: ['none', 0],
  }),
]

/** Of the one call that the harness had; its balance tells the same as its record. */
async function expectCharged(harness: Harness, key: string, expected: object): Promise<void> {
  await until(() => harness.records().length === 1, 'the call is recorded')
  const [record] = harness.records()
  expect(record).toMatchObject(expected)
  expect(harness.openHolds()).toBe(0)
  const balance = Number(BigInt(Math.round(Number((await harness.balance(key)).balance) * 1e9)))
  expect(1e9 - balance).toBe(record!.cost as number)
}

/** A gateway of its own for one call, so that its record is the only one. */
async function withHarness(options: Parameters<typeof startHasty>[0], run: (harness: Harness) => Promise<void>) {
  const harness = await startHasty({ upstreamKeys: 'first-key, second-key', ...options })
  try {
    await run(harness)
  } finally {
    await harness.stop()
  }
}

test.each(rows)('$rule: $what', async ({ rule, plan, stream, leave, charged: [source, cost] }) => {
  await withHarness({}, async harness => {
    const key = await harness.key({ credit: '1' })
    harness.upstream.plan(...plan)
    await leave(openCall(harness, key, bodyOf(stream)), harness)
    await expectCharged(harness, key, { rule, usage_source: source, cost })
  })
})

/** Asks something else a few times: when that is answered, the gateway has seen what came before it. */
async function takenIn(harness: Harness): Promise<void> {
  for (let round = 0; round < 5; round++) await fetch(`${harness.url}/api/public/settings`)
}

test('left_unsent: a caller that leaves while its hold is being written', async () => {
  await withHarness({}, async harness => {
    const key = await harness.key({ credit: '1' })
    const db = openDatabase(join(harness.folder, 'weir.db'))
    db.run('BEGIN IMMEDIATE')
    const caller = openCall(harness, key, bodyOf(true))
    await until(() => harness.gateway.activeCalls === 1, 'the call is under way')
    await takenIn(harness)
    caller.leave()
    await caller.closed
    await takenIn(harness)
    db.close()
    await expectCharged(harness, key, { rule: 'left_unsent', usage_source: 'none', cost: 0 })
    expect(harness.upstream.requests).toHaveLength(0)
  })
})

const unsent = ['left_unsent', 'revoked'] as const

test.each(unsent)('%s: while the connection is still being made', async rule => {
  let shakes = 0
  const deaf = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => void shakes++ } })
  await withHarness({ env: { OPENAI_BASE_URL: `https://127.0.0.1:${deaf.port}/v1` } }, async harness => {
    const key = await harness.key({ credit: '1' })
    const caller = openCall(harness, key, bodyOf(true))
    await until(() => shakes > 0, 'the upstream is asked to shake hands, and does not')
    if (rule === 'revoked') await harness.weir('keys revoke', { key })
    else caller.leave()
    await expectCharged(harness, key, { rule, usage_source: 'none', cost: 0 })
  })
  deaf.stop(true)
})

describe('too_long', () => {
  let skewMs = 0
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + skewMs }
  const attemptTimes = { firstContentMs: 1e9, betweenChunksMs: 1e9 }
  const late = [
    ['too_long', silence(), ['none', 0]],
    ['too_long_tools', silence(), ['estimated', 0]],
    ['too_long_answered', paused(said), ['estimated', estimate]],
    ['too_long_answered', paused(said + usageOnly(7, 5)), ['reported', money(7, 5)]],
  ] as const

  test.each(late)('%s', async (rule, plan, [source, cost]) => {
    await withHarness({ world: { clock, attemptTimes } }, async harness => {
      const isTools = rule === 'too_long_tools'
      const key = await harness.key({ credit: '1' })
      harness.upstream.plan(plan)
      const caller = openCall(harness, key, isTools ? withTools : bodyOf(true))
      if (rule !== 'too_long_answered') await until(() => harness.upstream.requests.length > 0, 'it is at the upstream')
      else await caller.until(({ text }) => text.includes('more'), 'content is here')
      skewMs += bounds.callMsMax
      await caller.whole()
      const charged = isTools ? {} : { cost } // by its time, up to all that was held for
      await expectCharged(harness, key, { rule, outcome: 'too_long', usage_source: source, ...charged })
      expect(Number(harness.records()[0]!.cost) > 0).toBe(rule !== 'too_long')
    })
  })
})

describe('a caller that stops reading until its upstream gives up', () => {
  // Time stands still but for what is said here: a slow machine is no slow caller.
  let nowMs = 1_000_000
  const clock = { ...systemClock, nowMs: () => nowMs }
  const bulk = 'x'.repeat(64 * 1024)

  /** Writes until its kernel takes no more, and breaks off when it is let. */
  function* tooMuch(stuck: () => boolean, gaveUp: Promise<void>): Iterable<Step> {
    yield streamHead
    yield chunk(said)
    while (!stuck()) yield chunk(piece(bulk))
    yield gate(gaveUp)
    yield close
  }

  const spans = [
    ['upstream_broke_off_slow', 1_001],
    ['upstream_broke_off', 1_000],
  ] as const

  test.each(spans)('%s: after %p ms without reading', async (rule, ms) => {
    await withHarness({ world: { clock } }, async harness => {
      const key = await harness.key({ credit: '1' })
      const gaveUp = Promise.withResolvers<void>()
      let isStuck = false
      harness.upstream.plan(scripted(() => tooMuch(() => isStuck, gaveUp.promise)))
      const received = harness.upstream.nextRequest()
      const caller = openCall(harness, key, bodyOf(true))
      await caller.until(({ text }) => text.includes('more'), 'content is here')
      caller.stopReading()
      await standstill(await received)
      isStuck = true
      nowMs += ms
      gaveUp.resolve()
      caller.readOn()
      await caller.whole()
      expect(caller.text).toContain('upstream_failed')
      // Far more was delivered than the model can say, which is as much as was held for.
      const charged = rule === 'upstream_broke_off' ? ['none', 0] : ['estimated', money(inputOf(true), 16_384)]
      await expectCharged(harness, key, { rule, usage_source: charged[0], cost: charged[1] })
    })
  })
})

describe('revoked', () => {
  const cut = [
    ['revoked_waiting', silence(), ['estimated', money(inputOf(true), 0)]],
    ['revoked_answered', paused(said), ['estimated', estimate]],
    ['revoked_answered', paused(said + usageOnly(7, 5)), ['reported', money(7, 5)]],
  ] as const

  test.each(cut)('%s', async (rule, plan, [source, cost]) => {
    await withHarness({}, async harness => {
      const key = await harness.key({ credit: '1' })
      harness.upstream.plan(plan)
      const caller = openCall(harness, key, bodyOf(true))
      if (rule === 'revoked_waiting') await until(() => harness.upstream.requests.length > 0, 'it is at the upstream')
      else await caller.until(({ text }) => text.includes('more'), 'content is here')
      await harness.weir('keys revoke', { key })
      await caller.whole()
      await expectCharged(harness, key, { rule, outcome: 'revoked', usage_source: source, cost })
    })
  })
})

describe('drained', () => {
  const cut = [
    ['drained', silence(), ['none', 0]],
    ['drained_delivered', paused(said), ['estimated', estimate]],
    ['drained_delivered', paused(said + usageOnly(7, 5)), ['reported', money(7, 5)]],
  ] as const
  let harness: Harness
  beforeAll(async () => {
    harness = await startHasty()
  })
  afterAll(() => harness.stop())

  test('calls are charged for what was delivered', async () => {
    const key = await harness.key({ credit: '1' })
    const calls: Caller[] = []
    for (const [rule, plan] of cut) {
      harness.upstream.plan(plan)
      const caller = openCall(harness, key, bodyOf(true))
      calls.push(caller)
      if (rule === 'drained') await until(() => harness.upstream.requests.length > 0, 'it is at the upstream')
      else await caller.until(({ text }) => text.includes('more'), 'content is here')
    }
    const drained = harness.gateway.drain()
    await Promise.all(calls.map(caller => caller.whole()))
    await drained
    expect(harness.records().map(({ rule, usage_source, cost }) => [rule, usage_source, cost])).toEqual(
      cut.map(([rule, , [source, cost]]) => [rule, source, cost]),
    )
  })
})

test('every rule is made to happen', () => {
  const here = [...rows.map(({ rule }) => rule), 'left_unsent', 'too_long', 'too_long_tools', 'too_long_answered']
  const revoked = ['revoked', 'revoked_waiting', 'revoked_answered']
  const all = [...here, 'upstream_broke_off_slow', 'drained', 'drained_delivered', ...revoked, ...elsewhere]
  expect([...new Set(all)].sort()).toEqual(chargeRules.map(({ id }) => id).sort())
})
