// Parses and checks a provider file. A provider is data: everything that code needs to know about a provider is a field
// here with a documented default, and no code depends on a provider's id.

import type { BasicChatField, ChatField } from '../base/chat-fields.ts'
import { BASIC_CHAT_FIELDS, CHAT_FIELDS, defaultChatFields } from '../base/chat-fields.ts'
import type { ModelTraits } from '../base/money/model-traits.ts'
import { noTraits } from '../base/money/model-traits.ts'
import type { Price } from '../base/money/price.ts'
import { canBeFree, parseIncluded, parsePrice } from '../base/money/price.ts'
import { parseOperatorAddress } from '../http/address/operator-address.ts'
import type { MakerPattern } from './makers.ts'
import { readMakerPattern } from './makers.ts'
import type { ModelListFields } from './model-list.ts'
import { readModelListFields } from './model-list.ts'
import {
  ANSWER_FIELD,
  CALL_ID_CHARS,
  capabilityFields,
  DIALECT_PATH,
  localServerFields,
  MAKERS_MAX,
  modelFields,
  PLAIN_PATH,
  PROVIDER_ID,
  providerFields,
  TAG,
  VISIBLE,
  WEBSITE,
} from './provider-schema.ts'
import type { NamedQuirk } from './quirks.ts'
import { readQuirk } from './quirks.ts'
import { isSigningMethod } from './signing.ts'
import type { Timeouts } from './timeouts.ts'
import { defaultTimeouts, parseTimeouts } from './timeouts.ts'
import { parseTraits } from './trait-parser.ts'

export interface Capabilities {
  /** Whether it reports usage at the end of a stream for `stream_options.include_usage`. Default true. */
  readonly streamUsage: boolean
  /** The field that limits its output. Default `max_tokens`, the older name, which most servers still read. */
  readonly outputCap: 'max_tokens' | 'max_completion_tokens'
  /** Whether the limit of the output includes reasoning tokens. Default true. */
  readonly capsThought: boolean
  /** Whether it stores answers of the Responses dialect, so that they can be fetched and continued. Default false. */
  readonly keepsResponses: boolean
  /** Whether it stores threads of messages, which the field `thread` creates and continues. Default false. */
  readonly keepsThreads: boolean
  /** `session_id` of a request is a label that the caller chooses, and names nothing that it stores. */
  readonly labelsSessions: boolean
  /**
   * Whether it continues and bills an answer after the connection is closed. If so, the gateway reads on without its
   * caller, within bounds, to get the reported usage. Default false.
   */
  readonly billsWhenLeft: boolean
  /**
   * The optional parts of chat requests that it accepts. Translated requests have no others, because many upstreams
   * refuse fields that they do not know. Default `user`, which almost all accept.
   */
  readonly chatFields: readonly ChatField[]
  /** The usual fields of chat requests that it does not accept. Default none. */
  readonly missingChatFields: readonly BasicChatField[]
  /** The exact number of letters and digits of tool call ids. Default: ids may have any form. */
  readonly callIdChars?: number
  /**
   * Whether it accepts several system messages, also in the middle of a chat request. Default false: the chat templates of
   * many open models accept one, at the beginning.
   */
  readonly systemAnywhere: boolean
  /** Whether it accepts a message of the user directly after results of tools in a chat request. Default true. */
  readonly userAfterTool: boolean
}

export interface Model {
  readonly id: string
  readonly name?: string
  readonly contextTokens?: number
  readonly outputTokensMax?: number
  /** The dialects of its provider that the model supports; all of them if absent. */
  readonly speaks?: readonly string[]
  /** Whether the model is free, for instance a moderation model. Default false. */
  readonly free?: boolean
  /** Absent: the price is unknown, and the model is not served. A missing price never means free. */
  readonly price?: Price
  /** Why there is no price, as a sentence for callers. Only for models of a provider's own list. */
  readonly priceProblem?: string
  /** If different from its provider. Also useful for a model with hidden reasoning, which cannot be estimated. */
  readonly billsWhenLeft?: boolean
  /** Its own traits, merged with those of its provider. */
  readonly traits?: ModelTraits
  /** Its timeouts, if different from those of its provider. */
  readonly times?: Timeouts
}

/** The paths of one dialect below the base URL. `{model}` is replaced by the model's id. */
export interface DialectPaths {
  readonly plain: string
  readonly stream: string
}

/** How a server on the machine of the gateway is recognised. */
export interface LocalServer {
  /** The `owned_by` of all of its models. Another program at the port of the server writes something else. */
  readonly ownedBy?: string
  /** Paths of the server's own interface, with the fields that the JSON answer to each must have (`models.digest`). */
  readonly answers: ReadonlyMap<string, readonly string[]>
}

