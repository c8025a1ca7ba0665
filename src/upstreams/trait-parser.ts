// Parses the traits of models in a provider file. Unknown names are refused, because a misspelt trait would otherwise be
// ignored.

import type { ModelTraits } from '../base/money/model-traits.ts'
import { efforts, modalities, thinkingModes } from '../base/money/model-traits.ts'

/** Returns what a value must be, or undefined if it is valid. */
type Check = (value: unknown) => string | undefined

const flag: Check = value => (typeof value === 'boolean' ? undefined : 'true or false')

const oneOf =
  (words: readonly string[]): Check =>
  value =>
    words.includes(value as string) ? undefined : `one of ${words.join(', ')}`

const someOf =
  (words: readonly string[]): Check =>
  value => {
    const isList = Array.isArray(value) && value.length > 0 && new Set(value).size === value.length
    return isList && value.every(word => words.includes(word as string)) ? undefined : `a list of ${words.join(', ')}`
  }

const budget: Check = value =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? undefined : 'a number of tokens'

const SPEED_MAX = 100_000

const speed: Check = value =>
  Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= SPEED_MAX
    ? undefined
    : `a number of tokens from 1 to ${SPEED_MAX}`

/** The check of each trait. */
const checks: Readonly<Record<keyof ModelTraits, Check>> = {
  reads: someOf(modalities),
  thinking: oneOf(thinkingModes),
  hidesThinking: flag,
  tokensPerSecondMax: speed,
  pictureTokens: speed,
  stopsThinking: flag,
  efforts: someOf(efforts),
  budgetMin: budget,
  budgetMax: budget,
  sampling: flag,
  samplingWithoutThinking: flag,
  forcedTool: flag,
  schema: flag,
  schemaWithTools: flag,
  richResults: flag,
  cacheMarks: flag,
  searches: flag,
  system: flag,
}

/** `fail` throws an error that names the file and the model. */
export function parseTraits(value: unknown, fail: (problem: string) => never): ModelTraits {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail('"traits" must be an object')
  for (const [name, trait] of Object.entries(value)) {
    if (!Object.hasOwn(checks, name)) fail(`"traits" has an unknown field "${name}"`)
    const expected = checks[name as keyof ModelTraits](trait)
    if (expected !== undefined) fail(`"traits.${name}" must be ${expected}`)
  }
  const traits = value as ModelTraits
  if ((traits.budgetMin ?? 0) > (traits.budgetMax ?? Infinity))
    fail('"traits.budgetMin" must not be more than "traits.budgetMax"')
  return traits
}
