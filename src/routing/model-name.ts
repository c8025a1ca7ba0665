// `<provider>/<model>`: split at the first slash, because models of aggregators have slashes of their own.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'

export interface ModelName {
  readonly provider: string
  readonly model: string
}

/** Visible ASCII only: the name ends up in a response header. */
const VISIBLE = /^[\x21-\x7e]+$/

export function parseModelName(text: string): ModelName {
  const slash = text.indexOf('/')
  const wellFormed = slash > 0 && slash < text.length - 1
  if (!wellFormed || text.length > bounds.modelNameCharsMax || !VISIBLE.test(text)) {
    throw new Refusal('model_malformed', `${text.length} characters`, { param: 'model' })
  }
  return { provider: text.slice(0, slash), model: text.slice(slash + 1) }
}
