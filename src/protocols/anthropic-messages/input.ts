// What a request for a message gives the model to read, as far as a bound and an estimate of it need to know.

import { Refusal } from '../../base/errors.ts'
import { jsonText } from '../../base/text/json-text.ts'
import { hasOnly, MediaList } from '../media/media-list.ts'
import { describeField } from '../request/checks.ts'
import type { InputSize } from '../request/input-size.ts'
import { inlineBytes, MEDIA_PART_BYTES } from '../request/input-size.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { CheckedFields, Service } from '../request/services.ts'
import {
  findPaidFields,
  isWebSearch,
  listTools,
  mergeServices,
  removeVersionDate,
  runsAtProvider,
  usesMaxOf,
} from '../request/services.ts'
import { requestFields } from './fields.ts'

/** The provider reads what is not in the request: servers of tools, its own machine, a conversation that it keeps. */
export const externalInputFields = ['mcp_servers', 'container', 'thread', 'tools'] as const

/** Blocks whose bytes bound their tokens; what is encrypted is longer than what it hides. */
const TEXT_BLOCKS: readonly unknown[] = [
  'text',
  'thinking',
  'redacted_thinking',
  'tool_use',
  'server_tool_use',
  'search_result',
  'compaction',
  'mcp_tool_use',
  'mcp_tool_listing',
  'tool_reference',
  'fallback',
]

/** Blocks that hold blocks. */
const HOLDING_BLOCKS: readonly unknown[] = ['tool_result', 'mcp_tool_result']
const HOLDING_DEPTH_MAX = 4

/** Tools that the caller runs, though the provider has words of its own for them. */
const CALLERS_TOOLS: ReadonlySet<string> = new Set([
  'bash',
  'text_editor',
  'computer',
  'memory',
  'browser_toolset',
  'computer_toolset',
])

const READ: CheckedFields = {
  ownChecks: [...externalInputFields, 'service_tier', 'speed', 'inference_geo', 'plugins'],
  known: new Set(Object.keys(requestFields)),
}

/** A machine that runs code is billed by the time, of which five minutes are the least. */
const SESSION_SECONDS = 300

interface Weight {
  textOnly: boolean
  inputBytes: number
  /** Files are put onto a machine, which is billed for by that alone. */
  loads: boolean
  /** Tools that are defined in the midst of the messages. */
  readonly added: unknown[]
  readonly media: MediaList
}

export function measureInput(json: Json, bodyBytes: number): InputSize {
  const fetches = externalInputFields.some(field => field !== 'tools' && Boolean(json[field]))
  const isOnce = !fetches && !mayCompact(json.context_management)
  const weight: Weight = { textOnly: isOnce, inputBytes: bodyBytes, loads: false, added: [], media: new MediaList() }
  for (const message of json.messages as readonly unknown[]) weighContent(objectContent(message), weight, 0)
  const own = weighTools(json.tools, 'tools')
  const added = weighTools(weight.added, 'tool_addition')
  const isFree = own.freeCode || added.freeCode
  const machine = (json.container || weight.loads) && !isFree ? [codeService(weight.loads)] : []
  const servers = json.mcp_servers ? [{ name: 'mcp_servers', param: 'mcp_servers' }] : []
  const tools = [...own.services, ...added.services].filter(({ unit }) => unit === undefined || !isFree)
  const fields = findPaidFields(json, READ)
  const addsOtherInput = !isOnce || own.addsWords || added.addsWords
  const media = addsOtherInput ? undefined : weight.media.end(json, bodyBytes)
  const services = mergeServices([...machine, ...servers, ...tools, ...fields])
  return {
    textOnly: weight.textOnly && !own.addsWords && !added.addsWords,
    inputBytes: weight.inputBytes,
    ...(media && { media }),
    searchesMax: own.searchesMax + added.searchesMax,
    ...(services.length > 0 && { services }),
    ...((own.serverTools || added.serverTools || fetches || fields.some(runsAtProvider)) && { serverTools: true }),
  }
}

const codeService = (always = false): Service => ({
  name: 'code_execution',
  unit: 'codeSessions',
  usesMax: 1,
  sessionSeconds: SESSION_SECONDS,
  isBilledUnused: always,
})

/** What is too long is first read to be summed up, and then the rest with the summary. */
function mayCompact(management: unknown): boolean {
  const edits = isObject(management) && Array.isArray(management.edits) ? (management.edits as readonly unknown[]) : []
  return edits.some(edit => isObject(edit) && typeof edit.type === 'string' && edit.type.startsWith('compact'))
}

const objectContent = (value: unknown): unknown => (isObject(value) ? value.content : undefined)

