// What is wrong with a request to the management interface, as a code with values and as an English sentence. The error has
// both: the console shows the code in the language of its viewer.

import type { Hint } from '../../base/errors.ts'
import type { SiteRole } from '../actor.ts'
import { settersOf } from '../actor.ts'
import type { Must } from './issue-text.ts'
import { musts, mustText } from './issue-text.ts'

/** The parts of a request that have schemas, and what their members are called. */
const partNames = { path: 'path segment', query: 'query parameter', body: 'field' } as const
export type RequestPart = keyof typeof partNames

/** A field, or with an empty name the part as a whole. */
export interface Place {
  readonly part: RequestPart
  readonly name: string
}

const subject = ({ part, name }: Place): string =>
  name === '' ? `The ${part === 'body' ? 'body' : 'query'}` : `The ${partNames[part]} "${name}"`
const unknown = (place: Place): string => `${subject(place)} is not known.`
const missing = ({ part, name }: Place): string => `The required ${partNames[part]} "${name}" is missing.`

/** The sentences of codes that are not about the value of a field. */
const sentences = {
  missing: (at: Place) => missing(at),
  missing_one_of: (at: Place & { readonly allowed: string }) => `${missing(at)} It must be one of: ${at.allowed}.`,
  missing_type: (at: Place & { readonly type: string }) => `${missing(at)} It must be of type ${at.type}.`,
  unknown: (at: Place) => unknown(at),
  unknown_near: (at: Place & { readonly near: string }) => `${unknown(at)} Did you mean "${at.near}"?`,
  unknown_allowed: (at: Place & { readonly allowed: string }) => `${unknown(at)} Allowed: ${at.allowed}.`,
  unknown_none: (at: Place) => `${unknown(at)} This path takes no query parameters.`,
  segment_one_of: ({ name, allowed }: { readonly name: string; readonly allowed: string }) =>
    `The path segment "${name}" must be one of: ${allowed}.`,
  twice: (at: Place) => `${subject(at)} is given more than once.`,
  only_for: ({ role, name }: { readonly role: SiteRole | 'operator'; readonly name: string }) =>
    `Only ${settersOf(role)} may set "${name}".`,
  levels_max: ({ max }: { readonly max: number }) => `The body may have at most ${max} levels.`,
  values_max: ({ max }: { readonly max: number }) => `The body may have at most ${max} values.`,
} as const

type SentenceCode = keyof typeof sentences

/** Every code that an error can have. */
export const hintCodes: readonly string[] = [...Object.keys(sentences), ...Object.keys(musts)]

/** Extras of a refusal: the sentence, and the same as data. */
export interface Hinted {
  readonly hint: string
  readonly hintData: Hint
}

export function hintOf<Code extends SentenceCode>(code: Code, values: Parameters<(typeof sentences)[Code]>[0]): Hinted {
  const write = sentences[code] as (of: typeof values) => string
  return { hint: write(values), hintData: { code, values: { ...values } } }
}

/** A field, or the part as a whole, has a value that is not allowed. */
export const hintOfValue = (place: Place, must: Must): Hinted => ({
  hint: `${subject(place)} is not valid: ${mustText(must)}.`,
  hintData: { code: must[0], values: { ...place, ...must[1] } },
})
