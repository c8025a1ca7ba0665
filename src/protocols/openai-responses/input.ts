// Estimates the input of a request, and finds the paid services that it uses.

import { jsonText } from '../../base/text/json-text.ts'
import { hasOnly, MediaList } from '../media/media-list.ts'
import { mimeOfFile } from '../openai-chat/input.ts'
import type { InputSize } from '../request/input-size.ts'
import { inlineBytes, MEDIA_PART_BYTES } from '../request/input-size.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { CheckedFields, Service } from '../request/services.ts'
import {
  findPaidFields,
  findReasoningServices,
  isWebSearch,
  listTools,
  mergeServices,
  removeVersionDate,
  runsAtProvider,
  usesMaxOf,
} from '../request/services.ts'
import { arkFields, openaiFields } from './fields.ts'

/** Fields that add stored content to the input. */
export const storedFields = ['previous_response_id', 'conversation', 'prompt', 'session'] as const

/** Tools that run at the caller, and add nothing to the input. All other tools may add something. */
const CALLER_TOOLS: ReadonlySet<unknown> = new Set([
  'function',
  'custom',
  'local_shell',
  'apply_patch',
  'namespace',
  'computer',
  'computer_use_preview',
])

const REQUEST_FIELDS: CheckedFields = {
  ownChecks: ['service_tier', 'background'],
  known: new Set(Object.keys({ ...openaiFields, ...arkFields })),
}

/** The provider bills a container by sessions of twenty minutes and by its gigabytes of memory. */
const SESSION_SECONDS = 1_200
const GIGABYTES: Readonly<Record<string, number>> = { '1g': 1, '4g': 4, '16g': 16, '64g': 64 }

const TEXT_PARTS: ReadonlySet<unknown> = new Set(['input_text', 'output_text', 'text', 'refusal', 'summary_text'])

/** Items whose whole content is in the request. Other items may refer to stored content. */
const TEXT_ITEMS: ReadonlySet<unknown> = new Set([
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'local_shell_call',
  'local_shell_call_output',
  'apply_patch_call',
  'apply_patch_call_output',
])

/** Items about earlier turns, which add no tools. `additional_tools` and `tool_search_output` do add tools. */
const PAST_ITEMS: ReadonlySet<unknown> = new Set(
  (
    'mcp_list_tools mcp_call mcp_approval_request mcp_approval_response tool_search_call reasoning function_call ' +
    'function_call_output custom_tool_call custom_tool_call_output item_reference file_search_call web_search_call ' +
    'code_interpreter_call image_generation_call computer_call computer_call_output local_shell_call ' +
    'local_shell_call_output shell_call shell_call_output apply_patch_call apply_patch_call_output compaction ' +
    'program program_output'
  ).split(' '),
)

export function measureInput(json: Json, bodyBytes: number): InputSize {
  const items = Array.isArray(json.input) ? (json.input as readonly unknown[]) : []
  const tools = [json, ...items].flatMap(toolsOf).filter(tool => !isCallerTool(tool))
  const usesMax = usesMaxOf(json.max_tool_calls)
  const toolServices = tools.flatMap(tool => toolService(tool, usesMax))
  const fieldServices = [
    ...storedServices(json),
    ...findReasoningServices(json),
    ...findPaidFields(json, REQUEST_FIELDS),
  ]
  const services = mergeServices([...toolServices, ...fieldServices])
  const addsStoredInput = [...storedFields, 'context_management'].some(
    field => (json[field] ?? undefined) !== undefined,
  )
  const media = new MediaList()
  const estimate = { textOnly: tools.length === 0 && !addsStoredInput, inputBytes: bodyBytes, media }
  if (!estimate.textOnly) media.drop()
  for (const item of items) addItem(estimate, item)
  const listed = media.end(json, bodyBytes)
  return {
    textOnly: estimate.textOnly,
    inputBytes: estimate.inputBytes,
    ...(listed && { media: listed }),
    searchesMax: tools.some(isSearch) ? usesMax : 0,
    ...(services.length > 0 && { services }),
    ...((tools.length > 0 || fieldServices.some(runsAtProvider)) && { serverTools: true }),
  }
}

/**
 * Returns the tools of a request, or the tools that an item adds. Items of unknown types may add tools. Items about
 * earlier turns do not: `mcp_list_tools`, for example, only lists the tools of a server.
 */
function toolsOf(holder: unknown): readonly Json[] {
  return isObject(holder) && !PAST_ITEMS.has(holder.type) ? listTools(holder.tools) : []
}