export interface Provider {
  readonly id: string
  readonly name: string
  readonly website?: string
  /**
   * The address that all paths are appended to, without a trailing slash. It may contain an environment variable in
   * braces. If that variable is not set, a channel exists only if another address is configured.
   */
  readonly baseUrl: string
  /** Paths that people enter by mistake instead of the path of the base URL, such as those of another interface. */
  readonly basePathAliases: readonly string[]
  /** The environment variables for the key and for another base URL, as users of the vendor know them. */
  readonly keyEnv: string
  readonly baseUrlEnv: string
  /** The dialects that it supports, the best supported first, each with its paths. */
  readonly speaks: Readonly<Record<string, DialectPaths>>
  /** The paths of token counting, by dialect. Default none. */
  readonly counts: Readonly<Record<string, string>>
  /** The signing method of each dialect. */
  readonly sign: Readonly<Record<string, string>>
  /** Its differences from its dialects. Default none. */
  readonly quirks: readonly NamedQuirk[]
  /** The traits of its models, unless a model says otherwise; also of models that are not listed. */
  readonly traits: ModelTraits
  /** The timeouts of its models, unless a model says otherwise. */
  readonly times: Timeouts
  readonly can: Capabilities
  /** Tools and request fields that cost nothing besides the model's price. Default none. */
  readonly included: readonly string[]
  /** Properties of its data handling, such as `eu` or `no-training`. Default none. */
  readonly tags: readonly string[]
  /** Where its own list of models has their prices. Default: it has none. */
  readonly modelList?: ModelListFields
  /** Who made its models, and how its ids become the makers' own names. Default: the makers are not known. */
  readonly makers: readonly MakerPattern[]
  /** Names that people still use for a model that took the place of another, each with the id of the new model. */
  readonly formerNames: ReadonlyMap<string, string>
  /** Whether it serves models that are not listed here (a local server, an aggregator). Default false. */
  readonly openModels: boolean
  /** Whether all its models are free, as on a self-hosted server. Default false. */
  readonly free: boolean
  /** Whether it needs no key; then a channel exists as soon as the base URL variable is set. Default false. */
  readonly keyless: boolean
  /** The gateway looks for this server on its own machine, at the port of its base URL. */
  readonly localServer?: LocalServer
  /** Whether this process itself answers, at an address that is known after its start. Default false. */
  readonly builtIn: boolean
  readonly models: ReadonlyMap<string, Model>
}

export class ProviderFileError extends Error {}

type Json = Record<string, unknown>

const PROVIDER_FIELDS = Object.keys(providerFields)
const MODEL_FIELDS = Object.keys(modelFields)

const isVisible = (text: string): boolean => VISIBLE.test(text)

export function parseProvider(text: string, file: string): Provider {
  const fail = (problem: string): never => {
    throw new ProviderFileError(`${file}: ${problem}`)
  }
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return fail('not valid JSON')
  }
  return readProvider(readObject(json, { what: 'the file', known: PROVIDER_FIELDS }, fail), fail)
}

type Fail = (problem: string) => never

/** A JSON object with known fields only. A misspelt field must not silently keep its default. */
function readObject(value: unknown, { what, known }: { what: string; known: readonly string[] }, fail: Fail): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail(`${what} must be an object`)
  const unknown = Object.keys(value).find(field => !known.includes(field))
  return unknown === undefined ? (value as Json) : fail(`${what} has an unknown field "${unknown}"`)
}

