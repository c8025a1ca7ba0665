// An answer whose caller was given a name for it before the upstream had one: everything passes as it came, but for
// the few fields of the response object that only we can know.

import type { FrameReading } from '../../protocols/neutral/call.ts'
import { isObject } from '../../protocols/request/json-object.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { FrameTurner } from './translation-types.ts'

const nothing = Buffer.alloc(0)

export class Renaming implements FrameTurner {
  readonly #ours: Json
  /** What the upstream calls it. */
  upstreamId: string | undefined

  /** `ours` are the fields that stand in place of the upstream's. */
  constructor(ours: Json) {
    this.#ours = ours
  }

  take({ json }: FrameReading): Buffer {
    if (!isObject(json)) return nothing
    const event = isObject(json.response) ? { ...json, response: this.#renamed(json.response) } : json
    return Buffer.from(`event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`)
  }

  end(): Buffer {
    return nothing
  }

  whole(json: unknown): Buffer | undefined {
    return isObject(json) ? Buffer.from(JSON.stringify(this.#renamed(json))) : undefined
  }

  #renamed(response: Json): Json {
    if (typeof response.id === 'string') this.upstreamId = response.id
    return { ...response, ...this.#ours }
  }
}
