// How long an upstream may take for each step of an answer, as provider files say it, in whole seconds.

import { bounds } from '../base/bounds.ts'

export interface Times {
  /** Until it is connected. */
  readonly connectMs: number
  /** For the handshake after that. */
  readonly tlsMs: number
  /** Of a stream: until there is something that its caller waits for. */
  readonly firstContentMs: number
  /** Of a stream from then on: between two pieces of it, whatever is in them. */
  readonly betweenChunksMs: number
  /** For a call in all, with every attempt; a plain answer may take all of it. */
  readonly totalMs: number
}

export const defaultTimes: Times = {
  connectMs: bounds.connectMsMax,
  tlsMs: bounds.tlsMsMax,
  firstContentMs: bounds.firstContentMsMax,
  betweenChunksMs: bounds.betweenChunksMsMax,
  totalMs: bounds.callMsMax,
}

const HANDSHAKE_SECONDS_MAX = 60
const CALL_SECONDS_MAX = bounds.longCallMsMax / 1_000

interface Field {
  readonly name: string
  readonly to: keyof Times
  readonly secondsMax: number
}

const ofConnection: readonly Field[] = [
  { name: 'connectSeconds', to: 'connectMs', secondsMax: HANDSHAKE_SECONDS_MAX },
  { name: 'tlsSeconds', to: 'tlsMs', secondsMax: HANDSHAKE_SECONDS_MAX },
]
const ofAnswer: readonly Field[] = [
  { name: 'firstContentSeconds', to: 'firstContentMs', secondsMax: CALL_SECONDS_MAX },
  { name: 'betweenChunksSeconds', to: 'betweenChunksMs', secondsMax: CALL_SECONDS_MAX },
  { name: 'totalSeconds', to: 'totalMs', secondsMax: CALL_SECONDS_MAX },
]

type Fail = (problem: string) => never

export interface TimesParts {
  /** What holds where nothing is said. */
  readonly otherwise: Times
  /** A connection is to a provider, whichever model it is for. */
  readonly of: 'provider' | 'model'
  fail(problem: string): never
}

export function parseTimes(value: unknown, { otherwise, of, fail }: TimesParts): Times {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail('"times" must be an object')
  const times = { ...otherwise }
  for (const [name, seconds] of Object.entries(value)) {
    const field = fieldNamed(name, of, fail)
    times[field.to] = msOf(field, seconds, fail)
  }
  for (const { name, to } of ofAnswer) {
    if (times[to] > times.totalMs) fail(`"times.${name}" is longer than a call may take: raise "times.totalSeconds"`)
  }
  return times
}

function fieldNamed(name: string, of: TimesParts['of'], fail: Fail): Field {
  const isNamed = (field: Field): boolean => field.name === name
  const field = ofAnswer.find(isNamed) ?? ofConnection.find(isNamed)
  if (field === undefined) return fail(`"times" has an unknown field "${name}"`)
  if (of === 'model' && !ofAnswer.includes(field)) return fail(`"times.${name}" may stand on the provider only`)
  return field
}

/** What a channel may be told of it besides; of the rest, what its provider and its model say. */
export type ChannelTimes = Partial<Times>

export function parseChannelTimes(value: unknown, fail: Fail): ChannelTimes {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail('"times" must be an object')
  const times: { -readonly [Name in keyof Times]?: number } = {}
  for (const [name, seconds] of Object.entries(value)) {
    const field = fieldNamed(name, 'provider', fail)
    times[field.to] = msOf(field, seconds, fail)
  }
  return times
}

function msOf({ name, secondsMax }: Field, seconds: unknown, fail: Fail): number {
  const isSpan = Number.isSafeInteger(seconds) && (seconds as number) >= 1 && (seconds as number) <= secondsMax
  return isSpan ? (seconds as number) * 1_000 : fail(`"times.${name}" must be whole seconds from 1 to ${secondsMax}`)
}

/** For calls of this model. */
export const timesOf = (provider: { readonly times: Times }, model: { readonly times?: Times }): Times =>
  model.times ?? provider.times