function readProvider(json: Json, fail: Fail): Provider {
  const string = (field: string): string => {
    const value = json[field]
    return typeof value === 'string' && value !== '' ? value : fail(`"${field}" must be a non-empty string`)
  }
  const flag = (field: string): boolean => {
    const value = json[field] ?? false
    return typeof value === 'boolean' ? value : fail(`"${field}" must be true or false`)
  }
  const checkName = (text: string): string =>
    text.length <= 200 && !/\p{Cc}/u.test(text) ? text : fail('"name" must be one line of 200 characters at most')
  const checkWebsite = (text: string): string =>
    WEBSITE.test(text) ? text : fail('"website" must be an http(s) address')
  const id = string('id')
  if (!PROVIDER_ID.test(id)) fail('"id" must be 1 to 40 lower-case letters, digits and dashes')
  const baseUrl = string('baseUrl')
  checkAddress(baseUrl, fail)
  const free = flag('free')
  const speaks = parseSpeaks(json.speaks, fail)
  const traits = json.traits === undefined ? noTraits : parseTraits(json.traits, fail)
  const times = parseTimeouts(json.times ?? {}, { defaults: defaultTimeouts, of: 'provider', fail })
  const models = parseModels(json.models, { free, traits, times, dialects: Object.keys(speaks) }, fail)
  return {
    id,
    name: checkName(string('name')),
    ...(json.website !== undefined && { website: checkWebsite(string('website')) }),
    baseUrl,
    basePathAliases: parseAliases(json.basePathAliases ?? [], fail),
    keyEnv: string('keyEnv'),
    baseUrlEnv: string('baseUrlEnv'),
    speaks,
    counts: parseCounts(json.counts ?? {}, Object.keys(speaks), fail),
    sign: parseSign(json.sign, Object.keys(speaks), fail),
    quirks: parseQuirks(json.quirks ?? [], fail),
    can: parseCan(json.can ?? {}, fail),
    traits,
    times,
    included: parseIncluded(json.included ?? [], '"included"', fail),
    tags: parseTags(json.tags ?? [], fail),
    makers: parseMakers(json.makers ?? {}, fail),
    ...(json.modelList !== undefined && { modelList: parseModelList(json.modelList, fail) }),
    formerNames: parseFormerNames(json.formerNames ?? {}, models, fail),
    openModels: flag('openModels'),
    free,
    keyless: flag('keyless'),
    ...(json.localServer !== undefined && { localServer: parseLocalServer(json, baseUrl, fail) }),
    builtIn: flag('builtIn'),
    models,
  }
}

/** The address may contain variables in braces. */
function checkAddress(text: string, fail: Fail): void {
  const filled = text.replace(/\{[A-Z][A-Z0-9_]*\}/g, 'x')
  if (/[{}]/.test(filled)) fail('"baseUrl" may contain braces only around variables such as {AWS_REGION}')
  if (filled.endsWith('/')) fail('"baseUrl" must not end with a slash')
  try {
    parseOperatorAddress(filled)
  } catch (fault) {
    fail(`"baseUrl" ${(fault as Error).message}`)
  }
}

function parseLocalServer(json: Json, baseUrl: string, fail: Fail): LocalServer {
  const known = Object.keys(localServerFields)
  const { ownedBy, answers = {} } = readObject(json.localServer, { what: '"localServer"', known }, fail)
  if (ownedBy !== undefined && typeof ownedBy !== 'string') fail('"localServer.ownedBy" must be a string')
  const isObject = typeof answers === 'object' && answers !== null && !Array.isArray(answers)
  const entries = isObject ? Object.entries(answers as Json) : []
  const isField = (field: unknown): boolean => typeof field === 'string' && ANSWER_FIELD.test(field)
  const isAnswer = ([path, fields]: [string, unknown]): boolean =>
    PLAIN_PATH.test(path) && Array.isArray(fields) && fields.length > 0 && fields.every(isField)
  if (!isObject || !entries.every(isAnswer)) {
    fail(
      '"localServer.answers" must be an object of paths and lists of fields, such as {"/api/tags": ["models.digest"]}',
    )
  }
  if (ownedBy === undefined && entries.length === 0) {
    fail('"localServer" must say how the server is recognised: by "ownedBy", "answers", or both')
  }
  const isLocal = json.keyless === true && /^http:\/\/127\.0\.0\.1:\d+(\/|$)/.test(baseUrl)
  if (!isLocal) fail('"localServer" needs "keyless" and a "baseUrl" that begins with http://127.0.0.1:<port>')
  return {
    ...(typeof ownedBy === 'string' && { ownedBy }),
    answers: new Map(entries as [string, readonly string[]][]),
  }
}

function parseAliases(value: unknown, fail: Fail): readonly string[] {
  const isPath = (path: unknown): boolean => typeof path === 'string' && PLAIN_PATH.test(path)
  if (Array.isArray(value) && value.every(isPath)) return value as readonly string[]
  return fail('"basePathAliases" must be a list of paths such as "/api", without a trailing slash')
}

