// One question to one channel and its whole answer, for what stands beside the calls: tasks, files. Nothing is streamed
// and nothing is tried again here.

import type { Deadlines } from '../base/deadlines.ts'
import { Refusal } from '../base/errors.ts'
import { describeFault } from '../base/log.ts'
import { Stop } from '../base/stop.ts'
import type { OutgoingRequest, Send } from '../http/outgoing.ts'
import type { Channel } from '../upstreams/catalogue.ts'
import type { Provider } from '../upstreams/provider.ts'
import { readyRequest } from '../upstreams/ready-request.ts'

export interface Question {
  readonly provider: Provider
  readonly channel: Channel
  readonly dialect: string
  /** POST, unless told. */
  readonly method?: 'GET' | 'DELETE'
  /** Below the path of the dialect, safe to stand in an address. */
  readonly below?: string
  readonly body?: Uint8Array
  readonly contentType?: string
  readonly bytesMax: number
  readonly msMax: number
  /** Ends it early. */
  readonly stop?: Stop<Error>
}

export interface WholeAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: Buffer
}

/** No answer came that could be used. */
export class Unanswered extends Error {
  /** Bytes of the question left us: it may have been heard. */
  readonly sent: boolean
  readonly refusal: Refusal

  constructor(refusal: Refusal, sent: boolean) {
    super(refusal.message)
    this.refusal = refusal
    this.sent = sent
  }
}

export type AskUpstream = (question: Question) => Promise<WholeAnswer>

const nothing = new Uint8Array()

export function buildAskUpstream(send: Send, deadlines: Deadlines): AskUpstream {
  return async function askUpstream(question) {
    const { channel, bytesMax, msMax } = question
    const stop = new Stop<Error>()
    const giveUp = (): void => stop.stop(new Error('the question is given up'))
    let [sent, late] = [false, false]
    const deadline = deadlines.after(msMax, () => {
      late = true
      giveUp()
    })
    question.stop?.onStop(giveUp)
    try {
      const incoming = await send({ ...(await requestOf(question)), onSend: () => void (sent = true) }, stop)
      const body = await incoming.readWhole(bytesMax)
      if (body === undefined) throw new Error(`more than ${bytesMax} bytes`)
      return { status: incoming.status, contentType: incoming.header('content-type') ?? '', body }
    } catch (fault) {
      const detail = `${channel.id}: ${late ? 'too slow' : describeFault(fault)}`
      throw new Unanswered(new Refusal(late ? 'upstream_too_slow' : 'upstream_unusable', detail), sent)
    } finally {
      deadline.lift()
      question.stop?.forget(giveUp)
    }
  }
}

async function requestOf(question: Question): Promise<OutgoingRequest> {
  const { provider, channel, dialect, method, below = '', body = nothing, contentType } = question
  const request: OutgoingRequest = {
    ...(method !== undefined && { method }),
    url: `${channel.baseUrl}${provider.speaks[dialect]!.plain}${below}`,
    headers: {
      ...(method === undefined && { 'content-type': contentType ?? 'application/json' }),
      'accept': 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'weir',
    },
    body,
  }
  return await readyRequest(request, { provider, channel, dialect })
}
