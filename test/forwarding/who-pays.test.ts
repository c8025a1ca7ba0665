// Every rule of who pays, made to happen on real sockets, and what it charged.

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

/** Tests elsewhere make crashes, replays, a silent ledger, tasks and empty accounts happen. */
const taskRules = ['task_reported', 'task_unreported', 'task_ended', 'task_lost']
const faultRules = ['gateway_fault', 'gateway_fault_delivered']
/** Covered in every dialect by over-bound.test.ts and tool-failures.test.ts in test/dialects. */
const toolRules = ['over_bound_tools', 'upstream_broke_off_tools', 'refused_tools', 'upstream_failed_tools']
const boundRules = ['over_bound', 'over_bound_answered', 'refused_answered', ...toolRules]
const fundsRules = ['out_of_funds', 'out_of_funds_waiting', 'out_of_funds_withheld']
const elsewhere = [...boundRules, ...faultRules, ...fundsRules, 'replayed', ...taskRules, ...Object.values(crashRules)]

const never = new Promise<void>(() => {})
const bodyOf = (stream: boolean): string => JSON.stringify({ model, messages: hello, stream })
const inputOf = (stream: boolean): number => Math.ceil(bodyOf(stream).length / 4)
const money = (input: number, output: number): number => input * 150 + output * 600

/** The provider may run a paid search for this call. */
const withTools = JSON.stringify({ model: 'openai/gpt-4.1-mini', messages: hello, web_search_options: {} })

/** Eight bytes, which are two tokens. */
const content = role() + piece('four') + piece('more')
const complete = (usage: string): Script => sends(content + finish() + usage + done)
const paused = (text: string): Script => script(streamHead, chunk(text), gate(never))
const plainly = (content: string, usage: object): Script =>
  script(...jsonAnswer(200, JSON.stringify({ choices: [{ index: 0, message: { content } }], ...usage })))

type Leave = (caller: Caller, harness: Harness) => Promise<unknown>

const readAll: Leave = caller => caller.whole()
const afterContent: Leave = async caller => {
  await caller.until(({ text }) => text.includes('more'), 'content has arrived')
  caller.leave()
}
const afterRequest: Leave = async (caller, harness) => {
  await until(() => harness.upstream.requests.length > 0, 'the request is at the upstream')
  caller.leave()
}

