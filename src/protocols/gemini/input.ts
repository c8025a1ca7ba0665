// Measures the input of a request, for the upper bound and the estimate of its tokens, and finds the provider's
// services that it asks for.

import { hasOnly, MediaList } from '../media/media-list.ts'
import type { CallMedia } from '../media/media-tokens.ts'
import type { InputSize } from '../request/input-size.ts'
import { MEDIA_PART_BYTES } from '../request/input-size.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { CheckedFields } from '../request/services.ts'
import { findPaidFields, mergeServices, runsAtProvider } from '../request/services.ts'
import { toCamelCase, toCamelCaseFields } from './field-names.ts'
import { configFields, requestFields } from './fields.ts'

/** Google documents no limit on the searches in one answer and bills each of them, so the hold assumes this many. */
const SEARCHES_PER_CALL_MAX = 10

/** Fields of a part that hold nothing but text for the model. */
const TEXT_PART_FIELDS = new Set([
  'text',
  'thought',
  'thoughtSignature',
  'functionCall',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'partMetadata',
  'speechMetadata',
])

/** Where Google accepts a list, it also accepts a single value. */
export const asList = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]

/** The top-level fields of `json` are in camelCase; `body` is the request as it was sent. */
export function measureInput(json: Json, bodyBytes: number, body: Json = json): InputSize {
  const tools = asList(json.tools).flatMap(listToolNames)
  const config = isObject(json.generationConfig) ? toCamelCaseFields(json.generationConfig) : {}
  const fields = [...findPaidFields(json, REQUEST_FIELDS), ...findPaidFields(config, CONFIG_FIELDS)]
  const services = mergeServices([
    ...tools.filter(name => !SEARCH_TOOLS.has(name) && !CLIENT_TOOLS.has(name)).map(name => ({ name })),
    ...fields,
  ])
  const runsServerTools = tools.some(name => !CLIENT_TOOLS.has(name))
  const list = new MediaList()
  const mediaCount = { media: 0, inline: 0, list }
  if (runsServerTools || json.cachedContent || json.continuationToken) list.drop()
  for (const content of [...asList(json.contents), json.systemInstruction]) {
    if (isObject(content)) for (const part of asList(content.parts)) addPart(part, mediaCount)
  }
  const listed = list.end(body, bodyBytes)
  return {
    ...(listed && { media: listed }),
    textOnly: !runsServerTools && mediaCount.media === 0 && !json.cachedContent && !json.continuationToken,
    searchesMax: tools.some(name => SEARCH_TOOLS.has(name)) ? SEARCHES_PER_CALL_MAX : 0,
    inputBytes: bodyBytes + mediaCount.media * MEDIA_PART_BYTES - mediaCount.inline,
    ...(services.length > 0 && { services }),
    ...((runsServerTools || fields.some(runsAtProvider)) && { serverTools: true }),
  }
}

interface MediaCount {
  media: number
  inline: number
  readonly list: MediaList
}

/** Fields of a part beside its medium: they say how it is read. */
const MEDIA_OPTIONS: ReadonlySet<string> = new Set(['videoMetadata', 'mediaResolution'])

function addPart(part: unknown, mediaCount: MediaCount): void {
  if (!isObject(part)) return
  const { list } = mediaCount
  for (const name in part) {
    const field = toCamelCase(name)
    if (field === 'functionResponse') addResponse(part[name], mediaCount)
    else if (!TEXT_PART_FIELDS.has(field)) addMedia(part[name], mediaCount)
    if (field === 'inlineData') addInline(list, part[name], part.videoMetadata ?? part.video_metadata)
    else if (field !== 'functionResponse' && !TEXT_PART_FIELDS.has(field) && !MEDIA_OPTIONS.has(field)) list.drop()
  }
}

const INLINE_FIELDS: ReadonlySet<string> = new Set(['mimeType', 'mime_type', 'data', 'displayName', 'display_name'])

function addInline(list: MediaList, inline: unknown, videoMetadata: unknown): void {
  if (!isObject(inline) || !hasOnly(inline, INLINE_FIELDS)) return list.drop()
  const { mimeType, mime_type: mime = mimeType } = inline
  const kind = typeof mime === 'string' && (mimeType ?? mime) === mime ? kindOf(mime) : undefined
  if (kind === undefined) return list.drop()
  const fps = isObject(videoMetadata) ? videoMetadata.fps : undefined
  const frames = (fps ?? undefined) === undefined ? {} : { framesPerSecond: fps }
  list.add({ kind, holder: inline, field: 'data', mime, ...frames, readsUrlSafe: true })
}

function kindOf(mime: string): CallMedia['kind'] | undefined {
  const [, family] = /^(image|audio|video)\//i.exec(mime) ?? []
  if (family !== undefined) return family.toLowerCase() as CallMedia['kind']
  return /^application\/pdf$/i.test(mime) ? 'file' : undefined
}

/** The response of a function is text; its `parts` may hold media. */
function addResponse(response: unknown, mediaCount: MediaCount): void {
  if (isObject(response)) for (const part of asList(response.parts)) addPart(part, mediaCount)
}

function addMedia(media: unknown, mediaCount: MediaCount): void {
  mediaCount.media++
  if (isObject(media) && typeof media.data === 'string') mediaCount.inline += media.data.length
}

/** Tools that the caller runs. The provider runs all other tools, and adds their results to the model's input. */
export const CLIENT_TOOLS: ReadonlySet<string> = new Set(['functionDeclarations', 'computerUse'])

/** Web search tools, which are billed per search. */
const SEARCH_TOOLS: ReadonlySet<string> = new Set(['googleSearch', 'googleSearchRetrieval'])

const REQUEST_FIELDS: CheckedFields = { ownChecks: ['serviceTier'], known: new Set(Object.keys(requestFields)) }
const CONFIG_FIELDS: CheckedFields = { ownChecks: [], known: new Set(Object.keys(configFields)) }

/** One object of `tools` may hold several tools, each under its own field. */
function listToolNames(tool: unknown): readonly string[] {
  if (!isObject(tool)) return ['tools']
  const fields = toCamelCaseFields(tool)
  return Object.keys(fields)
    .filter(name => (fields[name] ?? undefined) !== undefined)
    .map(name => name.slice(0, 64))
}
