// Rewrites the response id of an answer, where the caller got an id before the upstream had one. Everything else passes
// unchanged, except the few fields of the response object that only the gateway knows.

import { jsonText } from '../../base/text/json-text.ts'
import type { FrameReading } from '../../protocols/neutral/call.ts'
import { isObject } from '../../protocols/request/json-body.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { FrameConverter } from './translation-types.ts'

const nothing = Buffer.alloc(0)

export class ResponseIdRewrite implements FrameConverter {
  readonly #fields: Json
  /** The upstream's id of the response. */
  upstreamId: string | undefined

  /** `fields`:  the fields that replace those of the upstream. */
  constructor(fields: Json) {
    this.#fields = fields
  }

  /** The id that the caller gets. */
  get id(): unknown {
    return this.#fields.id
  }

  convert({ json }: FrameReading): Buffer {
    const event = this.rewriteEvent(json)
    if (event === undefined) return nothing
    return Buffer.from(`event: ${jsonText(event.type)}\ndata: ${JSON.stringify(event)}\n\n`)
  }

  rewriteEvent(json: unknown): Json | undefined {
    if (!isObject(json)) return undefined
    return isObject(json.response) ? { ...json, response: this.#rewrite(json.response) } : json
  }

  end(): Buffer {
    return nothing
  }

  rewriteAnswer(json: unknown): Buffer | undefined {
    return isObject(json) ? Buffer.from(JSON.stringify(this.#rewrite(json))) : undefined
  }

  #rewrite(response: Json): Json {
    if (typeof response.id === 'string') this.upstreamId = response.id
    return { ...response, ...this.#fields }
  }
}