function parseCan(value: unknown, fail: Fail): Capabilities {
  const can = readObject(value, { what: '"can"', known: Object.keys(capabilityFields) }, fail)
  const flag = (name: string, byDefault: boolean): boolean => {
    const value = can[name] ?? byDefault
    return typeof value === 'boolean' ? value : fail(`"can.${name}" must be true or false`)
  }
  const outputCap = can.outputCap ?? 'max_tokens'
  if (outputCap !== 'max_tokens' && outputCap !== 'max_completion_tokens') {
    return fail('"can.outputCap" must be "max_tokens" or "max_completion_tokens"')
  }
  return {
    streamUsage: flag('streamUsage', true),
    outputCap,
    capsThought: flag('capsThought', true),
    keepsResponses: flag('keepsResponses', false),
    keepsThreads: flag('keepsThreads', false),
    labelsSessions: flag('labelsSessions', false),
    billsWhenLeft: flag('billsWhenLeft', false),
    chatFields: parseWords(can.chatFields ?? defaultChatFields, { what: 'chatFields', known: CHAT_FIELDS }, fail),
    missingChatFields: parseWords(
      can.missingChatFields ?? [],
      { what: 'missingChatFields', known: BASIC_CHAT_FIELDS },
      fail,
    ),
    ...(can.callIdChars !== undefined && { callIdChars: parseCallIdChars(can.callIdChars, fail) }),
    systemAnywhere: flag('systemAnywhere', false),
    userAfterTool: flag('userAfterTool', true),
  }
}

/** A list of known words, each of them once. */
function parseWords<Word extends string>(
  value: unknown,
  { what, known }: { what: string; known: readonly Word[] },
  fail: Fail,
): readonly Word[] {
  const isList =
    Array.isArray(value) && new Set(value).size === value.length && value.every(word => known.includes(word as Word))
  return isList ? (value as Word[]) : fail(`"can.${what}" must be a list of ${known.join(', ')}`)
}

function parseCallIdChars(value: unknown, fail: Fail): number {
  const { min, max } = CALL_ID_CHARS
  const isNumber = Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
  return isNumber ? (value as number) : fail(`"can.callIdChars" must be a number from ${min} to ${max}`)
}

/** One signing method for all dialects, or one for each. */
function parseSign(value: unknown, dialects: readonly string[], fail: Fail): Readonly<Record<string, string>> {
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value)
  const byDialect = isMap ? readObject(value, { what: '"sign"', known: dialects }, fail) : {}
  return Object.fromEntries(
    dialects.map(dialect => {
      const method = isMap ? byDialect[dialect] : value
      if (typeof method !== 'string' || method === '') {
        return fail('"sign" must be a signing method, or an object with one for each dialect')
      }
      if (!isSigningMethod(method)) fail(`"sign" has an unknown signing method: ${method}`)
      return [dialect, method]
    }),
  )
}

function parseQuirks(value: unknown, fail: Fail): readonly NamedQuirk[] {
  if (!Array.isArray(value)) return fail('"quirks" must be a list')
  return value.map((name: unknown) => {
    const quirk = typeof name === 'string' ? readQuirk(name) : undefined
    return quirk ?? fail(`"quirks" has an unknown quirk: ${String(name)}`)
  })
}

export const isTag = (text: unknown): boolean => typeof text === 'string' && TAG.test(text)

function parseTags(value: unknown, fail: Fail): readonly string[] {
  const isList = Array.isArray(value) && value.every(isTag)
  return isList
    ? (value as string[])
    : fail('"tags" must be a list of words of at most 40 lower-case letters, digits and dashes')
}

function parseMakers(value: unknown, fail: Fail): readonly MakerPattern[] {
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value)
  const entries = isMap ? Object.entries(value) : fail('"makers" must be an object of patterns such as "openai/*"')
  if (entries.length > MAKERS_MAX) fail(`"makers" may have at most ${MAKERS_MAX} patterns`)
  return entries.map(([pattern, target]) => {
    try {
      return readMakerPattern(pattern, target)
    } catch (fault) {
      return fail(`"makers": ${(fault as Error).message}`)
    }
  })
}

function parseModelList(value: unknown, fail: Fail): ModelListFields {
  try {
    return readModelListFields(value)
  } catch (fault) {
    return fail(`"modelList" ${(fault as Error).message}`)
  }
}

function parseFormerNames(value: unknown, models: ReadonlyMap<string, Model>, fail: Fail): ReadonlyMap<string, string> {
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value)
  const entries = isMap ? Object.entries(value) : fail('"formerNames" must be an object of names and model ids')
  return new Map(
    entries.map(([name, id]): [string, string] => {
      if (!isVisible(name)) fail('"formerNames": a name must have 1 to 200 visible ASCII characters')
      const isListed = typeof id === 'string' && models.has(id)
      return [name, isListed ? id : fail(`"formerNames": "${name}" must be the id of a listed model`)]
    }),
  )
}

