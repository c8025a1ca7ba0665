// Sends one request to one channel and reads the whole answer, for what is not a plain call: tasks, files. It neither
// streams nor retries.

import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { describeFault } from '../../base/log.ts'
import { Stop } from '../../base/stop.ts'
import type { OutgoingRequest, Send } from '../../http/client/request.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { readyRequest } from '../../upstreams/sign-request.ts'

export interface Question extends Asking {
  /** POST by default. */
  readonly method?: 'GET' | 'DELETE'
  /** A path below that of the dialect, already encoded. */
  readonly below?: string
  readonly body?: Uint8Array
  readonly contentType?: string
}

interface Asking {
  readonly provider: Provider
  readonly channel: Channel
  readonly dialect: string
  readonly bytesMax: number
  readonly msMax: number
  /** Aborts the request. */
  readonly stop?: Stop<Error>
}

export interface WholeAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: Buffer
  /** When the head of the answer had arrived, by the clock of the deadlines. */
  readonly headAtMs: number
}

/** No usable answer arrived. */
export class Unanswered extends Error {
  /** Bytes of the request were sent, so the upstream may have received it. */
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
  const ask = buildAskWhole(send, deadlines)
  return question => ask(question, requestOf(question))
}

/** `request` is complete except for its signature. */
export type AskWhole = (asking: Asking, request: OutgoingRequest) => Promise<WholeAnswer>

/** The same with a request that the caller of this function has built. */
export function buildAskWhole(send: Send, deadlines: Deadlines): AskWhole {
  return async function askWhole({ provider, channel, dialect, bytesMax, msMax, stop: callerStop }, request) {
    const stop = new Stop<Error>()
    const abort = (): void => stop.stop(new Error('the request to the upstream was aborted'))
    let [sent, late] = [false, false]
    const deadline = deadlines.after(msMax, () => {
      late = true
      abort()
    })
    callerStop?.onStop(abort)
    try {
      const ready = await readyRequest(request, { provider, channel, dialect })
      const incoming = await send({ ...ready, onSend: () => void (sent = true) }, stop)
      const headAtMs = deadlines.nowMs()
      const body = await incoming.readWhole(bytesMax)
      if (body === undefined) throw new Error(`more than ${bytesMax} bytes`)
      return { status: incoming.status, contentType: incoming.header('content-type') ?? '', body, headAtMs }
    } catch (fault) {
      const detail = `${channel.id}: ${late ? 'too slow' : describeFault(fault)}`
      throw new Unanswered(new Refusal(late ? 'upstream_too_slow' : 'upstream_unusable', detail), sent)
    } finally {
      deadline.lift()
      callerStop?.forget(abort)
    }
  }
}

function requestOf(question: Question): OutgoingRequest {
  const { provider, channel, dialect, method, below = '', body = nothing, contentType } = question
  return {
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
}
