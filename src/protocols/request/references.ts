// Finds the references in a request: ids of things that an upstream stores, such as files, containers and items. All
// accounts share one credential, so the upstream would give each account what the others have stored there. Which ids
// an account may use is decided in pipeline/route/references.ts.
//
// docs/how-it-works/stored-ids.md lists `referenceFields`; a test compares the two.

import { bounds } from '../../base/bounds.ts'
import { foldName, isObject } from '../../base/text/json-bytes.ts'
import type { Json } from './json-type.ts'

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
  | 'session'
  | 'skill'
  | 'task'
  | 'thread'
  | 'url'
  | 'vector store'
  | 'voice'

export interface Reference {
  readonly kind: ReferenceKind
  readonly id: string
  /** The steps to the field. `pathText` writes them as `input[0].content[1].file_id`. */
  readonly path: readonly (string | number)[]
  /** The host of a URL. If it is there, the URL is a reference only if it is the upstream's own host. */
  readonly host?: string
  /** Only an upstream of the caller's dialect that stores responses reads this reference. */
  readonly isOptional?: true
}

export interface ReferenceField {
  readonly kind: ReferenceKind
  readonly fields: readonly string[]
  /** Where the official schemas have the fields. */
  readonly where: string
  /** Returns the ids in a value. */
  readonly read: (value: unknown) => readonly string[]
}

/** Reads ids, lists of ids, and objects with an `id` or a `name`. */
function texts(value: unknown): readonly string[] {
  const found: string[] = []
  addTexts(value, found)
  return found
}

/** Adds to one list instead of joining lists, because lists may be nested hundreds of levels deep. */
function addTexts(value: unknown, found: string[], fields: readonly string[] = ['id', 'name']): void {
  if (typeof value === 'string' && value !== '') found.push(value)
  if (typeof value === 'number') found.push(String(value))
  if (Array.isArray(value)) for (const one of value) addTexts(one, found)
  if (isObject(value)) addFields(value, fields, found)
}

function addFields(holder: Json, fields: readonly string[], found: string[]): void {
  for (const field of fields) for (const one of findValues(holder, field)) if (!isObject(one)) addTexts(one, found)
}

/** Reads an id, or the `id` of an object. */
const textOrId = (value: unknown): readonly string[] => (isObject(value) ? objectId(value) : texts(value))
/** Reads the `id` of objects. */
function objectId(value: unknown): readonly string[] {
  const found: string[] = []
  const add = (one: unknown): void => {
    if (Array.isArray(one)) one.forEach(add)
    else if (isObject(one)) addFields(one, ['id'], found)
  }
  add(value)
  return found
}
/** Any value that is not empty is a reference. */
const anything = (value: unknown): readonly string[] => {
  const isEmpty = value === undefined || value === null || value === false || value === ''
  return isEmpty ? [] : [typeof value === 'string' ? value : 'an object']
}

/** Skills that the provider publishes have words as ids (`xlsx`, `openai-sheets`). Others have random ids. */
const PUBLIC_SKILL = /^[a-z]{2,16}(?:-[a-z]{2,32}){0,15}$/
const skills = (value: unknown): readonly string[] => texts(value).filter(id => !PUBLIC_SKILL.test(id))

/** Public voices have plain names. SiliconFlow's ids of custom voices start with `speech:`. */
const voices = (value: unknown): readonly string[] =>
  typeof value === 'string' ? (/^\s*speech:/i.test(value) ? [value.trim()] : []) : objectId(value)

/** Returns the values of a field in all spellings: some servers read `File_ID` and `fileId` as `file_id`. */
export function findValues(holder: Json, name: string): readonly unknown[] {
  const plain = foldName(name)
  const values: unknown[] = []
  for (const one in holder) if (one === name || readName(one).plain === plain) values.push(holder[one])
  return values
}

const words = (names: string): readonly string[] => names.split(' ')

