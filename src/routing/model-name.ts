// Parses `<provider>/<model>`. The first slash separates them, because model names of aggregators contain slashes.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'

export interface ModelName {
  readonly provider: string
  readonly model: string
}

/** Visible ASCII only, because the name is written into a response header. */
const VISIBLE = /^[\x21-\x7e]+$/

export function parseModelName(text: string): ModelName {
  const slash = text.indexOf('/')
  const isWellFormed = slash > 0 && slash < text.length - 1
  if (!isWellFormed || text.length > bounds.modelNameCharsMax || !VISIBLE.test(text)) {
    throw new Refusal('model_malformed', `${text.length} characters`, { param: 'model' })
  }
  return { provider: text.slice(0, slash), model: text.slice(slash + 1) }
}
