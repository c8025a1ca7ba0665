// The fields of requests that name something kept at an upstream: a file, a container, a stored item. One credential
// of an upstream serves all accounts, so that the upstream gives each of them whatever the others have made. Which ids
// an account may use is decided in pipeline/references.ts; this file only finds them.
//
// docs/kept-state.md lists `referenceFields`; a test compares the two.

import { foldName } from '../base/json.ts'
import type { Json } from './checks.ts'
import type { FoundObject } from './json-object.ts'
import { fieldsWritten, isObject } from './json-object.ts'

export type ReferenceKind =
  | 'audio'
  | 'cached content'
  | 'container'
  | 'context'
  | 'conversation'
  | 'data source'
  | 'file'
  | 'item'
  | 'message'
  | 'other'
  | 'prompt'
  | 'response'
  | 'skill'
  | 'thread'
  | 'url'
  | 'vector store'
  | 'voice'

export interface Reference {
  readonly kind: ReferenceKind
  readonly id: string
  /** As the caller wrote it, such as `input[0].content[1].file_id`. Made when it is asked for. */
  readonly path: readonly (string | number)[]
  /** A http address: it names something kept only where it leads to the upstream's own host. */
  readonly isAddress?: true
  /** Means something only to an upstream of the caller's own dialect that keeps responses. */
  readonly isOptional?: true
}

export interface ReferenceField {
  readonly kind: ReferenceKind
  readonly fields: readonly string[]
  /** Where official schemas have it. */
  readonly where: string
  /** The ids in a value; none where the value names nothing. */
  readonly read: (value: unknown) => readonly string[]
}

const texts = (value: unknown): readonly string[] => {
  if (typeof value === 'string') return value === '' ? [] : [value]
  if (typeof value === 'number') return [String(value)]
  return Array.isArray(value) ? value.flatMap(one => (typeof one === 'object' ? [] : texts(one))) : []
}

/** An id, or an object that has one. */
const textOrId = (value: unknown): readonly string[] => (isObject(value) ? texts(fieldOf(value, 'id')) : texts(value))
const objectId = (value: unknown): readonly string[] => (isObject(value) ? texts(fieldOf(value, 'id')) : [])
/** Whatever stands there names something. */
const anything = (value: unknown): readonly string[] => {
  const isEmpty = value === undefined || value === null || value === false || value === ''
  return isEmpty ? [] : [typeof value === 'string' ? value : JSON.stringify(value).slice(0, 256)]
}

/** Skills of the provider are there for everybody, under words (`xlsx`, `openai-sheets`); others have random ids. */
const PUBLISHED = /^[a-z]{2,16}(?:-[a-z]{2,32})*$/
const skills = (value: unknown): readonly string[] => texts(value).filter(id => !PUBLISHED.test(id))

/** Any spelling of a field: some servers read `File_ID` and `fileId` as `file_id`. */
function fieldOf(holder: Json, name: string): unknown {
  if (Object.hasOwn(holder, name)) return holder[name]
  const found = Object.keys(holder).find(one => foldName(one) === name)
  return found === undefined ? undefined : holder[found]
}

