// Parses the timeouts of provider files and channels, which are in whole seconds.

import { bounds } from '../base/bounds.ts'

export interface Timeouts {
  /** To open the connection. */
  readonly connectMs: number
  /** For the TLS handshake. */
  readonly tlsMs: number
  /** For streams: until the first content. */
  readonly firstContentMs: number
  /** For streams, after the first content: between two chunks of any kind. */
  readonly betweenChunksMs: number
  /** For the whole call with all attempts. An answer without a stream may take all of it. */
  readonly totalMs: number
}

export const defaultTimeouts: Timeouts = {
  connectMs: bounds.connectMsMax,
  tlsMs: bounds.tlsMsMax,
  firstContentMs: bounds.firstContentMsMax,
  betweenChunksMs: bounds.betweenChunksMsMax,
  totalMs: bounds.callMsMax,
}

const HANDSHAKE_SECONDS_MAX = 60
const CALL_SECONDS_MAX = bounds.longCallMsMax / 1_000

interface TimeoutField {
  readonly name: string
  readonly target: keyof Timeouts
  readonly secondsMax: number
}

const connectionFields: readonly TimeoutField[] = [
  { name: 'connectSeconds', target: 'connectMs', secondsMax: HANDSHAKE_SECONDS_MAX },
  { name: 'tlsSeconds', target: 'tlsMs', secondsMax: HANDSHAKE_SECONDS_MAX },
]
const answerFields: readonly TimeoutField[] = [
  { name: 'firstContentSeconds', target: 'firstContentMs', secondsMax: CALL_SECONDS_MAX },
  { name: 'betweenChunksSeconds', target: 'betweenChunksMs', secondsMax: CALL_SECONDS_MAX },
  { name: 'totalSeconds', target: 'totalMs', secondsMax: CALL_SECONDS_MAX },
]

const secondsSchemas = (fields: readonly TimeoutField[]): Readonly<Record<string, unknown>> => ({
  type: 'object',
  properties: Object.fromEntries(
    fields.map(({ name, secondsMax }) => [name, { type: 'integer', minimum: 1, maximum: secondsMax }]),
  ),
  additionalProperties: false,
})

/** The JSON Schemas of the timeouts of a provider and of a model. */
export const timeoutSchemas = {
  provider: secondsSchemas([...connectionFields, ...answerFields]),
  model: secondsSchemas(answerFields),
}

type Fail = (problem: string) => never

export interface TimeoutParts {
  /** The values of fields that are not set. */
  readonly defaults: Timeouts
  /** A model cannot set the timeouts of the connection, which models share. */
  readonly of: 'provider' | 'model'
  fail(problem: string): never
}

export function parseTimeouts(value: unknown, { defaults, of, fail }: TimeoutParts): Timeouts {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail('"times" must be an object')
  const times = { ...defaults }
  for (const [name, seconds] of Object.entries(value)) {
    const field = findField(name, of, fail)
    times[field.target] = parseSeconds(field, seconds, fail)
  }
  for (const { name, target } of answerFields) {
    if (times[target] > times.totalMs) fail(`"times.${name}" is longer than the whole call: raise "times.totalSeconds"`)
  }
  return times
}

function findField(name: string, of: TimeoutParts['of'], fail: Fail): TimeoutField {
  const hasName = (field: TimeoutField): boolean => field.name === name
  const field = answerFields.find(hasName) ?? connectionFields.find(hasName)
  if (field === undefined) return fail(`"times" has an unknown field "${name}"`)
  if (of === 'model' && !answerFields.includes(field))
    return fail(`"times.${name}" can be set for a provider only, not for a model`)
  return field
}

/** The timeouts that a channel sets. The others are those of its provider and model. */
export type ChannelTimeouts = Partial<Timeouts>

export function parseChannelTimeouts(value: unknown, fail: Fail): ChannelTimeouts {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail('"times" must be an object')
  const times: { -readonly [Name in keyof Timeouts]?: number } = {}
  for (const [name, seconds] of Object.entries(value)) {
    const field = findField(name, 'provider', fail)
    times[field.target] = parseSeconds(field, seconds, fail)
  }
  return times
}

function parseSeconds({ name, secondsMax }: TimeoutField, seconds: unknown, fail: Fail): number {
  const isValid = Number.isSafeInteger(seconds) && (seconds as number) >= 1 && (seconds as number) <= secondsMax
  return isValid
    ? (seconds as number) * 1_000
    : fail(`"times.${name}" must be a whole number of seconds from 1 to ${secondsMax}`)
}

/** The timeouts of a model's calls. */
export const timeoutsOf = (provider: { readonly times: Timeouts }, model: { readonly times?: Timeouts }): Timeouts =>
  model.times ?? provider.times
