// Writes a request again with other items, such as those of the previous turns. Its size is known only while it is written:
// it is refused as soon as it is too large, and other work runs in between.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { ChargeBytes } from '../../vault/responses.ts'

/** After writing this much in one go, other work runs. */
const BYTES_PER_STEP = 1024 * 1024

/** Returns what is sent of an item: nothing, or the item without some of its fields. */
export type SentItems = (items: readonly Json[]) => readonly Json[]

export interface NewItems {
  readonly items: readonly Json[]
  readonly sent: SentItems
  readonly charge: ChargeBytes
}

/** `items` replaces `json.input`. The same item may occur many times: each time but the first is charged. */
export async function writeWithItems(json: Json, { items, sent, charge }: NewItems): Promise<Buffer> {
  const { input: _input, ...rest } = json
  const head = JSON.stringify(rest).slice(0, -1)
  const body = new BodyParts(`${head}${head === '{' ? '' : ','}"input":[`)
  const texts = new Map<Json, string>()
  let separator = ''
  for (const item of items) {
    const known = texts.get(item)
    const text =
      known ??
      sent([item])
        .map(one => JSON.stringify(one))
        .join(',')
    if (known === undefined) texts.set(item, text)
    else charge(text.length)
    if (text === '') continue
    if (body.add(separator + text)) await new Promise(resolve => setImmediate(resolve))
    separator = ','
  }
  body.add(']}')
  return body.join()
}

/** Writes the request with an input of any form. */
export function writeWhole(json: Json): Buffer {
  const body = Buffer.from(JSON.stringify(json))
  if (body.length > bounds.bodyBytesMax) throw tooLarge()
  return body
}

export const tooLarge = (): Refusal =>
  new Refusal('body_too_large', 'with the previous turns', { hint: hintOf('call_with_turns') })

class BodyParts {
  readonly #parts: Buffer[] = []
  #texts: string[] = []
  #textBytes = 0
  #bytes = 0

  constructor(start: string) {
    this.add(start)
  }

  /** Returns whether much was written since the last time. */
  add(text: string): boolean {
    const bytes = Buffer.byteLength(text)
    this.#bytes += bytes
    if (this.#bytes > bounds.bodyBytesMax) throw tooLarge()
    this.#texts.push(text)
    this.#textBytes += bytes
    if (this.#textBytes < BYTES_PER_STEP) return false
    this.#encode()
    return true
  }

  join(): Buffer {
    this.#encode()
    return this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts)
  }

  #encode(): void {
    this.#parts.push(Buffer.from(this.#texts.join('')))
    this.#texts = []
    this.#textBytes = 0
  }
}
