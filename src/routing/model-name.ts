// Parses `<provider>/<model>`. The first slash separates them, because model names of aggregators contain slashes.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'

export interface ModelName {
  readonly provider: string
  readonly model: string
}

/** Visible ASCII only, because the name is written into a response header. */
const VISIBLE = /^[\x21-\x7e]+$/

/** Throws where the text cannot be the name of a model, with or without a provider. */
export function checkModelName(text: string): void {
  if (text.length > bounds.modelNameCharsMax || !VISIBLE.test(text) || text.startsWith('/') || text.endsWith('/')) {
    throw new Refusal('model_malformed', `${text.length} characters`, { param: 'model' })
  }
}

/** Throws where the text has no provider. */
export function parseModelName(text: string): ModelName {
  checkModelName(text)
  const slash = text.indexOf('/')
  if (slash < 0) throw new Refusal('model_malformed', 'no provider', { param: 'model' })
  return { provider: text.slice(0, slash), model: text.slice(slash + 1) }
}
