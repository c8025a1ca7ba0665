// Parses the traits of models in a provider file. Unknown names are refused, because a misspelt trait would otherwise be
// ignored. Each trait has its check and its JSON Schema in one place, so that the OpenAPI document says what is accepted.

import type { ModelTraits } from '../base/money/model-traits.ts'
import { efforts, modalities, thinkingModes } from '../base/money/model-traits.ts'

type JsonSchema = Readonly<Record<string, unknown>>

interface Trait {
  /** Returns what a value must be, or undefined if it is valid. */
  check(value: unknown): string | undefined
  /** The values that `check` accepts. */
  readonly schema: JsonSchema
}

const flag: Trait = {
  check: value => (typeof value === 'boolean' ? undefined : 'true or false'),
  schema: { type: 'boolean' },
}

const oneOf = (words: readonly string[]): Trait => ({
  check: value => (words.includes(value as string) ? undefined : `one of ${words.join(', ')}`),
  schema: { type: 'string', enum: words },
})

const someOf = (words: readonly string[], minItems = 1): Trait => ({
  check(value) {
    const isList = Array.isArray(value) && value.length >= minItems && new Set(value).size === value.length
    return isList && value.every(word => words.includes(word as string)) ? undefined : `a list of ${words.join(', ')}`
  },
  schema: { type: 'array', items: { type: 'string', enum: words }, minItems, uniqueItems: true },
})

const budget: Trait = {
  check: value => (Number.isSafeInteger(value) && (value as number) >= 0 ? undefined : 'a number of tokens'),
  schema: { type: 'integer', minimum: 0 },
}

const SPEED_MAX = 100_000

const speed: Trait = {
  check: value =>
    Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= SPEED_MAX
      ? undefined
      : `a number of tokens from 1 to ${SPEED_MAX}`,
  schema: { type: 'integer', minimum: 1, maximum: SPEED_MAX },
}

const TOKENS_MAX = 1_000_000

const isNumber = (value: unknown, max: number): boolean => typeof value === 'number' && value > 0 && value <= max

/** Fields of an object, each with the largest number that is allowed. All are above 0; those in `required` must exist. */
interface NumberFields {
  readonly max: Readonly<Record<string, number>>
  readonly required: readonly string[]
}

const imageRules: Readonly<Record<string, NumberFields>> = {
  fixed: { max: { tokens: TOKENS_MAX }, required: ['tokens'] },
  tiles: { max: { base: TOKENS_MAX, tile: TOKENS_MAX }, required: ['base', 'tile'] },
  patches: {
    max: { side: 10_000, patchesMax: TOKENS_MAX, highPatchesMax: TOKENS_MAX, multiplier: 1_000, base: TOKENS_MAX },
    required: ['side', 'patchesMax'],
  },
}

function checkNumbers(value: Readonly<Record<string, unknown>>, { max, required }: NumberFields): string | undefined {
  const isUsable = ([name, number]: readonly [string, unknown]): boolean =>
    Object.hasOwn(max, name) && isNumber(number, max[name]!)
  if (Object.entries(value).every(isUsable) && required.every(name => Object.hasOwn(value, name))) return undefined
  const limits = Object.entries(max).map(
    ([name, most]) => `${name}${required.includes(name) ? '' : ' (optional)'} up to ${most}`,
  )
  return `an object with these numbers above 0: ${limits.join(', ')}`
}

const numberSchemas = ({ max }: NumberFields): Readonly<Record<string, JsonSchema>> =>
  Object.fromEntries(
    Object.entries(max).map(([name, most]) => [name, { type: 'number', exclusiveMinimum: 0, maximum: most }]),
  )

const closed = (properties: JsonSchema, required: readonly string[] = []): JsonSchema => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  additionalProperties: false,
})

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function checkImageRule(value: unknown): string | undefined {
  const { kind, ...numbers } = isRecord(value) ? value : {}
  const rule = typeof kind === 'string' && Object.hasOwn(imageRules, kind) ? imageRules[kind] : undefined
  if (rule === undefined) return `an object whose "kind" is one of ${Object.keys(imageRules).join(', ')}`
  const expected = checkNumbers(numbers, rule)
  return expected === undefined ? undefined : `for the kind "${String(kind)}" ${expected}`
}

const mediaNumbers: NumberFields = {
  max: { audioSecond: 10_000, videoFrame: TOKENS_MAX, pdfPage: TOKENS_MAX, pdfPagesMax: 100_000 },
  required: [],
}

function checkMediaTokens(value: unknown): string | undefined {
  if (!isRecord(value)) return 'an object'
  const { image, ...numbers } = value
  const expectedImage = image === undefined ? undefined : checkImageRule(image)
  if (expectedImage !== undefined) return `an object whose "image" is ${expectedImage}`
  const expected = checkNumbers(numbers, mediaNumbers)
  return expected === undefined ? undefined : `${expected}; and an optional "image"`
}

const imageSchemas = Object.entries(imageRules).map(([kind, numbers]) =>
  closed({ kind: { const: kind }, ...numberSchemas(numbers) }, ['kind', ...numbers.required]),
)

const mediaTokens: Trait = {
  check: checkMediaTokens,
  schema: closed({ image: { anyOf: imageSchemas }, ...numberSchemas(mediaNumbers) }),
}

const traitTable: Readonly<Record<keyof ModelTraits, Trait>> = {
  reads: someOf(modalities),
  thinking: oneOf(thinkingModes),
  hidesThinking: flag,
  tokensPerSecondMax: speed,
  pictureTokens: speed,
  stopsThinking: flag,
  efforts: someOf(efforts, 0),
  budgetMin: budget,
  budgetMax: budget,
  sampling: flag,
  samplingWithoutThinking: flag,
  penalties: flag,
  forcedTool: flag,
  schema: flag,
  schemaWithTools: flag,
  serverToolsWithFunctions: flag,
  richResults: flag,
  cacheMarks: flag,
  searches: flag,
  system: flag,
  prefill: flag,
  mediaTokens,
}

/** The JSON Schema of the traits of a model. */
export const traitsSchema = closed(
  Object.fromEntries(Object.entries(traitTable).map(([name, { schema }]) => [name, schema])),
)

/** `fail` throws an error that names the file and the model. */
export function parseTraits(value: unknown, fail: (problem: string) => never): ModelTraits {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail('"traits" must be an object')
  for (const [name, trait] of Object.entries(value)) {
    if (!Object.hasOwn(traitTable, name)) fail(`"traits" has an unknown field "${name}"`)
    const expected = traitTable[name as keyof ModelTraits].check(trait)
    if (expected !== undefined) fail(`"traits.${name}" must be ${expected}`)
  }
  const traits = value as ModelTraits
  if ((traits.budgetMin ?? 0) > (traits.budgetMax ?? Infinity))
    fail('"traits.budgetMin" must not be more than "traits.budgetMax"')
  return traits
}
