// Reads what a provider file says of the traits of its models, strictly: a trait that is misspelt would pass for one
// that nobody knows.

import type { Traits } from '../base/money/model-traits.ts'
import { efforts, modalities, thinkingWays } from '../base/money/model-traits.ts'

type Read = (value: unknown) => string | undefined

const flag: Read = value => (typeof value === 'boolean' ? undefined : 'true or false')

const oneOf =
  (words: readonly string[]): Read =>
  value =>
    words.includes(value as string) ? undefined : `one of ${words.join(', ')}`

const someOf =
  (words: readonly string[]): Read =>
  value => {
    const isList = Array.isArray(value) && value.length > 0 && new Set(value).size === value.length
    return isList && value.every(word => words.includes(word as string)) ? undefined : `a list of ${words.join(', ')}`
  }

const budget: Read = value => (Number.isSafeInteger(value) && (value as number) >= 0 ? undefined : 'a number of tokens')

const SPEED_MAX = 100_000

const speed: Read = value =>
  Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= SPEED_MAX
    ? undefined
    : `a number of tokens from 1 to ${SPEED_MAX}`

/** Each trait, and what is wrong with a value of it. */
const rows: Readonly<Record<keyof Traits, Read>> = {
  reads: someOf(modalities),
  thinking: oneOf(thinkingWays),
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

/** `fail` says where, and does not return. */
export function parseTraits(value: unknown, fail: (problem: string) => never): Traits {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail('"traits" must be an object')
  for (const [name, given] of Object.entries(value)) {
    if (!Object.hasOwn(rows, name)) fail(`"traits" has an unknown field "${name}"`)
    const wanted = rows[name as keyof Traits](given)
    if (wanted !== undefined) fail(`"traits.${name}" must be ${wanted}`)
  }
  const traits = value as Traits
  if ((traits.budgetMin ?? 0) > (traits.budgetMax ?? Infinity)) fail('"traits.budgetMin" is more than "budgetMax"')
  return traits
}
