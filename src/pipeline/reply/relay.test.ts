// A caller with a full socket: what counts as delivered, and what is still read when the caller disconnects.

import { expect, test } from 'bun:test'
import { Stop } from '../../base/stop.ts'
import type { IncomingResponse } from '../../http/client/request.ts'
import { protocols } from '../../protocols/protocols.ts'
import type { OpenedStream } from '../attempt/open-response.ts'
import type { Watchdog } from '../attempt/watchdog.ts'
import type { CallEnding, Candidate, Exchange, StopReason } from '../exchange.ts'
import { callerLeft, newAttempt, newCallParts } from '../exchange.ts'
import { LargeAnswers } from '../settle/large-answers.ts'
import { buildReservations } from '../settle/reservation.ts'
import { silentMs } from '../settle/usage-meter.ts'
import { Timings } from '../timings.ts'
import type { CallerWriter } from './caller-writer.ts'
import { relay } from './relay.ts'
import { AnswerReader } from './stream-reader.ts'

const event = (json: unknown): string => `data: ${JSON.stringify(json)}\n\n`
const content = event({ choices: [{ delta: { content: 'four' } }] })
const finish = event({ choices: [{ delta: {}, finish_reason: 'stop' }] })
const usage = event({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 50_000 } })
const done = 'data: [DONE]\n\n'

interface RelayScene {
  readonly nowMs?: () => number
  readonly memory?: object
}

/** Relays these pieces to a caller. Returns how the call ended and how many pieces were not read. */
async function relayTo(
  pieces: string[],
  write: (exchange: Exchange) => Promise<void> | undefined,
  { nowMs = () => 0, memory }: RelayScene = {},
) {
  const exchange = {
    attempt: newAttempt({ provider: { can: { streamUsage: true }, quirks: [] } } as unknown as Candidate),
    ...newCallParts(),
    lifetime: { stop: new Stop<StopReason>(), memory },
    timings: new Timings(nowMs),
    requestId: 'req_1',
    protocol: protocols['openai-chat'],
    call: { choices: 1, stream: true, wantsUsage: false },
  } as unknown as Exchange
  const endings: CallEnding[] = []
  const reservations = buildReservations({
    largeAnswers: new LargeAnswers(() => 0),
    ledger: { extend: async () => ({ done: 'settled' }) },
    pause: async () => {},
  })
  async function settle(_exchange: Exchange, ending: CallEnding): Promise<void> {
    endings.push(ending)
  }
  const read = async () => {
    const text = pieces.shift()
    return text === undefined ? {} : { value: Buffer.from(text) }
  }
  const readEach = async (take: (piece: Buffer) => boolean): Promise<boolean> => {
    for (let piece = await read(); piece.value !== undefined; piece = await read()) if (!take(piece.value)) return true
    return false
  }
  const incoming = { read, readEach, discard() {} } as unknown as IncomingResponse
  const unusedMethods = { abort() {}, end() {}, stopReports() {}, isLate: false }
  const watch = { pause() {}, alive() {}, expect() {}, expectEnd() {}, ...unusedMethods } as unknown as Watchdog
  const reader = new AnswerReader(incoming, exchange, { upstreamProtocol: exchange.protocol, watch })
  const caller = { write: () => write(exchange) } as unknown as CallerWriter
  const stream = { kind: 'stream', contentType: '', first: [], reader, watch, channel: {} } as unknown as OpenedStream
  await relay(stream, caller, { exchange, settle, reservations }).catch((fault: unknown) =>
    expect(fault).toBe(callerLeft),
  )
  const { usage: reported, delivered } = exchange.attempt.meter
  return { endings, usage: reported, delivered, unread: pieces.length }
}

const relayUntilDisconnect = (pieces: string[]) =>
  relayTo(pieces, ({ lifetime: { stop } }) => {
    stop.stop(callerLeft)
    return Promise.reject(callerLeft)
  })

test('reasoning is not counted while the caller does not read, or while there is no memory', async () => {
  let nowMs = 0
  const silences: number[] = []
  const room = {
    keep() {},
    read() {},
    async room(): Promise<void> {
      nowMs += 60_000
    },
  }
  await relayTo(
    [content, content, finish + usage + done],
    async ({ attempt: { meter } }) => {
      meter.forwarded = true
      nowMs += 60_000
      silences.push(silentMs(meter, nowMs))
    },
    { nowMs: () => nowMs, memory: room },
  )
  expect(silences.slice(0, 2)).toEqual([0, 0])
})

test('bytes that wait for a full socket are not delivered yet', async () => {
  const delivered: number[] = []
  await relayTo([content, content, finish + usage + done], async ({ attempt }) => {
    delivered.push(attempt.meter.deliveredBytes)
    await Promise.resolve()
    delivered.push(attempt.meter.deliveredBytes)
  })
  expect(delivered.slice(0, 6)).toEqual([0, 0, 4, 4, 8, 8])
})

test('after the caller disconnects, a usage report that follows the finish is still read', async () => {
  const result = await relayUntilDisconnect([content + finish, usage, done])
  expect(result).toMatchObject({
    endings: [{ outcome: 'client_left' }],
    usage: { input: 7, output: 50_000 },
    unread: 1,
  })
})

test('a gateway fault in the middle of an answer is not a failure of the upstream', async () => {
  let writes = 0
  const result = await relayTo([content, content, usage], () => {
    if (++writes === 2) throw new TypeError('a mistake')
    return undefined
  })
  expect(result.endings).toMatchObject([{ outcome: 'gateway_fault', error: 'gateway_fault' }])
  expect(result.delivered).toBe(true)
})

test('after the caller disconnects, further content is not read', async () => {
  const result = await relayUntilDisconnect([content, finish, usage, done])
  expect(result).toMatchObject({ endings: [{ outcome: 'client_left' }], usage: undefined, unread: 3 })
})
