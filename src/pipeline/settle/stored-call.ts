// The part of a call that is stored so that its answer can be retrieved later: the new input, and the complete answer.
import { isObject } from '../../protocols/request/json-body.ts'
import type { Json } from '../../protocols/request/json-type.ts'

export class StoredCall {
  /** The items of this turn only, as the caller sent them. */
  readonly input: readonly Json[]
  /** The id of the response that the call continues. */
  readonly previousId: string | null
  #bytes: Buffer | undefined
  #json: unknown
  /** The response object of a background call until its answer is complete. */
  queuedResponse?: Json
  /** The call was cancelled. */
  isCancelled = false
  /** The response was deleted. */
  isDeleted = false
  /** The call could not be settled, so that its answer must not be retrievable. */
  isUnpaid = false

  constructor(input: readonly Json[], previousId: string | undefined) {
    this.input = input
    this.previousId = previousId ?? null
  }

  /** Takes the last bytes that the caller gets, and their JSON where it is parsed already. */
  takeLast(bytes: Buffer, json?: unknown): void {
    this.#bytes = bytes
    this.#json = json
  }

  /** The response object; undefined if there is none. */
  answer(): Json | undefined {
    const json = this.#json ?? parseLastEvent(this.#bytes)
    const response = isObject(json) && isObject(json.response) ? json.response : json
    return isObject(response) && typeof response.id === 'string' ? response : undefined
  }
}

/** At the start of a line: the same text inside an answer follows no raw line break, because JSON escapes those. */
const DATA = '\ndata: '
const DONE = Buffer.from('data: [DONE]\n\n')

/** Parses a whole answer, or the last event of a stream that the gateway wrote: its data is one line. */
function parseLastEvent(bytes: Buffer | undefined): unknown {
  if (bytes === undefined || bytes.length === 0) return undefined
  const end = bytes.length - (bytes.subarray(-DONE.length).equals(DONE) ? DONE.length : 0)
  const data = bytes[0] === 0x7b ? 0 : bytes.lastIndexOf(DATA, end - 2) + DATA.length // -1 if it is the first line
  try {
    return JSON.parse(bytes.toString('utf8', data, end))
  } catch {
    return undefined
  }
}