/** Breaks off when the caller has received the whole text. */
function brokenOff(text: string): Pick<Row, 'plan' | 'stream' | 'leave'> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const leave: Leave = async caller => {
    await caller.until(({ text: read }) => read.includes('more'), 'content has arrived')
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
    plan: [complete(usageOnly(7, 5))],
    stream: true,
    leave: readAll,
    charged: ['reported', money(7, 5)],
  }),
  row('completed', 'a plain answer that reports', {
    plan: [plainly('hi', counts(7, 5))],
    stream: false,
    leave: readAll,
    charged: ['reported', money(7, 5)],
  }),
  row('completed', 'a stream that reports only before it speaks', {
    plan: [sends(role(counts(7, 1)) + content + finish() + done)],
    stream: true,
    leave: readAll,
    charged: ['estimated', money(7, 2)],
  }),
  row('completed', 'a stream that reports with each word', {
    plan: [sends(role(counts(7, 0)) + piece('four', counts(7, 3)) + piece('more', counts(7, 9)) + finish() + done)],
    stream: true,
    leave: readAll,
    charged: ['reported', money(7, 9)],
  }),
  row('completed', 'a plain answer whose report knows of no output', {
    plan: [plainly('eight by', counts(7, 0))],
    stream: false,
    leave: readAll,
    charged: ['estimated', money(7, 2)],
  }),
  row('completed_unreported', 'a stream that reports nothing', {
    plan: [complete('')],
    stream: true,
    leave: readAll,
    charged: ['estimated', estimate],
  }),
  row('completed_unreported', 'a stream that takes its report back', {
    plan: [complete(usageOnly(7, 5) + usageOnly(1, 1))],
    stream: true,
    leave: readAll,
    charged: ['estimated', estimate],
  }),
  row('completed_fallback', 'an answer of the second channel', {
    plan: [fail(500), complete(usageOnly(7, 5))],
    stream: true,
    leave: readAll,
    charged: ['reported', money(7, 5)],
  }),
  row('completed_fallback', 'an answer of the second channel, after a report of the first', {
    plan: [sends(usageOnly(700, 500) + errorEvent()), complete('')],
    stream: true,
    leave: readAll,
    charged: ['estimated', estimate],
  }),
  row('completed_empty', 'an answer of nothing that reports', {
    plan: [plainly('', counts(7, 0))],
    stream: false,
    leave: readAll,
    charged: ['reported', money(7, 0)],
  }),
  row('completed_empty', 'an answer of nothing that reports nothing', {
    plan: [plainly('', {})],
    stream: false,
    leave: readAll,
    charged: ['none', 0],
  }),
  row('completed_empty', 'a stream of nothing that reports nothing', {
    plan: [sends(role() + finish() + done)],
    stream: true,
    leave: readAll,
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
    plan: [paused(content)],
    stream: true,
    leave: afterContent,
    charged: ['estimated', estimate],
  }),
  row('left_reading', 'a caller that leaves after a report', {
    plan: [paused(content + usageOnly(7, 5))],
    stream: true,
    leave: afterContent,
    charged: ['reported', money(7, 5)],
  }),
  row('left_reading', 'a caller that leaves, of whose output no report knows', {
    plan: [paused(usageOnly(7, 0) + content)],
    stream: true,
    leave: afterContent,
    charged: ['estimated', money(7, 2)],
  }),
  row('refused', 'a request that the upstream calls bad', {
    plan: [fail(400)],
    stream: true,
    leave: readAll,
    charged: ['none', 0],
  }),
  row('upstream_failed', 'no channel that answers', {
    plan: [fail(500), fail(500)],
    stream: true,
    leave: readAll,
    charged: ['none', 0],
  }),
  row('upstream_failed', 'streams that break off after a report and before content', {
    plan: [script(streamHead, chunk(usageOnly(7, 5)), close), fail(500)],
    stream: true,
    leave: readAll,
    charged: ['none', 0],
  }),
  row('upstream_broke_off', 'half an answer without a report', {
    ...brokenOff(content),
    charged: ['none', 0],
  }),
  row('upstream_broke_off', 'half an answer with a report', {
    ...brokenOff(content + usageOnly(7, 5)),
    charged: ['reported', money(7, 5)],
  }),
  row('upstream_broke_off', 'half an answer with a report of no output', {
    ...brokenOff(usageOnly(7, 0) + content),
    charged: ['none', 0],
  }),
]

/** Checks the only call of the harness: its balance and its record agree. */
async function expectCharged(harness: Harness, key: string, expected: object): Promise<void> {
  await until(() => harness.recordCount() === 1, 'the call is recorded')
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

/** Sends other requests: when they are answered, the gateway has processed what came before them. */
async function untilProcessed(harness: Harness): Promise<void> {
  for (let round = 0; round < 5; round++) await fetch(`${harness.url}/api/public/settings`)
}

test('left_unsent: a caller leaves while its hold is being written', async () => {
  await withHarness({}, async harness => {
    const key = await harness.key({ credit: '1' })
    const db = openDatabase(join(harness.folder, 'weir.db'))
    db.run('BEGIN IMMEDIATE')
    const caller = openCall(harness, key, bodyOf(true))
    await until(() => harness.gateway.activeCalls === 1, 'the call is active')
    await untilProcessed(harness)
    caller.leave()
    await caller.closed
    await untilProcessed(harness)
    db.close()
    await expectCharged(harness, key, { rule: 'left_unsent', usage_source: 'none', cost: 0 })
    expect(harness.upstream.requests).toHaveLength(0)
  })
})

const unsent = ['left_unsent', 'revoked'] as const

test.each(unsent)('%s: a caller leaves while the connection is being made', async rule => {
  let handshakes = 0
  const muteServer = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => void handshakes++ } })
  await withHarness({ env: { OPENAI_BASE_URL: `https://127.0.0.1:${muteServer.port}/v1` } }, async harness => {
    const key = await harness.key({ credit: '1' })
    const caller = openCall(harness, key, bodyOf(true))
    await until(() => handshakes > 0, 'the upstream is asked to shake hands, and does not')
    if (rule === 'revoked') await harness.weir('keys revoke', { key })
    else caller.leave()
    await expectCharged(harness, key, { rule, usage_source: 'none', cost: 0 })
  })
  muteServer.stop(true)
})

