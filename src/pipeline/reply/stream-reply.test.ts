// A stream that is never read, because its caller disconnected right after the head.

import { expect, test } from 'bun:test'
import { Deadlines } from '../../base/deadlines.ts'
import { buildLog } from '../../base/log.ts'
import { Stop } from '../../base/stop.ts'
import type { OpenedStream } from '../attempt/open-response.ts'
import type { CallEnding, Exchange, StopReason } from '../exchange.ts'
import { callerLeft, newAttempt, newCallParts } from '../exchange.ts'
import { Disconnects } from '../lifetime/disconnects.ts'
import { LargeAnswers } from '../settle/large-answers.ts'
import { buildReservations } from '../settle/reservation.ts'
import { Timings } from '../timings.ts'
import type { StreamParts } from './stream-reply.ts'
import { answerStream } from './stream-reply.ts'

test('a stream that is never read is settled, so that its hold does not stay', async () => {
  const deadlines = new Deadlines(() => 0)
  const endings: CallEnding[] = []
  const closed = Promise.withResolvers<void>()
  const exchange = {
    requestId: 'req_1',
    ...newCallParts(),
    timings: new Timings(() => 0),
    protocol: {},
    attempts: [],
    attempt: newAttempt(),
    lifetime: {
      stop: new Stop<StopReason>(),
      callerGone: new Stop<StopReason>(),
      close: () => closed.resolve(),
    },
  } as unknown as Exchange
  const parts: StreamParts = {
    settle: async (_exchange: Exchange, ending: CallEnding) => void endings.push(ending),
    reservations: buildReservations({
      largeAnswers: new LargeAnswers(() => 0),
      ledger: { extend: async () => ({ done: 'settled' }) },
      pause: async () => {},
    }),
    log: buildLog('error', () => {}),
    silence: { headMs: 1, heartbeatMs: 1 },
    stallMs: 1,
    deadlines,
    disconnects: new Disconnects(deadlines),
  }
  const opened = { kind: 'stream', contentType: 'text/event-stream' } as OpenedStream
  answerStream(parts, exchange, opened)
  expect(endings).toEqual([])
  exchange.lifetime.stop.stop(callerLeft)
  await closed.promise
  expect(endings).toEqual([{ outcome: 'client_left', status: 499 }])
})