export const referenceFields: readonly ReferenceField[] = [
  {
    kind: 'file',
    fields: ['file_id', 'file_ids'],
    where:
      'parts `file`, `image_url`, `video_url`, `input_audio` of Chat and Ark; `input_file`, `input_image`, ' +
      '`code_interpreter.container`, `image_generation.input_image_mask` and annotations of Responses; `source`, ' +
      '`container_upload` and results of code execution of Messages; forms of images and transcription',
    read: texts,
  },
  {
    kind: 'file',
    fields: words(
      'file files image_file image_files input_file input_files video_file audio_file document_file image images ' +
        'input_image video input_video input_audio media image_url video_url audio_url',
    ),
    where: 'an `id` in the object: `file.id`, `image_file.id`; the `id` of a part whose type is one of these',
    read: objectId,
  },
  { kind: 'file', fields: ['file_uri'], where: 'Gemini `fileData`; see URLs and media below', read: texts },
  {
    kind: 'container',
    fields: ['container', 'container_id'],
    where:
      'Messages `container` (a text, or its `id`); Responses `code_interpreter.container`, ' +
      '`shell.environment.container_id`, `code_interpreter_call.container_id`',
    read: textOrId,
  },
  {
    kind: 'skill',
    fields: ['skill_id'],
    where:
      'Messages `container.skills[]` of type `custom`; Responses `shell.environment.skills[]`. Skills that the ' +
      'provider itself publishes pass',
    read: skills,
  },
  { kind: 'context', fields: ['context_id'], where: 'Ark `/context/chat/completions`', read: texts },
  { kind: 'message', fields: ['previous_message_id'], where: 'Messages `thread`, `diagnostics`', read: texts },
  { kind: 'thread', fields: ['thread', 'thread_id'], where: 'the id of a thread, in any object', read: textOrId },
  { kind: 'audio', fields: ['audio'], where: 'Chat `messages[].audio.id`', read: objectId },
  {
    kind: 'voice',
    fields: ['voice'],
    where: 'Chat `audio.voice.id`, speech `voice.id`: custom voices; a text that starts with `speech:`',
    read: voices,
  },
  { kind: 'voice', fields: ['voice_id', 'voice_ids'], where: 'the id of a voice, in any object', read: texts },
  {
    kind: 'item',
    fields: ['approval_request_id'],
    where:
      'Responses `input[]`: `item_reference`; items without their content that are known by their `id`; ' +
      '`mcp_approval_response.approval_request_id`',
    read: texts,
  },
  { kind: 'prompt', fields: ['prompt'], where: 'Responses `prompt.id`', read: objectId },
  { kind: 'prompt', fields: ['prompt_id'], where: 'the id of a prompt, in any object', read: texts },
  {
    kind: 'vector store',
    fields: ['vector_store_id', 'vector_store_ids', 'file_search_store_names', 'collection_ids', 'collection_id'],
    where: 'Responses `file_search.vector_store_ids`; Gemini `fileSearch.fileSearchStoreNames`',
    read: texts,
  },
  {
    kind: 'task',
    fields: ['draft_task', 'draft_task_id'],
    where: 'Ark `content[].draft_task` (there it must be a task of the account)',
    read: textOrId,
  },
  { kind: 'cached content', fields: ['cached_content'], where: 'Gemini `cachedContent`', read: texts },
  {
    kind: 'response',
    fields: ['previous_response_id', 'previous_interaction_id'],
    where: 'Responses and Ark (there it must be a response of the account: see stored responses)',
    read: texts,
  },
  {
    kind: 'conversation',
    fields: ['conversation', 'conversation_id', 'session'],
    where: 'Responses `conversation` (not served), `session`',
    read: textOrId,
  },
  {
    kind: 'session',
    fields: ['session_id', 'session_ids'],
    where: 'the id of a session, in any object; a label at providers with `can.labelsSessions` (OpenRouter)',
    read: texts,
  },
  {
    kind: 'data source',
    fields: ['data_sources', 'retrieval', 'external_api', 'semantic_retriever', 'rag_corpora', 'rag_resources'],
    where: 'Azure `data_sources`, Vertex `tools[].retrieval`: searched with the credential of the channel',
    read: anything,
  },
  {
    kind: 'other',
    fields: words(
      'agent_id assistant_id asset assets asset_id asset_ids batch_id bot_id cache_id context_cache_id ' +
        'corpus_id corpora_id data_store datastore datastore_id dataset_id document_id document_ids generation_id ' +
        'generation_ids image_id image_ids index_id index_ids interaction_id knowledge_base_id knowledge_base_ids ' +
        'knowledge_id knowledge_ids knowledge_resource_id knowledge_resource_ids library_id library_ids memory_id ' +
        'memory_ids memory_store_id memory_store_ids prompt_template_name rag_corpus rag_file_ids ' +
        'response_template_name store_id store_ids style_id style_ids tunnel_id upload_id video_id video_ids',
    ),
    where: 'fields of other providers, in any object',
    read: texts,
  },
]

