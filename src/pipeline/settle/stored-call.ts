// Of a call whose answer can be asked for again: what was new in it, and the answer, once it is whole.
import { isObject } from '../../protocols/request/json-object.ts'
import type { Json } from '../../protocols/request/json-type.ts'

export class KeptCall {
  /** The items of this turn alone, as the caller gave them. */
  readonly input: readonly Json[]
  /** The answer that it follows. */
  readonly previousId: string | null
  #bytes: Buffer | undefined
  #json: unknown
  /** Of one in the background: what is told of it until its answer is there. */
  waiting?: Json
  /** Somebody asked for it to be ended. */
  isCancelled = false
  /** Somebody asked for it to be forgotten. */
  isDeleted = false

  constructor(input: readonly Json[], previousId: string | undefined) {
    this.input = input
    this.previousId = previousId ?? null
  }

  /** The last bytes that its caller gets, and what they say where somebody has read them already. */
  take(bytes: Buffer, json?: unknown): void {
    this.#bytes = bytes
    this.#json = json
  }

  /** The response object; undefined where there is none. */
  answer(): Json | undefined {
    const said = this.#json ?? parseLast(this.#bytes)
    const response = isObject(said) && isObject(said.response) ? said.response : said
    return isObject(response) && typeof response.id === 'string' ? response : undefined
  }
}

const DATA = 'data: '
const DONE = Buffer.from('data: [DONE]\n\n')

/** A whole answer, or the last event of a stream that we wrote ourselves: its data is one line. */
function parseLast(bytes: Buffer | undefined): unknown {
  if (bytes === undefined || bytes.length === 0) return undefined
  const end = bytes.length - (bytes.subarray(-DONE.length).equals(DONE) ? DONE.length : 0)
  const data = bytes[0] === 0x7b ? 0 : bytes.lastIndexOf(DATA, end - 1) + DATA.length
  try {
    return JSON.parse(bytes.toString('utf8', data, end))
  } catch {
    return undefined
  }
}