function weighContent(content: unknown, weight: Weight, depth: number): void {
  if (!Array.isArray(content)) return
  for (const block of content as readonly unknown[]) {
    const type = isObject(block) ? block.type : undefined
    if (TEXT_BLOCKS.includes(type) || isTextDocument(block)) continue
    if (HOLDING_BLOCKS.includes(type) && depth < HOLDING_DEPTH_MAX) {
      weighContent(objectContent(block), weight, depth + 1)
      continue
    }
    if (type === 'container_upload') weight.loads = true
    if (type === 'tool_addition') weight.added.push(definitionOf(block as Json))
    weight.textOnly = false
    addMedia(weight.media, block)
    weight.inputBytes += MEDIA_PART_BYTES - inlineBytes(block)
  }
}

const KINDS = { image: 'image', document: 'file' } as const
const BLOCK_FIELDS: ReadonlySet<string> = new Set([
  'type',
  'source',
  'cache_control',
  'transformations',
  'title',
  'context',
  'citations',
])
const SOURCE_FIELDS: ReadonlySet<string> = new Set(['type', 'media_type', 'data', 'url', 'file_id'])
/** The type of a source, and its field with the medium. */
const FIELD_BY_SOURCE = { base64: 'data', url: 'url', file: 'file_id' } as const

function addMedia(media: MediaList, block: unknown): void {
  if (!isObject(block) || !hasOnly(block, BLOCK_FIELDS)) return media.drop()
  const { type, source } = block
  const kind = Object.hasOwn(KINDS, jsonText(type)) ? KINDS[type as keyof typeof KINDS] : undefined
  if (kind === undefined || !isObject(source) || !hasOnly(source, SOURCE_FIELDS)) return media.drop()
  const isKnown = Object.hasOwn(FIELD_BY_SOURCE, jsonText(source.type))
  const field = isKnown ? FIELD_BY_SOURCE[source.type as keyof typeof FIELD_BY_SOURCE] : undefined
  const others = Object.values(FIELD_BY_SOURCE).filter(
    name => name !== field && (source[name] ?? undefined) !== undefined,
  )
  if (field === undefined || others.length > 0) return media.drop()
  if (field === 'file_id') return media.addUnseen(kind)
  const mime = (source.media_type ?? undefined) === undefined ? {} : { mime: source.media_type }
  media.add({ kind, holder: source, field, ...mime })
}

/** The caller's own, for one that only names a tool. */
function definitionOf({ tool }: Json): unknown {
  return (isObject(tool) ? tool.definition : undefined) ?? {}
}

function isTextDocument(block: unknown): boolean {
  return isObject(block) && block.type === 'document' && isObject(block.source) && block.source.type === 'text'
}

interface WeighedTools {
  /** Some of them bring words of the provider, which are not in the request. */
  readonly addsWords: boolean
  /** Some of them run at the provider's. */
  readonly serverTools: boolean
  readonly searchesMax: number
  readonly services: readonly Service[]
  /** With one of these, running code costs nothing. */
  readonly freeCode: boolean
}

/** The first versions of a search and of a page that run code themselves. */
const FREE_CODE_SINCE = 20260209

function freesCode(type: string): boolean {
  const [, date] = /^web_(?:search|fetch)_(\d{8})$/.exec(type) ?? []
  return Number(date) >= FREE_CODE_SINCE
}

/** Tools of the caller have no type, or `custom`. All others bring words of the provider, or run there. */
function weighTools(tools: unknown, path: string): WeighedTools {
  let addsWords = false
  let serverTools = false
  let searchesMax = 0
  let freeCode = false
  const services: Service[] = []
  for (const [index, tool] of listTools(tools).entries()) {
    const type: unknown = tool.type ?? 'custom'
    if (type === 'custom') continue
    const name = typeof type === 'string' ? removeVersionDate(type) : 'tools'
    addsWords = true
    serverTools ||= !CALLERS_TOOLS.has(name)
    freeCode ||= typeof type === 'string' && freesCode(type)
    if (isWebSearch(name)) searchesMax += usesMaxOf(tool.max_uses)
    else if (name === 'code_execution') services.push(codeService())
    else if (!CALLERS_TOOLS.has(name)) services.push({ name })
    // It asks a model of its own choice, at a price that is not this call's.
    if (name === 'advisor' || name.startsWith('advisor_')) {
      const field = `${path}[${index}]`
      throw new Refusal('field_invalid', field, describeField(field, 'is not served: a call is for one model'))
    }
  }
  return { addsWords, serverTools, searchesMax, services, freeCode }
}