export const referenceFields: readonly ReferenceField[] = [
  {
    kind: 'file',
    fields: ['file_id', 'file_ids'],
    where: 'parts `file`, `image_url`, `video_url`, `input_audio` of Chat and Ark; `input_file`, `input_image`, ' +
      '`code_interpreter.container`, `image_generation.input_image_mask` and annotations of Responses; `source`, ' +
      '`container_upload` and results of code execution of Messages; forms of images and transcription',
    read: texts,
  },
  { kind: 'file', fields: ['file_uri'], where: 'Gemini `fileData`; see addresses below', read: texts },
  {
    kind: 'container',
    fields: ['container', 'container_id'],
    where: 'Messages `container` (a text, or its `id`); Responses `code_interpreter.container`, ' +
      '`shell.environment.container_id`, `code_interpreter_call.container_id`',
    read: textOrId,
  },
  {
    kind: 'skill',
    fields: ['skill_id'],
    where: 'Messages `container.skills[]` of type `custom`; Responses `shell.environment.skills[]`. Skills that the ' +
      'provider itself publishes pass',
    read: skills,
  },
  { kind: 'context', fields: ['context_id'], where: 'Ark `/context/chat/completions`', read: texts },
  { kind: 'message', fields: ['previous_message_id'], where: 'Messages `thread`, `diagnostics`', read: texts },
  { kind: 'thread', fields: ['thread', 'thread_id'], where: 'an id of a thread, wherever it stands', read: textOrId },
  { kind: 'audio', fields: ['audio'], where: 'Chat `messages[].audio.id`', read: objectId },
  { kind: 'voice', fields: ['voice'], where: 'Chat `audio.voice.id`, speech `voice.id`: custom ones', read: objectId },
  {
    kind: 'item',
    fields: ['approval_request_id'],
    where: 'Responses `input[]`: `item_reference`; items without their content that are known by their `id`; ' +
      '`mcp_approval_response.approval_request_id`',
    read: texts,
  },
  { kind: 'prompt', fields: ['prompt'], where: 'Responses `prompt.id`', read: objectId },
  { kind: 'prompt', fields: ['prompt_id'], where: 'an id of a prompt, wherever it stands', read: texts },
  {
    kind: 'vector store',
    fields: ['vector_store_id', 'vector_store_ids', 'file_search_store_names', 'collection_ids', 'collection_id'],
    where: 'Responses `file_search.vector_store_ids`; Gemini `fileSearch.fileSearchStoreNames`',
    read: texts,
  },
  { kind: 'cached content', fields: ['cached_content'], where: 'Gemini `cachedContent`', read: texts },
  {
    kind: 'response',
    fields: ['previous_response_id', 'previous_interaction_id'],
    where: 'Responses and Ark (there it must be a response of the account: see responses.md)',
    read: texts,
  },
  {
    kind: 'conversation',
    fields: ['conversation', 'conversation_id', 'session'],
    where: 'Responses `conversation` (not served), `session`',
    read: textOrId,
  },
  {
    kind: 'data source',
    fields: ['data_sources', 'retrieval', 'external_api', 'semantic_retriever', 'rag_corpora', 'rag_resources'],
    where: 'Azure `data_sources`, Vertex `tools[].retrieval`: searched with the credential of the channel',
    read: anything,
  },
  {
    kind: 'other',
    fields: [
      ...['agent_id', 'assistant_id', 'asset_id', 'asset_ids', 'batch_id', 'bot_id', 'cache_id', 'context_cache_id'],
      ...['corpus_id', 'corpora_id', 'data_store', 'datastore', 'datastore_id', 'dataset_id', 'document_id'],
      ...['document_ids', 'index_id', 'index_ids', 'interaction_id', 'knowledge_base_id'],
      ...['knowledge_base_ids', 'knowledge_id', 'knowledge_ids', 'library_id', 'library_ids', 'memory_id'],
      ...['memory_ids', 'memory_store_id', 'memory_store_ids', 'prompt_template_name', 'rag_corpus'],
      ...['rag_file_ids', 'response_template_name', 'store_id', 'store_ids', 'tunnel_id', 'upload_id'],
    ],
    where: 'fields of other providers, wherever they stand',
    read: texts,
  },
]

const byName: ReadonlyMap<string, ReferenceField> = new Map(
  referenceFields.flatMap(row => row.fields.map(field => [foldName(field), row] as const)),
)

/** Whose texts may be addresses with a scheme of the provider's own, such as `asset://` and `gs://`. */
const HOLDS_ADDRESS = /(?:ur[il]|^image|^images|^video|^audio|^media)$/
const SCHEME = /^\s{0,16}([a-z][a-z0-9+.-]{0,30}):/i
const OPEN_SCHEMES: ReadonlySet<string> = new Set(['http', 'https', 'data'])
/** A text that is nothing but the name of a file. */
const FILE_TEXT = /^\s{0,16}fileid:\/\//i