/** Each dialect has one path, or two if streams have their own. */
function parseSpeaks(value: unknown, fail: Fail): Readonly<Record<string, DialectPaths>> {
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value)
  const entries: [string, unknown][] = isMap ? Object.entries(value) : []
  if (entries.length === 0) fail('"speaks" must name a dialect and its path')
  return Object.fromEntries(
    entries.map(([dialect, path]) => {
      const paths: readonly unknown[] = Array.isArray(path) ? path : [path, path]
      if (paths.length !== 2 || !paths.every(isPath)) fail(`"speaks.${dialect}" must be ${PATH}, or a list of two`)
      return [dialect, { plain: paths[0] as string, stream: paths[1] as string }]
    }),
  )
}

function parseCounts(value: unknown, dialects: readonly string[], fail: Fail): Readonly<Record<string, string>> {
  const counts = readObject(value, { what: '"counts"', known: dialects }, fail)
  for (const dialect of Object.keys(counts)) if (!isPath(counts[dialect])) fail(`"counts.${dialect}" must be ${PATH}`)
  return counts as Record<string, string>
}

const PATH = 'a path below the base URL, such as /chat/completions'

/** A path must stay below the base URL: no segment is empty or consists of dots. */
const isPath = (path: unknown): boolean =>
  typeof path === 'string' &&
  DIALECT_PATH.test(path) &&
  !/\/\.+(?=[/?]|$)/.test(path) &&
  !/[{}]/.test(path.replace('{model}', ''))

/** What models take over from their provider. */
interface ProviderDefaults {
  readonly free: boolean
  readonly traits: ModelTraits
  readonly times: Timeouts
  readonly dialects: readonly string[]
}

function parseModels(value: unknown, defaults: ProviderDefaults, fail: Fail): ReadonlyMap<string, Model> {
  if (!Array.isArray(value)) return fail('"models" must be a list')
  const models = new Map<string, Model>()
  for (const entry of value) {
    const json = readObject(entry, { what: 'a model', known: MODEL_FIELDS }, fail)
    const model = parseModel(json, defaults, fail)
    if (models.has(model.id)) fail(`model "${model.id}" is listed twice`)
    models.set(model.id, model)
  }
  return models
}

function parseModel(entry: Json, defaults: ProviderDefaults, fail: Fail): Model {
  const { id, name } = entry
  if (typeof id !== 'string' || !isVisible(id))
    return fail('a model needs an "id" of 1 to 200 visible ASCII characters')
  if (name !== undefined && typeof name !== 'string') fail(`model "${id}": "name" must be a string`)
  const count = (field: string): number | undefined => {
    const value = entry[field]
    const isCount = Number.isSafeInteger(value) && (value as number) > 0
    if (value === undefined || isCount) return value as number | undefined
    return fail(`model "${id}": "${field}" must be a positive integer`)
  }
  const [contextTokens, outputTokensMax] = [count('contextTokens'), count('outputTokensMax')]
  const failModel = (problem: string): never => fail(`model "${id}": ${problem}`)
  const price = entry.price === undefined ? undefined : parsePrice(entry.price, failModel)
  const speaks = entry.speaks === undefined ? undefined : parseDialects(entry.speaks, defaults.dialects, failModel)
  const traits = { ...defaults.traits, ...(entry.traits !== undefined && parseTraits(entry.traits, failModel)) }
  const timing = { defaults: defaults.times, of: 'model', fail: failModel } as const
  const times = entry.times === undefined ? undefined : parseTimeouts(entry.times, timing)
  for (const name of ['free', 'billsWhenLeft']) {
    if (entry[name] !== undefined && typeof entry[name] !== 'boolean') failModel(`"${name}" must be true or false`)
  }
  const isUnmarkedFree = price !== undefined && !defaults.free && canBeFree(price)
  if (isUnmarkedFree) failModel('a price of 0 is allowed only if the provider has "free"')
  return {
    id,
    ...(typeof name === 'string' && { name }),
    ...(contextTokens !== undefined && { contextTokens }),
    ...(outputTokensMax !== undefined && { outputTokensMax }),
    ...(speaks !== undefined && { speaks }),
    ...(price !== undefined && { price }),
    ...(Object.keys(traits).length > 0 && { traits }),
    ...(times !== undefined && { times }),
    ...(entry.free === true && { free: true }),
    ...(typeof entry.billsWhenLeft === 'boolean' && { billsWhenLeft: entry.billsWhenLeft }),
  }
}

function parseDialects(value: unknown, dialects: readonly string[], fail: Fail): readonly string[] {
  const isList =
    Array.isArray(value) && value.length > 0 && value.every(dialect => dialects.includes(dialect as string))
  return isList ? (value as string[]) : fail('"speaks" must be a list of dialects of the provider')
}