const nameOf = ({ type }: Json): string => (typeof type === 'string' ? removeVersionDate(type) : 'tools')

const isSearch = (tool: Json): boolean => isWebSearch(nameOf(tool))

/** A stored prompt may have tools that the request does not show. */
const storedServices = ({ prompt }: Json): readonly Service[] =>
  (prompt ?? undefined) === undefined ? [] : [{ name: 'prompt', param: 'prompt' }]

function toolService(tool: Json, usesMax: number): readonly Service[] {
  const name = nameOf(tool)
  // Some models have another price for `web_search_preview`.
  if (isWebSearch(name)) return name === 'web_search' ? [] : [{ name }]
  if (name === 'file_search') return [{ name, unit: 'fileSearches', usesMax }]
  if (name === 'image_generation') return [{ name, unit: 'images', usesMax }]
  if (name === 'code_interpreter') return [containerService(name, tool.container)]
  return [name === 'shell' ? containerService(name, tool.environment) : { name }]
}

/** Only the size of a new container is known. The size of an existing container that the request names is not. */
function containerService(name: string, container: unknown): Service {
  const { type, memory_limit: memory } = objectOf(container)
  const gigabytes = GIGABYTES[typeof memory === 'string' ? memory : '1g']
  const isNew = type === 'auto' || type === 'container_auto'
  if (!isNew || gigabytes === undefined) return { name: `${name}:container` }
  return { name, unit: 'codeSessions', unitsPerUse: gigabytes, usesMax: 1, sessionSeconds: SESSION_SECONDS }
}

const objectOf = (value: unknown): Json => (isObject(value) ? value : {})

/** A shell runs at the caller only if its environment is `local`. */
function isCallerTool({ type, environment }: Json): boolean {
  return CALLER_TOOLS.has(type) || (type === 'shell' && objectOf(environment).type === 'local')
}

interface Estimate {
  textOnly: boolean
  inputBytes: number
  readonly media: MediaList
}

function addItem(estimate: Estimate, item: unknown): void {
  const { media } = estimate
  if (!isObject(item)) return
  if (!TEXT_ITEMS.has(item.type ?? 'message')) {
    // Encrypted content has about as many tokens as its size suggests, but the size is no upper limit.
    estimate.textOnly = false
    media.drop()
  }
  const parts = item.content ?? item.output
  if (isObject(parts)) media.drop()
  if (!Array.isArray(parts)) return
  for (const part of parts as readonly unknown[]) {
    if (isObject(part) && (TEXT_PARTS.has(part.type) || part.type === 'reasoning_text')) continue
    estimate.textOnly = false
    addPart(media, part)
    estimate.inputBytes += MEDIA_PART_BYTES - inlineBytes(part)
  }
}

const PART_KINDS = { input_image: 'image', input_video: 'video', input_audio: 'audio', input_file: 'file' } as const
/** Fields of a part that name its medium, of which one may occur. */
const SOURCE_FIELDS = [
  'image_url',
  'video_url',
  'audio_url',
  'file_data',
  'file_url',
  'file_id',
  'input_audio',
] as const
const PART_FIELDS: ReadonlySet<string> = new Set([
  ...SOURCE_FIELDS,
  'type',
  'detail',
  'filename',
  'fps',
  'image_pixel_limit',
  'prompt_cache_breakpoint',
])
const AUDIO_FIELDS: ReadonlySet<string> = new Set(['data', 'format'])

function addPart(media: MediaList, part: unknown): void {
  if (!isObject(part) || !hasOnly(part, PART_FIELDS)) return media.drop()
  const { type, detail, fps, filename, input_audio: audio } = part
  const kind = Object.hasOwn(PART_KINDS, jsonText(type)) ? PART_KINDS[type as keyof typeof PART_KINDS] : undefined
  const [field, ...more] = SOURCE_FIELDS.filter(name => (part[name] ?? undefined) !== undefined)
  if (kind === undefined || field === undefined || more.length > 0) return media.drop()
  if (field === 'file_id') return media.addUnseen(kind, { detail })
  if (field !== 'input_audio') {
    const frames = (fps ?? undefined) === undefined ? {} : { framesPerSecond: fps }
    return media.add({ kind, holder: part, field, detail, ...frames, ...mimeOfFile(filename) })
  }
  if (!isObject(audio) || !hasOnly(audio, AUDIO_FIELDS)) return media.drop()
  media.add({ kind, holder: audio, field: 'data' })
}