/** The caller's own words: schemas, arguments of its tools, labels. No upstream takes anything in them for an id. */
const OWN_WORDS: ReadonlySet<string> = new Set(
  [
    ...['metadata', 'labels', 'parameters', 'input_schema', 'parameters_json_schema', 'schema', 'response_schema'],
    ...['response_json_schema', '_response_json_schema', 'output_schema', 'args', 'arguments', 'function_call'],
    ...['function_declarations', 'logit_bias'],
  ].map(foldName),
)

/** Items of Responses that hold all that they mean: their `id` is only a label. */
const WHOLE_ITEMS: ReadonlySet<unknown> = new Set([
  ...['function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output', 'local_shell_call'],
  ...['local_shell_call_output', 'shell_call', 'shell_call_output', 'apply_patch_call', 'apply_patch_call_output'],
  ...['mcp_approval_response', 'computer_call_output', 'tool_search_output', 'additional_tools'],
])

/** What a field's name says of its value. */
interface Name {
  readonly plain: string
  readonly row: ReferenceField | undefined
  readonly holdsAddress: boolean
  readonly holdsText: boolean
  readonly holdsOwnWords: boolean
}

const names = new Map<string, Name>()
const NAMES_MAX = 10_000
const NAME_CHARS_MAX = 64

/** Most names come again and again. */
function readName(name: string): Name {
  const known = names.get(name)
  if (known !== undefined) return known
  // The last part of a form's `image[0][file_id]`.
  const words = name.includes('[') ? name.split(/[[\]]+/) : [name]
  const part = words.findLast(one => one !== '' && !/^\d+$/.test(one)) ?? ''
  const plain = foldName(part)
  const read: Name = {
    plain,
    row: byName.get(plain),
    holdsAddress: HOLDS_ADDRESS.test(plain) && plain !== 'fileuri',
    holdsText: plain === 'content' || plain === 'text',
    holdsOwnWords: OWN_WORDS.has(plain),
  }
  if (names.size >= NAMES_MAX) names.clear()
  if (name.length <= NAME_CHARS_MAX) names.set(name, read)
  return read
}

export const isReferenceName = (name: string): boolean => readName(name).row !== undefined

export interface Found {
  readonly references: readonly Reference[]
  /** How many fields all objects have, for whoever wants to know whether the text had more. */
  readonly fields: number
}

const nothing: readonly Reference[] = []

export function findReferences(json: Json): Found {
  const search = new Search()
  search.object(json, '')
  return { references: search.found ?? nothing, fields: search.fields }
}

class Search {
  fields = 0
  found: Reference[] | undefined
  readonly #path: (string | number)[] = []

  object(holder: Json, under: string): void {
    for (const name in holder) {
      this.fields++
      const value = holder[name]
      const isNothing = value === null || value === undefined || typeof value === 'boolean'
      if (isNothing) continue
      this.#path.push(name)
      this.#field(readName(name), value, { holder, under })
      this.#path.pop()
    }
  }

