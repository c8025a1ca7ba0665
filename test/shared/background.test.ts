// Background responses with two gateway processes: one makes a response, and callers reach the other one. They follow its
// events while it is made, cancel it and delete it, also when the process that makes it is killed.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { bounds } from '../../src/base/bounds.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { pausedStream, plain } from '../../tools/fake-upstream/answers.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { judgeBooks } from '../crash/laws.ts'
import { after } from '../forwarding/wire.ts'
import { hasPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { countOpenHolds, sharedBooksReader } from './books.ts'
import type { Fleet, FleetMember } from './fleet.ts'
import { startFleet } from './fleet.ts'

tellMissingPostgres()

const MODEL = 'openai/gpt-4o-mini'
const MS_MAX = 300_000

type Event = OpenAI.Responses.ResponseStreamEvent
const isPiece = ({ type }: Event): boolean => type === 'response.output_text.delta'

const readStored = postgresQuery<{ bytes: bigint; asked: string | null }>(
  `SELECT r.bytes, l.asked FROM kept_response r JOIN job_lease l ON l.name = 'response ' || r.account_id || '/' || r.id
   WHERE r.id = $1`,
)

describe.if(hasPostgres)('a background response that another gateway makes', () => {
  let upstream: FakeUpstream
  let fleet: Fleet
  let pool: PostgresPool
  let [maker, other]: FleetMember[] = []
  let [onMaker, onOther]: OpenAI[] = []
  const gates: (() => void)[] = []

  beforeAll(async () => {
    upstream = await startFakeUpstream()
    fleet = await startFleet({ count: 2, upstream: upstream.url })
    ;[maker, other] = fleet.members as FleetMember[]
    pool = fleet.postgres.openAgain(fleet.database)
    const { key } = await other!.insist('keys create', { tier: 'pro', qpm: '100000', credit: '10' })
    const clientOf = ({ url }: FleetMember): OpenAI =>
      new OpenAI({ apiKey: String(key), baseURL: `${url}/v1`, maxRetries: 10 })
    ;[onMaker, onOther] = [clientOf(maker!), clientOf(other!)]
  }, MS_MAX)

  afterAll(async () => {
    for (const open of gates) open()
    await fleet?.close()
    await upstream?.stop()
  }, MS_MAX)

  /** A promise that the end of the tests resolves at the latest. */
  function untilOpened(): { readonly opens: Promise<void>; open(): void } {
    const { promise, resolve } = Promise.withResolvers<void>()
    gates.push(resolve)
    return { opens: promise, open: resolve }
  }

  /** Begins a response whose upstream stops after the first piece of text. Each of several gates is before a piece. */
  async function beginStream(
    opens: Promise<void> | readonly Promise<void>[],
    pieces: readonly string[] = ['one ', 'two'],
  ): Promise<string> {
    upstream.plan(pausedStream(pieces, opens))
    const events = await onMaker!.responses.create({ model: MODEL, input: 'Hi', background: true, stream: true })
    let id = ''
    for await (const event of events) {
      if (event.type === 'response.created') id = event.response.id
      if (event.type === 'response.output_text.delta') break
    }
    return id
  }

  async function beginPlain(opens: Promise<void>): Promise<string> {
    upstream.plan(after(opens, plain('one')))
    const received = upstream.nextRequest()
    const { id } = await onMaker!.responses.create({ model: MODEL, input: 'Hi', background: true })
    await received
    return id
  }

  const statusOf = (client: OpenAI, id: string): Promise<unknown> =>
    client.responses.retrieve(id).then(
      ({ status }) => status,
      (fault: { status: number }) => fault.status,
    )

  async function follow(id: string, onEvent: (event: Event) => void = () => {}, startingAfter = -1): Promise<Event[]> {
    const from = startingAfter < 0 ? {} : { starting_after: startingAfter }
    const events: Event[] = []
    for await (const event of await onOther!.responses.retrieve(id, { stream: true, ...from })) {
      events.push(event)
      onEvent(event)
    }
    return events
  }

  /** Waits until the process that makes the response has so many pieces of its text. */
  async function untilMade(id: string, count: number): Promise<void> {
    let made = 0
    for await (const event of await onMaker!.responses.retrieve(id, { stream: true })) {
      if (isPiece(event) && ++made === count) return
    }
  }

  /** Waits until nobody asks for the events of a response and nobody stores them. Returns what is stored. */
  async function untilNothingIsWritten(id: string): Promise<bigint> {
    for (let [before, same, looks] = [-1n, 0, 0]; ; await Bun.sleep(100)) {
      const { bytes, asked } = (await pool.readPoint(readStored.get(id)))!
      same = asked === null && bytes === before ? same + 1 : 0
      if (same === 20) return bytes
      if (++looks > 300) throw new Error(`the response is written again and again, because of: ${asked}`)
      before = bytes
    }
  }

  async function checkLedger(): Promise<void> {
    while ((await countOpenHolds(pool)) > 0) await Bun.sleep(50)
    expect(judgeBooks(await sharedBooksReader(pool)({ call: 0, seq: 0 }))).toEqual([])
  }

  test(
    'is followed while it is made, from any position',
    async () => {
      const { opens, open } = untilOpened()
      const id = await beginStream(opens)
      expect(await statusOf(onOther!, id)).toBe('queued')
      // The upstream goes on only when the first piece has arrived here: the events do not wait for the end.
      const whole = await follow(id, ({ type }) => void (type === 'response.output_text.delta' && open()))
      expect(whole.map(event => event.sequence_number)).toEqual(whole.map((_, at) => at))
      expect(whole.at(-1)).toMatchObject({ type: 'response.completed', response: { id } })
      expect(await follow(id, () => {}, 3)).toEqual(whole.slice(4))
      const again: Event[] = []
      for await (const event of await onMaker!.responses.retrieve(id, { stream: true })) again.push(event)
      expect(again).toEqual(whole)
      await checkLedger()
    },
    MS_MAX,
  )

  test(
    'ends for those who follow it also if its events are too large to be stored',
    async () => {
      const { opens, open } = untilOpened()
      // Each of the last events has the whole text: only without them does the response fit.
      const pieces = Array.from({ length: 24 }, (_, at) => `${at} `.padEnd(bounds.storedResponseBytesMax / 80, 'x'))
      const isHere = Promise.resolve()
      const id = await beginStream([...pieces.slice(2).map(() => isHere), opens], pieces)
      let count = 0
      const events = await follow(id, event => {
        if (isPiece(event) && ++count === pieces.length - 1) open()
      })
      expect(events.map(event => event.sequence_number)).toEqual(events.map((_, at) => at))
      expect(events.filter(isPiece)).toHaveLength(pieces.length - 1)
      expect(events.at(-2)).toMatchObject({ type: 'response.output_item.done', output_index: 0 })
      const whole = await onOther!.responses.retrieve(id)
      expect(whole.output_text).toBe(pieces.join(''))
      expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { id, output: whole.output } })
      // Those who come later get the text in one piece.
      const later = await onOther!.responses.stream({ response_id: id }).finalResponse()
      expect(later.output_text).toBe(whole.output_text)
      expect((await follow(id)).filter(isPiece)).toHaveLength(1)
      await checkLedger()
    },
    MS_MAX,
  )

  test(
    'is stored for those who follow it, and not any more when they have left',
    async () => {
      const steps = Array.from({ length: 5 }, untilOpened)
      const pieces = ['one ', 'two ', 'three ', 'four ', 'five']
      const opens = steps.map(step => step.opens)
      const id = await beginStream(opens, pieces)
      let count = 0
      for await (const event of await onOther!.responses.retrieve(id, { stream: true })) {
        if (isPiece(event) && ++count === 2) break
        if (isPiece(event)) steps[0]!.open()
      }
      await untilNothingIsWritten(id)
      // A last wish may be left: it is fulfilled with the next piece, and then no further one is stored.
      const bytes: bigint[] = []
      for (const [at, step] of steps.slice(1, 3).entries()) {
        step.open()
        await untilMade(id, 3 + at)
        bytes.push(await untilNothingIsWritten(id))
      }
      expect(bytes[1]).toBe(bytes[0]!)
      for (const { open } of steps) open()
      const whole = await follow(id)
      expect(whole.map(event => event.sequence_number)).toEqual(whole.map((_, at) => at))
      expect(whole.filter(isPiece)).toHaveLength(pieces.length)
      await checkLedger()
    },
    MS_MAX,
  )

  test.each([true, false])(
    'is cancelled and deleted, streamed %p',
    async stream => {
      const begin = stream ? beginStream : beginPlain
      const { opens } = untilOpened()
      const cancelled = await begin(opens)
      expect(await onOther!.responses.cancel(cancelled)).toMatchObject({
        id: cancelled,
        status: 'cancelled',
        output: [],
      })
      expect(await statusOf(onMaker!, cancelled)).toBe('cancelled')
      const deleted = await begin(opens)
      await onOther!.responses.delete(deleted)
      expect([await statusOf(onMaker!, deleted), await statusOf(onOther!, deleted)]).toEqual([404, 404])
      await checkLedger()
    },
    MS_MAX,
  )

  test(
    'ends at the other one when its gateway is killed',
    async () => {
      const { opens } = untilOpened()
      const [followed, cancelled, deleted] = [
        await beginStream(opens),
        await beginPlain(opens),
        await beginPlain(opens),
      ]
      const arrived = Promise.withResolvers<void>()
      const following = follow(
        followed,
        ({ type }) => void (type === 'response.output_text.delta' && arrived.resolve()),
      )
      await arrived.promise
      await maker!.child.kill()
      const [events, response] = await Promise.all([
        following,
        onOther!.responses.cancel(cancelled),
        onOther!.responses.delete(deleted),
      ])
      expect(events.map(event => event.sequence_number)).toEqual(events.map((_, at) => at))
      expect(events.filter(({ type }) => type === 'response.output_text.delta')).toHaveLength(1)
      expect(events.at(-1)).toMatchObject({ type: 'response.failed', response: { id: followed, status: 'failed' } })
      expect(response).toMatchObject({ id: cancelled, status: 'failed' })
      expect(await statusOf(onOther!, deleted)).toBe(404)
      expect(await follow(followed)).toEqual(events)
      await checkLedger()
      expect((await other!.weir('audit')).findings).toEqual([])
    },
    MS_MAX,
  )
})