const byName: ReadonlyMap<string, ReferenceField> = new Map(
  referenceFields.flatMap(row => row.fields.map(field => [foldName(field), row] as const)),
)

/** Names of fields whose texts may be URLs with a provider's own scheme, such as `asset://` and `gs://`. */
const HOLDS_ADDRESS = /(?:ur[il]|image|video|audio|media|mask|frame)s?$/
const SCHEME = /^([a-z][a-z0-9+.-]{0,30}):/i
/** Most media are data URLs, which may have megabytes. */
const DATA_URL = /^data:/i
/** The id of a file anywhere in a text. Qwen replaces it by the content of the file. */
const FILE_IN_TEXT = /fileid:\/\/([\w.-]{1,256})/gi
/** Names of fields for media, and of objects that contain the URL of media. */
const HOLDS_MEDIA = /(?:image|video|audio|media|mask|frame|(?<!pro)file)s?(?:ur[il]s?)?$/
const MEDIA_CONTAINER = /image|video|audio|media|mask|frame|file|source/
/** An id without a scheme: neither a URL nor media in base64, nor a word such as `auto`. */
const BARE_ID = /^(?![a-z0-9]{0,15}$)[\w.:/@-]{1,256}$/i
/** The start of images and audio in base64. The smallest ones are as short as an id. */
const MEDIA_BYTES = /^(?:iVBOR|\/9j\/|R0lGOD|UklGR)/
/** Invisible characters that servers may trim from the start of a text. */
const UNSEEN = /^[\s\p{Cc}\p{Cf}\p{Z}\p{Default_Ignorable_Code_Point}]+/u
/** Characters that are removed from anywhere in a URL. */
const LINE_BREAKS = /[\t\r\n]+/g
/** Ids are never longer. Only the start of a longer text is searched, so its length costs no time. */
const ID_CHARS_MAX = 4_096

/** Returns the start of a text without leading invisible characters. */
function startOf(text: string, charsMax = ID_CHARS_MAX): string {
  const first = text.charCodeAt(0)
  const head = text.slice(0, charsMax)
  return first > 0x20 && first < 0x7f ? head : head.replace(UNSEEN, '')
}

/** Fields with the caller's own data: schemas, arguments of tools, labels. No upstream looks for ids in them. */
const CALLER_DATA: ReadonlySet<string> = new Set(
  words(
    'metadata client_metadata labels parameters input_schema parameters_json_schema schema response_schema ' +
      'response_json_schema _response_json_schema output_schema args arguments function_call function_declarations logit_bias',
  ).map(foldName),
)

/** Items of Responses that contain all of their content. Their `id` is no reference. */
const WHOLE_ITEMS: ReadonlySet<unknown> = new Set(
  words(
    'function_call function_call_output custom_tool_call custom_tool_call_output local_shell_call ' +
      'local_shell_call_output shell_call shell_call_output apply_patch_call apply_patch_call_output ' +
      'mcp_approval_response computer_call_output tool_search_output additional_tools',
  ),
)

/** Items that contain all of their content if they have `encrypted_content`. */
const ENCRYPTED_ITEMS: ReadonlySet<unknown> = new Set(['reasoning', 'compaction', 'compaction_summary'])

/** Types of message parts that are a file. The `id` of such a part is the id of a file. */
const FILE_PARTS: ReadonlySet<string> = new Set(
  words(
    'file input_file image_file input_image video_file input_video audio_file input_audio asset image image_url ' +
      'video video_url audio audio_url media',
  ),
)

/** Fields that the model reads, in any dialect. A translation may turn them into the text of a message. */
const TEXT_FIELDS: ReadonlySet<string> = new Set([
  'content',
  'text',
  'input',
  'output',
  'instructions',
  'system',
  'prompt',
])

/** Fields besides the table that decide whether there is a reference. */
const DECIDING: ReadonlySet<string> = new Set(['id', 'type', 'encrypted_content'].map(foldName))

