// A message of a WebSocket as the pipeline sees it: an ordinary call, with the headers of the request that opened the
// connection and the message as its body.

import { Refusal } from '../../base/errors.ts'
import type { Caller, StopReason } from '../../pipeline/exchange.ts'
import type { Ingress } from '../../pipeline/pipeline.ts'

/** The request that opened the connection. */
export interface OpeningRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly address: string
  query(name: string): string | null
}

export interface MessageIngressParts {
  readonly opening: OpeningRequest
  readonly callId: number
  readonly requestId: string
  readonly idempotencyKey: string | undefined
  readBody(caller: Caller, throwIfGone: () => void): Promise<Buffer>
  closeConnection(): void
}

export class MessageIngress implements Ingress {
  readonly endpoint = 'responses'
  readonly callId: number
  readonly requestId: string
  claimedBody: Buffer | undefined
  readonly #parts: MessageIngressParts
  readonly #listeners: (() => void)[] = []
  #onCut: ((reason: StopReason) => void) | undefined
  #isGone = false

  constructor(parts: MessageIngressParts) {
    this.callId = parts.callId
    this.requestId = parts.requestId
    this.#parts = parts
  }

  get path(): string {
    return this.#parts.opening.path
  }

  header(name: string): string | undefined {
    // A key of the connection would make all of its messages the same call.
    if (name === 'idempotency-key') return this.#parts.idempotencyKey
    const value = this.#parts.opening.headers[name]
    return name === 'openai-beta' ? withoutSocketVersion(value) : value
  }

  query(name: string): string | null {
    return this.#parts.opening.query(name)
  }

  address(): string {
    return this.#parts.opening.address
  }

  onDisconnect(listener: () => void): void {
    if (this.#isGone) listener()
    else this.#listeners.push(listener)
  }

  /** The connection has closed. */
  disconnect(): void {
    this.#isGone = true
    for (const listener of this.#listeners) listener()
  }

  onCut(listener: (reason: StopReason) => void): void {
    this.#onCut = listener
  }

  /** The gateway must end the call. */
  cut(reason: StopReason): void {
    this.#onCut?.(reason)
  }

  closeConnection(): void {
    this.#parts.closeConnection()
  }

  /** The connection stays open for the next message. */
  releaseConnection(): void {}

  readBody(_type: unknown, caller: Caller): Promise<Buffer> {
    return this.#parts.readBody(caller, () => {
      if (this.#isGone) throw new Refusal('body_too_slow', 'the client has disconnected')
    })
  }
}

/** Upstreams are called over HTTP, so the version of the WebSocket protocol does not concern them. */
function withoutSocketVersion(value: string | undefined): string | undefined {
  const others = value?.split(',').filter(part => !part.trim().startsWith('responses_websockets')) ?? []
  return others.length === 0 ? undefined : others.join(',').trim()
}