describe('too_long', () => {
  let skewMs = 0
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + skewMs }
  const attemptTimes = { firstContentMs: 1e9, betweenChunksMs: 1e9 }
  const tooLong = [
    ['too_long', silence(), ['none', 0]],
    ['too_long_tools', silence(), ['estimated', 0]],
    ['too_long_answered', paused(content), ['estimated', estimate]],
    ['too_long_answered', paused(content + usageOnly(7, 5)), ['reported', money(7, 5)]],
  ] as const

  test.each(tooLong)('%s', async (rule, plan, [source, cost]) => {
    await withHarness({ world: { clock, attemptTimes } }, async harness => {
      const isTools = rule === 'too_long_tools'
      const key = await harness.key({ credit: '1' })
      harness.upstream.plan(plan)
      const caller = openCall(harness, key, isTools ? withTools : bodyOf(true))
      if (rule !== 'too_long_answered')
        await until(() => harness.upstream.requests.length > 0, 'the call is at the upstream')
      else await caller.until(({ text }) => text.includes('more'), 'content has arrived')
      skewMs += bounds.callMsMax
      await caller.whole()
      const charged = isTools ? {} : { cost } // charged by the time, up to the hold
      await expectCharged(harness, key, { rule, outcome: 'too_long', usage_source: source, ...charged })
      expect(Number(harness.records()[0]!.cost) > 0).toBe(rule !== 'too_long')
    })
  })
})

describe('a caller that stops reading until its upstream gives up', () => {
  // Time moves only where the test says so: a slow machine must not look like a slow caller.
  let nowMs = 1_000_000
  const clock = { ...systemClock, nowMs: () => nowMs }
  const bulk = 'x'.repeat(64 * 1024)

  /** Writes until the kernel takes no more, and breaks off when the promise resolves. */
  function* tooMuch(stuck: () => boolean, gaveUp: Promise<void>): Iterable<Step> {
    yield streamHead
    yield chunk(content)
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
      await caller.until(({ text }) => text.includes('more'), 'content has arrived')
      caller.stopReading()
      await standstill(await received)
      isStuck = true
      nowMs += ms
      gaveUp.resolve()
      caller.readOn()
      await caller.whole()
      expect(caller.text).toContain('upstream_failed')
      // Far more was delivered than the model's longest answer, which is as much as was held.
      const charged = rule === 'upstream_broke_off' ? ['none', 0] : ['estimated', money(inputOf(true), 16_384)]
      await expectCharged(harness, key, { rule, usage_source: charged[0], cost: charged[1] })
    })
  })
})

describe('revoked', () => {
  const cut = [
    ['revoked_waiting', silence(), ['estimated', money(inputOf(true), 0)]],
    ['revoked_answered', paused(content), ['estimated', estimate]],
    ['revoked_answered', paused(content + usageOnly(7, 5)), ['reported', money(7, 5)]],
  ] as const

  test.each(cut)('%s', async (rule, plan, [source, cost]) => {
    await withHarness({}, async harness => {
      const key = await harness.key({ credit: '1' })
      harness.upstream.plan(plan)
      const caller = openCall(harness, key, bodyOf(true))
      if (rule === 'revoked_waiting')
        await until(() => harness.upstream.requests.length > 0, 'the call is at the upstream')
      else await caller.until(({ text }) => text.includes('more'), 'content has arrived')
      await harness.weir('keys revoke', { key })
      await caller.whole()
      await expectCharged(harness, key, { rule, outcome: 'revoked', usage_source: source, cost })
    })
  })
})

describe('drained', () => {
  const cut = [
    ['drained', silence(), ['none', 0]],
    ['drained_delivered', paused(content), ['estimated', estimate]],
    ['drained_delivered', paused(content + usageOnly(7, 5)), ['reported', money(7, 5)]],
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
      if (rule === 'drained') await until(() => harness.upstream.requests.length > 0, 'the call is at the upstream')
      else await caller.until(({ text }) => text.includes('more'), 'content has arrived')
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
  const rulesHere = [...rows.map(({ rule }) => rule), 'left_unsent', 'too_long', 'too_long_tools', 'too_long_answered']
  const revoked = ['revoked', 'revoked_waiting', 'revoked_answered']
  const covered = [...rulesHere, 'upstream_broke_off_slow', 'drained', 'drained_delivered', ...revoked, ...elsewhere]
  expect([...new Set(covered)].sort()).toEqual(chargeRules.map(({ id }) => id).sort())
})