  #field(name: Name, value: unknown, { holder, under }: Place): void {
    const { plain, row } = name
    if (row !== undefined) for (const id of row.read(value)) this.#add(row.kind, id, plain)
    if (typeof value === 'string') this.#text(name, value)
    if (typeof value !== 'object' || value === null) return
    const isOwn =
      name.holdsOwnWords ||
      (plain === 'input' && under !== '' && isToolUse(holder)) ||
      (plain === 'response' && under === 'functionresponse')
    if (isOwn) this.fields += fieldsIn(value)
    else if (Array.isArray(value)) this.#list(value, name, under)
    else this.object(value as Json, plain)
  }

  #list(list: readonly unknown[], name: Name, under: string): void {
    const areItems = name.plain === 'input' && under === ''
    for (let at = 0; at < list.length; at++) {
      const one = list[at]
      if (typeof one === 'string') {
        if (name.holdsAddress) this.#within(at, () => this.#text(name, one))
      } else if (typeof one === 'object' && one !== null) {
        this.#path.push(at)
        if (Array.isArray(one)) this.#list(one, name, under === '' ? name.plain : under)
        else {
          if (areItems) this.#item(one as Json)
          this.object(one as Json, name.plain)
        }
        this.#path.pop()
      }
    }
  }

  #within(step: string | number, look: () => void): void {
    this.#path.push(step)
    look()
    this.#path.pop()
  }

  #text({ holdsText, holdsAddress }: Name, text: string): void {
    if (holdsText && FILE_TEXT.test(text)) this.#add('file', text.trim())
    if (!holdsAddress) return
    const scheme = SCHEME.exec(text)?.[1]?.toLowerCase()
    if (scheme !== undefined && !OPEN_SCHEMES.has(scheme)) this.#add('url', text.trim())
  }

  /** An item of Responses that stands for one that is kept. */
  #item(item: Json): void {
    const id = fieldOf(item, 'id')
    if (typeof id !== 'string' || id === '') return
    const type = fieldOf(item, 'type') ?? (fieldOf(item, 'role') === undefined ? 'item_reference' : 'message')
    const sealed = fieldOf(item, 'encrypted_content')
    if (WHOLE_ITEMS.has(type) || (typeof sealed === 'string' && sealed !== '')) return
    const content = fieldOf(item, 'content')
    const isEmpty = content === undefined || content === null || (Array.isArray(content) && content.length === 0)
    if (type === 'message' && !isEmpty) return
    const isWhole = type !== 'item_reference' && { isOptional: true as const }
    this.#within('id', () => this.#push({ kind: 'item', id, path: [...this.#path], ...isWhole }))
  }

  #add(kind: ReferenceKind, id: string, plain?: string): void {
    const path = [...this.#path]
    if (plain === 'fileuri') {
      const scheme = SCHEME.exec(id)?.[1]?.toLowerCase()
      if (scheme === 'data') return
      const isAddress = scheme === 'http' || scheme === 'https'
      this.#push({ kind, id: id.trim(), path, ...(isAddress && { isAddress }) })
    } else this.#push({ kind, id, path, ...(path[0] === 'diagnostics' && { isOptional: true }) })
  }

  #push(reference: Reference): void {
    this.found ??= []
    this.found.push(reference)
  }
}

interface Place {
  readonly holder: Json
  /** The name of the field that the holder stands in; empty for the request itself. */
  readonly under: string
}

function isToolUse(holder: Json): boolean {
  return typeof holder.type === 'string' && holder.type.endsWith('tool_use')
}

function fieldsIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let fields = 0
  if (Array.isArray(value)) for (const one of value) fields += fieldsIn(one)
  else for (const name in value) fields += 1 + fieldsIn((value as Json)[name])
  return fields
}

/** `input[0].content[1].file_id`. */
export function pathText(path: readonly (string | number)[]): string {
  let text = ''
  for (const step of path.slice(0, 16)) {
    text += typeof step === 'number' ? `[${step}]` : `${text === '' ? '' : '.'}${step.slice(0, 64)}`
  }
  return text
}

/** Whether the text of a request may name something in a field that stands there twice, so that its JSON lacks it. */
export function hidesReference(body: Buffer, fields: number): boolean {
  if (fieldsWritten(body) === fields) return false
  return mentionedBefore.get(body) ?? mentionsReference(body)
}

/** The same for a large body, beside the thread that serves calls; undefined where its JSON has all of its fields. */
export const seekHidden = (body: Buffer, { json, counts }: FoundObject): boolean | undefined =>
  counts.fields === fieldsIn(json) ? undefined : mentionsReference(body)

export function noteHidden(body: Buffer, mentions: boolean | undefined): void {
  if (mentions !== undefined) mentionedBefore.set(body, mentions)
}

const mentionedBefore = new WeakMap<Buffer, boolean>()

/** Whether the text of a request has a name in it that may be one of these, however it is spelt. */
function mentionsReference(body: Buffer): boolean {
  const text = body.toString('latin1')
  if (/\\u00[0-7]/i.test(text)) return true // letters that are written as escapes
  const plain = foldName(text)
  return [...byName.keys(), 'itemreference'].some(name => plain.includes(`"${name}"`))
}