/** What the name of a field says about its value. */
interface FieldName {
  readonly plain: string
  readonly row: ReferenceField | undefined
  readonly holdsAddress: boolean
  readonly holdsMedia: boolean
  readonly holdsText: boolean
  readonly holdsCallerData: boolean
}

const names = new Map<string, FieldName>()
const NAMES_MAX = 10_000
const NAME_CHARS_MAX = 64

/** Cached, because most names occur again and again. */
function readName(name: string): FieldName {
  const known = names.get(name)
  if (known !== undefined) return known
  // Known names are shorter. Of a form field such as `image[0][file_id]` or `image.0.file_id`, the last part counts.
  const end = name.slice(-NAME_CHARS_MAX)
  const words = /[[.]/.test(end) ? end.split(/[[\].]+/) : [end]
  const part = words.findLast(one => one !== '' && !/^\d+$/.test(one)) ?? ''
  const plain = foldName(part)
  const read: FieldName = {
    plain,
    row: byName.get(plain),
    holdsAddress: HOLDS_ADDRESS.test(plain) && plain !== 'fileuri',
    holdsMedia: HOLDS_MEDIA.test(plain) && plain !== 'fileuri',
    holdsText: TEXT_FIELDS.has(plain),
    holdsCallerData: words.length === 1 && CALLER_DATA.has(plain),
  }
  if (names.size >= NAMES_MAX) names.clear()
  if (name.length <= NAME_CHARS_MAX) names.set(name, read)
  return read
}

export const isReferenceName = (name: string): boolean => readName(name).row !== undefined

/** Whether the search reads fields of this name. A duplicate is refused, because an upstream may read the other one. */
export function isSearchedName(name: string): boolean {
  const { plain, row, holdsAddress, holdsText } = readName(name)
  return row !== undefined || holdsAddress || holdsText || DECIDING.has(plain)
}

/** All names of fields but those inside of the caller's own data: schemas, arguments and results of tools, labels. */
export function namesOutsideCallerData(value: unknown, into: Set<string> = new Set()): ReadonlySet<string> {
  if (Array.isArray(value)) for (const element of value) namesOutsideCallerData(element, into)
  else if (isObject(value)) {
    for (const name in value) {
      into.add(name)
      const isOfTool = (name === 'input' && value.type === 'tool_use') || name === 'response'
      if (!isOfTool && !readName(name).holdsCallerData) namesOutsideCallerData(value[name], into)
    }
  }
  return into
}

/** Item ids that the gateway created. No upstream knows them. */
export const GATEWAY_ITEM_ID = /^[a-z]+_(req)?([0-9a-z]{11})(\d{4})$/

/** Hosts whose URLs Google may read with the credential of the call if `fileUri` has them, and a public one. */
const CREDENTIALED_HOST = /(?:^|\.)(?:googleapis|google)\.com$/
const PUBLIC_HOST = 'storage.googleapis.com'
/**
 * Hosts of Google's model APIs, also regional ones, and of buckets that need a login. Nothing there is public, so a URL
 * with such a host stands for a stored file in every field.
 */
const STORING_HOST =
  /(?:^|[.-])(?:generativelanguage|aiplatform)(?:[.-][a-z0-9.-]+)?\.googleapis\.com$|(?:^|\.)storage(?:\.mtls)?\.cloud\.google\.com$/
/** Parts of these names, for URLs that servers may understand in different ways. */
const STORING_NAME = /generativelanguage|aiplatform|storage(?:\.mtls)?\.cloud\.google/
/** The path of a file that Google stores for a user, on any host. */
const STORED_FILE = /(?:^|\/)files\/[a-z0-9-]{1,64}(?::[a-z]{1,32})?\/*$/i
/** The path of a file, or of its content, in an API for files such as OpenAI's. */
const FILE_OF_API = /(?:^|\/)files\/[\w-]{1,256}(?::[a-z]{1,32}|\/content)?\/*$/i
/** Characters that URL parsers treat differently. */
const UNCLEAR = /[\\\s\p{Cc}\p{Cf}]/u

/** No host of the Internet has a longer name. */
const HOST_CHARS_MAX = 255
const PORT_CHARS_MAX = ':65535'.length
/** No server reads a longer URL. */
const ADDRESS_CHARS_MAX = 65_536
/** Finds the user information, host and port. Parsers accept any number of slashes, and drop tabs and line breaks. */
const AUTHORITY = /^[^:]*:[\\/\t\r\n]*([^\\/?#]*)/
const NOT_ASCII = /\P{ASCII}/u
/** A part of a name that no name server can have: 63 characters are the limit, and in ASCII it is even longer. */
const LONG_LABEL = /[^.:\u3002\uff0e\uff61]{64}/u

/**
 * Parses a URL of http or https. Undefined if it is too long, or if its host is: no server can have that name, but to
 * parse it takes time that grows with the square of its length. Null if it is no URL.
 */
export function parseAddress(address: string): URL | null | undefined {
  if (address.length > ADDRESS_CHARS_MAX) return undefined
  const authority = AUTHORITY.exec(address)?.[1] ?? ''
  const host = authority.slice(authority.lastIndexOf('@') + 1)
  if (host.length > HOST_CHARS_MAX + PORT_CHARS_MAX || (NOT_ASCII.test(host) && LONG_LABEL.test(host))) return undefined
  const url = URL.parse(address)
  return url !== null && url.hostname.length > HOST_CHARS_MAX ? undefined : url
}

/** Whether all URL parsers read the same. */
function isClear(address: string, url: URL | null | undefined): url is URL {
  if (url === null || url === undefined || UNCLEAR.test(address)) return false
  return url.username === '' && url.password === ''
}

/** The host in lower case, without the dot that may end it. */
export function plainHost({ hostname }: URL): string {
  let end = hostname.length
  while (hostname[end - 1] === '.') end--
  return hostname.slice(0, end).toLowerCase()
}

const plainPath = ({ pathname }: URL): string => decodeLoosely(pathname)

/** Decodes percent escapes, also double ones. */
function decodeLoosely(text: string): string {
  let plain = text
  for (let left = 3; left > 0 && plain.includes('%'); left--) {
    plain = plain.replaceAll(/%([0-7][0-9a-f])/gi, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  }
  return plain
}

/** Characters that servers may drop from a name. */
const DROPPED = /[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]+/gu
/** A few characters at a time, because many accents in a row take time that grows with the square of their number. */
const NORMALIZED_PIECE = /\P{ASCII}{1,32}/gu

/** Writes an unclear URL in plain letters, as servers may read it, for finding names in it. */
function plainLetters(address: string): string {
  const visible = decodeLoosely(address).replaceAll(DROPPED, '')
  const plain = visible.replaceAll(NORMALIZED_PIECE, piece => piece.normalize('NFKC'))
  return plain.replaceAll('\u3002', '.').toLowerCase()
}

/** Returns the host of a public URL. Undefined: reading the URL may depend on the credential. */
function publicHost(address: string): string | undefined {
  const url = parseAddress(address)
  if (!isClear(address, url)) return undefined
  const host = plainHost(url)
  const isPrivate = CREDENTIALED_HOST.test(host) || STORED_FILE.test(plainPath(url))
  return host === PUBLIC_HOST || !isPrivate ? host : undefined
}

/** Whether a URL names something that only Google can read, with the credential of the call. */
export const isStoredAtGoogle = (address: string): boolean => isOfGoogle(address, parseAddress(address))

function isOfGoogle(address: string, url: URL | null | undefined): boolean {
  // It cannot be public, and what an upstream makes of it is unknown.
  if (url === undefined) return true
  if (url !== null && STORING_HOST.test(plainHost(url))) return true
  if (isClear(address, url) && !address.includes('@')) return false
  return STORING_NAME.test(plainLetters(address))
}

/** What parsers that do not know backslashes as slashes read as user information, host and port. */
const STRICT_AUTHORITY = /^[^:]*:[\\/\s]*([^/?#]*)/

/** Whether all URL parsers find the same host: they differ in backslashes, invisible characters and several @. */
function hasClearHost(address: string): boolean {
  const authority = STRICT_AUTHORITY.exec(address)?.[1] ?? ''
  return !UNCLEAR.test(authority) && authority.indexOf('@') === authority.lastIndexOf('@')
}

/** Tells whether a candidate counts as a reference. `reference.path` is valid only during the function call. */
export type IsReference = (reference: Reference) => boolean

/** Finds the references in `json`, each one once, and at most one more than `max`. */
export function findReferences(
  json: Json,
  keeps: IsReference = () => true,
  max: number = bounds.referencesOfCallMax,
): readonly Reference[] {
  const search = new Search(keeps, max)
  search.object(json, '')
  return search.found
}

/** References of large bodies that another thread has found, by the parsed body. */
const cachedReferences = new WeakMap<Json, readonly Reference[]>()

export const cacheReferences = (json: Json, found: readonly Reference[]): void => void cachedReferences.set(json, found)

export const getCachedReferences = (json: Json): readonly Reference[] | undefined => cachedReferences.get(json)

class Search {
  readonly found: Reference[] = []
  readonly #keeps: IsReference
  readonly #max: number
  #seen: Set<string> | undefined
  readonly #path: (string | number)[] = []

  constructor(keeps: IsReference, max: number) {
    this.#keeps = keeps
    this.#max = max
  }

  get #isOver(): boolean {
    return this.found.length > this.#max
  }

  object(holder: Json, under: string): void {
    let isFile: boolean | undefined
    for (const name in holder) {
      const value = holder[name]
      const isEmpty = value === null || value === undefined || typeof value === 'boolean'
      if (isEmpty) continue
      if (this.#isOver) return
      const field = readName(name)
      this.#path.push(name)
      this.#field(field, value, holder, under)
      if (field.plain === 'id' && typeof value === 'string' && value !== '') {
        // Once for all spellings of `id`, because all fields of the object are read for it.
        isFile ??= isFilePart(holder)
        if (isFile) this.#add('file', value)
      }
      this.#path.pop()
    }
  }

  /** `under`: the name of the field that contains `holder`. Empty for the request itself. */
  #field(name: FieldName, value: unknown, holder: Json, under: string): void {
    const { plain, row } = name
    if (row !== undefined) for (const id of row.read(value)) this.#add(row.kind, id, plain)
    if (typeof value === 'string') this.#text(name, value, under)
    if (typeof value !== 'object' || value === null) return
    const isCallerData =
      name.holdsCallerData ||
      (plain === 'input' && under !== '' && isToolUse(holder)) ||
      (plain === 'response' && under === 'functionresponse')
    if (isCallerData) return
    if (Array.isArray(value)) this.#list(value, name, under)
    else this.object(value as Json, plain)
  }

  #list(list: readonly unknown[], name: FieldName, under: string): void {
    const areItems = name.plain === 'input' && under === ''
    const holdsText = name.holdsAddress || name.holdsText || name.holdsMedia
    for (let at = 0; at < list.length; at++) {
      const one = list[at]
      if (typeof one === 'string') {
        if (holdsText) this.#within(at, () => this.#text(name, one, under))
      } else if (typeof one === 'object' && one !== null) {
        if (this.#isOver) return
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

  #text({ holdsText, holdsAddress, holdsMedia }: FieldName, text: string, under: string): void {
    if (holdsText && text.includes('://')) this.#filesIn(text)
    if (!(holdsAddress || holdsMedia) || DATA_URL.test(text)) return
    const head = startOf(text).replace(LINE_BREAKS, '').trim()
    const scheme = SCHEME.exec(head)?.[1]?.toLowerCase()
    const isHidden = head === '' && text.length > ID_CHARS_MAX
    const isMedia = holdsMedia || MEDIA_CONTAINER.test(under)
    if (scheme === 'http' || scheme === 'https') this.#address(startOf(text, ADDRESS_CHARS_MAX + 1).trim())
    else if (isHidden || (scheme !== undefined && scheme !== 'data')) this.#add('url', head)
    else if (isMedia && scheme === undefined && BARE_ID.test(head) && !MEDIA_BYTES.test(head)) this.#add('file', head)
  }

  /** Adds a URL that the upstream may read with the credential of the call. All others are public, or unreadable. */
  #address(address: string): void {
    const url = parseAddress(address)
    if (isOfGoogle(address, url)) return this.#push({ kind: 'file', id: address })
    // The host of an API for files may know the file by its URL. A host that is unclear may be any upstream's.
    if (!FILE_OF_API.test(url ? plainPath(url) : decodeLoosely(address))) return
    this.#push({ kind: 'file', id: address, ...(url && hasClearHost(address) && { host: plainHost(url) }) })
  }

  #filesIn(text: string): void {
    let left = bounds.referencesOfCallMax
    for (const [, id] of text.matchAll(FILE_IN_TEXT)) {
      // Each further search costs time, even if it finds the same id again. At the limit, report too many references.
      const isLast = left-- === 0
      if (isLast) while (!this.#isOver) this.found.push({ kind: 'file', id: id!, path: [...this.#path] })
      if (this.#isOver) return
      this.#add('file', id!)
    }
  }

  /** Adds an item of Responses that stands for a stored item. */
  #item(item: Json): void {
    const ids = findValues(item, 'id').flatMap(id => (typeof id === 'string' && id !== '' ? [id] : []))
    if (ids.length === 0) return
    // Each type once, because all fields of the item are read for it. A hostile item has its type in 1,000 spellings.
    const types = new Set(findValues(item, 'type').filter(type => type !== undefined && type !== null))
    if (types.size === 0) types.add(findValues(item, 'role').length === 0 ? 'item_reference' : 'message')
    const isOptional = !types.has('item_reference')
    if (isOptional && [...types].every(type => isWhole(type, item))) return
    for (const id of ids) this.#within('id', () => this.#push({ kind: 'item', id, ...(isOptional && { isOptional }) }))
  }

  #add(kind: ReferenceKind, id: string, plain?: string): void {
    if (plain === 'fileuri') {
      if (/^data:/i.test(id)) return
      if (!/^https?:/i.test(id)) return this.#push({ kind, id: startOf(id).trim() })
      const host = publicHost(id)
      this.#push({ kind, id, ...(host !== undefined && { host }) })
    } else this.#push({ kind, id, ...(this.#path[0] === 'diagnostics' && { isOptional: true }) })
  }

  #push({ kind, id: written, isOptional, host }: Omit<Reference, 'path'>): void {
    if (this.#isOver || (kind === 'item' && GATEWAY_ITEM_ID.test(written))) return
    const id = written.slice(0, ID_CHARS_MAX)
    // The same URL may count in one field only, and two URLs may differ only after the longest id. No host has a slash.
    const key = `${kind}:${isOptional === true}:${placeOfPath(this.#path)}:${host ?? '/'}:${id}`
    if (this.#seen?.has(key)) return
    const more = { ...(host !== undefined && { host }), ...(isOptional && { isOptional }) }
    if (!this.#keeps({ kind, id, path: this.#path, ...more })) return
    this.#seen ??= new Set()
    this.#seen.add(key)
    this.found.push({ kind, id, path: [...this.#path], ...more })
  }
}

/** The place of a reference, because an id counts differently at the top level, in a draft task, and elsewhere. */
const placeOfPath = (path: Reference['path']): string =>
  path.length === 1 ? 'top' : path.length === 3 && path[0] === 'content' && path[2] === 'draft_task' ? 'draft' : ''

/** Whether an item contains all of its content, so that its `id` is no reference. */
function isWhole(type: unknown, item: Json): boolean {
  if (WHOLE_ITEMS.has(type)) return true
  if (ENCRYPTED_ITEMS.has(type)) {
    const encrypted = findValues(item, 'encrypted_content')
    return encrypted.length > 0 && encrypted.every(one => typeof one === 'string' && one !== '')
  }
  const isFilled = (content: unknown): boolean =>
    content !== undefined && content !== null && !(Array.isArray(content) && content.length === 0)
  const contents = findValues(item, 'content')
  return type === 'message' && contents.length > 0 && contents.every(isFilled)
}

function isFilePart(holder: Json): boolean {
  for (const name in holder) {
    const type = holder[name]
    const isType = typeof type === 'string' && type.length <= NAME_CHARS_MAX && FILE_PARTS.has(type)
    if (isType && readName(name).plain === 'type') return true
  }
  return false
}

function isToolUse(holder: Json): boolean {
  return typeof holder.type === 'string' && holder.type.endsWith('tool_use')
}

/** Writes a path as `input[0].content[1].file_id`. */
export function formatReferencePath(path: readonly (string | number)[]): string {
  let text = ''
  for (const step of path.slice(0, 16)) {
    text += typeof step === 'number' ? `[${step}]` : `${text === '' ? '' : '.'}${step.slice(0, 64)}`
  }
  return text
}
