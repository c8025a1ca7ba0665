// Reads what the fake upstream needs from a request of the Gemini dialect, with field names in camelCase or snake_case.

import type { Json } from '../body-fields.ts'
import {
  mediaOfBase64,
  mediaOfUrl,
  numberOf,
  objectOf,
  pathOf,
  queryOf,
  recordOf,
  recordsOf,
  stringOf,
  stringsOf,
} from '../body-fields.ts'
import type { Media, RequestSummary } from '../dialect.ts'
import { countWords } from '../dialect.ts'
import { isIssuedStateBytes } from '../reasoning-state.ts'
import type { ReceivedRequest } from '../request.ts'

/** The issuer in reasoning state of this dialect. */
export const stateOwner = 'gemini'

export const toCamel = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Reads a field in camelCase, or in snake_case as in Google's own samples. */
export function field(object: Json, name: string): unknown {
  return object[name] ?? object[name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)]
}

export interface GeminiMethodPath {
  readonly model: string
  readonly verb: string
}

const MODEL_PATH = /\/(?:models|tunedModels)\/(.+):([A-Za-z]+)$/
/** The path of some SDKs for a model name with a slash. */
const SHORT_MODEL_PATH = /\/v1(?:beta|alpha)?\/(.+):([A-Za-z]+)$/

/** Reads model and method from the path; a model name may contain colons and slashes. */
export function readMethodPath(request: ReceivedRequest): GeminiMethodPath | undefined {
  const path = pathOf(request)
  const [, model, verb] = MODEL_PATH.exec(path) ?? SHORT_MODEL_PATH.exec(path) ?? []
  if (model === undefined || verb === undefined) return undefined
  try {
    return { model: decodeURIComponent(model), verb }
  } catch {
    return { model, verb }
  }
}

/** Without `alt=sse` a stream is one JSON list. */
export const asksForEvents = (request: ReceivedRequest): boolean => queryOf(request).get('alt') === 'sse'

export const partsOf = (content: unknown): readonly Json[] => recordsOf(recordOf(content).parts)

export function readGeminiRequest(request: ReceivedRequest): RequestSummary {
  const body = objectOf(request)
  const contents = recordsOf(body.contents)
  const config = recordOf(field(body, 'generationConfig'))
  const [last, spoken] = [contents.at(-1), contents.findLast(isSpokenByUser)]
  const calling = recordOf(field(recordOf(field(body, 'toolConfig')), 'functionCallingConfig'))
  const { model = 'echo', verb } = readMethodPath(request) ?? {}
  return {
    model,
    stream: verb === 'streamGenerateContent',
    wantsUsage: true,
    promptWords: countContentWords([...contents, recordOf(field(body, 'systemInstruction'))]),
    outputMax: numberOf(field(config, 'maxOutputTokens')),
    lastUserText: partsOf(spoken)
      .map(part => stringOf(part.text))
      .join(''),
    lastIsUser: last !== undefined && isSpokenByUser(last),
    choices: numberOf(field(config, 'candidateCount')) ?? 1,
    tools: calling.mode === 'NONE' ? [] : listToolNames(body.tools, calling),
    mustCall: calling.mode === 'ANY',
    parallel: true,
    stopSequences: stringsOf(field(config, 'stopSequences')),
    wantsJson: field(config, 'responseMimeType') === 'application/json',
    media: contents.flatMap(content => readMedia(partsOf(content))),
    thinking: readThinking(recordOf(field(config, 'thinkingConfig'))),
    stateKept: findStateKept(contents, request.ordinal),
  }
}

const readThinking = (config: Json): RequestSummary['thinking'] => ({
  off: field(config, 'thinkingBudget') === 0,
  text: field(config, 'includeThoughts') === true,
  state: true,
})

export const isOfUser = (content: Json): boolean => content.role === 'user' || content.role === undefined

/** Whether a content is a message of the user, and not only function responses. */
export const isSpokenByUser = (content: Json): boolean =>
  isOfUser(content) && partsOf(content).some(part => field(part, 'functionResponse') === undefined)

export function countContentWords(contents: readonly Json[]): number {
  return contents.flatMap(partsOf).reduce((sum, part) => {
    const given = field(part, 'functionResponse')
    return sum + countWords(stringOf(part.text)) + (given === undefined ? 0 : countWords(JSON.stringify(given)))
  }, 0)
}

function listToolNames(tools: unknown, calling: Json): readonly string[] {
  const declared = recordsOf(tools).flatMap(tool => recordsOf(field(tool, 'functionDeclarations')))
  const names = declared.flatMap(tool => stringOf(tool.name) || [])
  const allowed = new Set(stringsOf(field(calling, 'allowedFunctionNames')))
  return allowed.size > 0 ? names.filter(name => allowed.has(name)) : names
}

function readMedia(parts: readonly Json[]): readonly Media[] {
  return parts.flatMap(part => {
    const [inline, file] = [field(part, 'inlineData'), field(part, 'fileData')].map(recordOf)
    const inside = readMedia(recordsOf(recordOf(field(part, 'functionResponse')).parts))
    if (field(part, 'inlineData') !== undefined) {
      return [mediaOfBase64(stringOf(field(inline!, 'mimeType')), inline!.data), ...inside]
    }
    if (field(part, 'fileData') === undefined) return inside
    return [mediaOfUrl(stringOf(field(file!, 'mimeType')) || 'file', field(file!, 'fileUri')), ...inside]
  })
}

export const signatureOf = (part: Json): unknown => field(part, 'thoughtSignature')

/** Whether the first of the calls that were just answered still has its signature. */
function findStateKept(contents: readonly Json[], ordinal: number): boolean | undefined {
  const answered = partsOf(contents.at(-1)).some(part => field(part, 'functionResponse') !== undefined)
  if (!answered) return undefined
  const asked = contents.findLastIndex((content, at) => content.role !== 'model' && at < contents.length - 1)
  const first = contents
    .slice(asked + 1)
    .flatMap(partsOf)
    .find(part => field(part, 'functionCall') !== undefined)
  return first !== undefined && isIssuedStateBytes(signatureOf(first), { by: stateOwner, ordinal })
}
