// A request as the fake upstream got it: what tests look at after the gateway has spoken.

export interface ReceivedRequest {
  /** Counts up over the life of the server, from 1 in its first account; the ids in answers are made from it. */
  readonly ordinal: number
  /** Which connection it came on, from 1; two requests with the same number shared a socket. */
  readonly connection: number
  readonly method: string
  /** The request target as sent, with its query. */
  readonly path: string
  /** Names in lower case; repeated headers are joined by a comma. */
  readonly headers: ReadonlyMap<string, string>
  /** The request line and the headers as they came, without the blank line. */
  readonly rawHead: string
  /** Decoded from its framing. Empty when the script began before the body was read. */
  readonly body: Uint8Array
  json(): unknown
  /** Bytes of the answer that the kernel has taken so far; stands still while the client holds us back. */
  readonly bytesWritten: number
  /** Resolves when the client's socket has closed. */
  readonly closed: Promise<void>
  /** On the clock of performance.now(). */
  readonly closedAtMs: number | undefined
}

export const emptyBody = new Uint8Array(0)

/** Undefined for anything that is not JSON, so that a script can look at a request that it means to refuse. */
export function readJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body)) as unknown
  } catch {
    return undefined
  }
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
