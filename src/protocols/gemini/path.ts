// Google's paths hold the model and the method: `/v1beta/models/<provider>/<model>:<method>`; clients may leave out
// `models/`. A model name may contain colons, so the method follows the last colon.

import { Refusal } from '../../base/errors.ts'

export const geminiMethods = [
  'generateContent',
  'streamGenerateContent',
  'countTokens',
  'embedContent',
  'batchEmbedContents',
] as const

export type GeminiMethod = (typeof geminiMethods)[number]

export interface GeminiPath {
  readonly version: string
  /** As the caller named it: `<provider>/<model>`. */
  readonly model: string
  readonly method: GeminiMethod
}

const VERSION_PREFIX = /^\/(v1(?:beta|alpha)?)\//
const COLLECTION = /^(?:models|tunedModels)\//
/** A slash that is still encoded was encoded twice. The other characters could change the URL of the upstream request. */
const UNSAFE = /%2f|[?&#\\\p{Cc}]/iu
const PATH_CHARS_MAX = 1_024

/**
 * Reads a path that is percent-decoded once. Undefined for a path that is no call of this dialect. Throws a Refusal for
 * an unsafe model name.
 */
export function readPath(path: string): GeminiPath | undefined {
  const prefix = VERSION_PREFIX.exec(path)
  const colon = path.lastIndexOf(':')
  const verb = geminiMethods.find(name => name === path.slice(colon + 1))
  if (prefix === null || colon < 0 || verb === undefined) return undefined
  return { version: prefix[1]!, model: modelName(path.slice(prefix[0].length, colon)), method: verb }
}

/** The model name without `models/` or `tunedModels/` before it. */
function modelName(path: string): string {
  const name = path.replace(COLLECTION, '')
  const isUnsafe = name.length > PATH_CHARS_MAX || UNSAFE.test(name)
  if (isUnsafe || name.split('/').some(segment => segment === '' || segment === '.' || segment.includes('..'))) {
    throw new Refusal('model_malformed', 'in the path', { param: 'model' })
  }
  return name
}
