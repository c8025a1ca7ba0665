// A request as the fake upstream received it, for tests to inspect.

export interface ReceivedRequest {
  /** The number of the request since the server started, from 1 in the first account. Ids in answers are made from it. */
  readonly ordinal: number
  /** The number of its connection, from 1. Requests with the same number shared a socket. */
  readonly connection: number
  readonly method: string
  /** The request target as sent, with its query. */
  readonly path: string
  /** Names in lower case; repeated headers are joined by a comma. */
  readonly headers: ReadonlyMap<string, string>
  /** The request line and the headers as they arrived, without the blank line. */
  readonly rawHead: string
  /** The body without its framing. Empty if the script started before the body was read. */
  readonly body: Uint8Array
  json(): unknown
  /** Bytes of the answer that the kernel has accepted; does not grow while the client does not read. */
  readonly bytesWritten: number
  /** Resolves when the client's socket has closed. */
  readonly closed: Promise<void>
  /** On the clock of performance.now(). */
  readonly closedAtMs: number | undefined
}

export const emptyBody = new Uint8Array(0)

/** Undefined for a body that is not JSON, so that a script can refuse such a request. */
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
