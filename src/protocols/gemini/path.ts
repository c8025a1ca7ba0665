// Google puts the model and the method into the path: `/v1beta/models/<provider>/<model>:<verb>`, which its clients
// write with and without `models/`. A model's name may hold colons, so the last one is the verb's.

import { Refusal } from '../../base/errors.ts'

export const verbs = [
  'generateContent',
  'streamGenerateContent',
  'countTokens',
  'embedContent',
  'batchEmbedContents',
] as const

export type Verb = (typeof verbs)[number]

export interface GeminiPath {
  readonly version: string
  /** As the caller named it: `<provider>/<model>`. */
  readonly model: string
  readonly verb: Verb
}

const HEAD = /^\/(v1(?:beta|alpha)?)\//
const COLLECTION = /^(?:models|tunedModels)\//
/** What is still encoded was encoded twice; what is more than a path would be read as such further on. */
const STRANGE = /%2f|[?&#\\\p{Cc}]/iu
const PATH_CHARS_MAX = 1_024

/** `path` is percent-decoded once. Undefined for what is no call of this dialect. Throws a Refusal. */
export function readPath(path: string): GeminiPath | undefined {
  const head = HEAD.exec(path)
  const colon = path.lastIndexOf(':')
  const verb = verbs.find(name => name === path.slice(colon + 1))
  if (head === null || colon < 0 || verb === undefined) return undefined
  return { version: head[1]!, model: modelName(path.slice(head[0].length, colon)), verb }
}

/** Without the collection that it stands in. Throws a Refusal for what no model is called. */
function modelName(named: string): string {
  const name = named.replace(COLLECTION, '')
  const isOdd = name.length > PATH_CHARS_MAX || STRANGE.test(name)
  if (isOdd || name.split('/').some(segment => segment === '' || segment === '.' || segment.includes('..'))) {
    throw new Refusal('model_malformed', 'in the path', { param: 'model' })
  }
  return name
}
