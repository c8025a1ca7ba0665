// Parses `<provider>/<model>`. The first slash separates them, because model names of aggregators contain slashes.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'

export interface ModelName {
  readonly provider: string
  readonly model: string
}

/** Visible ASCII only, because the name is written into a response header. */
const VISIBLE = /^[\x21-\x7e]+$/

/** Throws where the text cannot be any name, not even one that an operator has defined. */
export function checkNameText(text: string): void {
  if (text.length <= bounds.modelNameCharsMax && VISIBLE.test(text)) return
  throw new Refusal('model_malformed', `${text.length} characters`, { param: 'model' })
}

/** Throws where the text cannot be the name of a model, with or without a provider. */
export function checkModelName(text: string): void {
  checkNameText(text)
  if (!text.startsWith('/') && !text.endsWith('/')) return
  throw new Refusal('model_malformed', 'a slash at its end', { param: 'model' })
}

/** An empty part, "." or ".." between slashes, or a character that has a meaning in a URL. */
const ODD = /[%\\?]|(?:^|\/)\.{0,2}(?:\/|$)/

/**
 * Whether all servers read the id of a model in the same way. Some leave out empty parts, follow "..", or decode "%2F":
 * with them, "openai//gpt-5" would be "openai/gpt-5" without the price and the prohibitions of that model.
 */
export const isPlainId = (modelId: string): boolean => !ODD.test(modelId)

/** Throws where the text has no provider. */
export function parseModelName(text: string): ModelName {
  checkModelName(text)
  const slash = text.indexOf('/')
  if (slash < 0) throw new Refusal('model_malformed', 'no provider', { param: 'model' })
  return { provider: text.slice(0, slash), model: text.slice(slash + 1) }
}
