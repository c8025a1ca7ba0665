// What one file of providers/ says, checked once when it is read. A provider is data: whatever code needs to know
// of it is a flag here with a documented default, and no code asks for its id.

import type { Traits } from '../base/money/model-traits.ts'
import { noTraits } from '../base/money/model-traits.ts'
import type { Price } from '../base/money/price.ts'
import { isOfNothing, parseIncluded, parsePrice } from '../base/money/price.ts'
import { readAddress } from '../http/address/operator-address.ts'
import type { NamedQuirk } from './quirks.ts'
import { readQuirk } from './quirks.ts'
import { parseTraits } from './read-traits.ts'
import { isWayToSign } from './signing.ts'
import type { Times } from './timeouts.ts'
import { defaultTimes, parseTimes } from './timeouts.ts'

export interface Capabilities {
  /** Reports usage at the end of a stream when asked by `stream_options.include_usage`. Default true. */
  readonly streamUsage: boolean
  /** Where it reads a cap on its output. Default `max_tokens`, the older name, which most servers still read. */
  readonly outputCap: 'max_tokens' | 'max_completion_tokens'
  /** A cap on its output is also one on what the model thinks before it answers. Default true. */
  readonly capsThought: boolean
  /** Keeps its answers in the Responses dialects, to be asked for and gone on from. Default false. */
  readonly keepsResponses: boolean
  /** It keeps threads of messages, which `thread` creates and continues. */
  readonly keepsThreads: boolean
  /**
   * Bills all of an answer when it is hung up on, as it goes on making it. Then a call goes on without its caller,
   * within bounds, to its reported usage. Default false.
   */
  readonly billsWhenLeft: boolean
}

export interface Model {
  readonly id: string
  readonly name?: string
  readonly contextTokens?: number
  readonly outputTokensMax?: number
  /** The dialects in which it answers, of those that its provider speaks; all of them if absent. */
  readonly speaks?: readonly string[]
  /** Its provider asks nothing for it, as for a moderation. Default false. */
  readonly free?: boolean
  /** Absent: not known, so the model is not served (never $0 by default). */
  readonly price?: Price
  /** Otherwise than its provider; also of use for a model that thinks in secret, which no estimate could count. */
  readonly billsWhenLeft?: boolean
  /** What it takes: its own, and for what they do not tell its provider's. */
  readonly traits?: Traits
  /** How long its calls may take, where that is not as its provider's. */
  readonly times?: Times
}

/** Where calls of one dialect are posted, below the base URL. `{model}` in a path is the model's id. */
export interface SpokenAt {
  readonly plain: string
  readonly stream: string
}

export interface Provider {
  readonly id: string
  readonly name: string
  readonly website?: string
  /**
   * Where the paths below begin, without a trailing slash. A variable of the environment may stand in it in braces, for
   * what only the operator knows; without that variable, the address must be moved for a channel to exist.
   */
  readonly baseUrl: string
  /** Paths that people write where the path of the base URL belongs, such as those of another interface. */
  readonly basePathAliases: readonly string[]
  /** The environment variables under which the vendor's users keep the key and move the address. */
  readonly keyEnv: string
  readonly baseUrlEnv: string
  /** The dialects it speaks, those that it speaks best first, each with the paths to post to. */
  readonly speaks: Readonly<Record<string, SpokenAt>>
  /** Where it counts the tokens of requests in those dialects, without answering them. Default nowhere. */
  readonly counts: Readonly<Record<string, string>>
  /** How each of them is signed. */
  readonly sign: Readonly<Record<string, string>>
  /** What it does otherwise than its dialects. Default none. */
  readonly quirks: readonly NamedQuirk[]
  /** What all its models take where they do not say otherwise, those that are not listed too. */
  readonly traits: Traits
  /** How long calls of its models may take, unless they say otherwise. */
  readonly times: Times
  readonly can: Capabilities
  /** Its tools and fields of requests that cost nothing beyond its models' prices. Default none. */
  readonly included: readonly string[]
  /** What may be said of data that goes there, such as `eu` or `no-training`. Default none. */
  readonly tags: readonly string[]
  /** Serves models that are not listed here (a local server, an aggregator). Default false. */
  readonly openModels: boolean
  /** Costs nothing, as a server of one's own does. Default false. */
  readonly free: boolean
  /** Needs no key; a channel exists as soon as the base URL variable is set. Default false. */
  readonly keyless: boolean
  /** Answered by this process itself, at an address it finds when it starts. Default false. */
  readonly builtIn: boolean
  readonly models: ReadonlyMap<string, Model>
}

export class ProviderFileError extends Error {}

type Json = Record<string, unknown>

const PROVIDER_FIELDS = [
  ...['id', 'name', 'website', 'baseUrl', 'keyEnv', 'baseUrlEnv', 'speaks', 'counts', 'sign', 'quirks'],
  'basePathAliases',
  ...['can', 'traits', 'times', 'included', 'tags', 'openModels', 'free', 'keyless', 'builtIn', 'models'],
]
const MODEL_FIELDS = [
  ...['id', 'name', 'contextTokens', 'outputTokensMax', 'speaks', 'free', 'price', 'traits', 'times', 'billsWhenLeft'],
]

/** Names end up in the X-Pipeline-Route header, so only visible ASCII passes. */
const isVisible = (text: string): boolean => /^[\x21-\x7e]{1,200}$/.test(text)

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
  return readProvider(record(json, { what: 'the file', known: PROVIDER_FIELDS }, fail), fail)
}

type Fail = (problem: string) => never

/** A JSON object with no fields but known ones: a misspelt flag must not pass for its default. */
function record(value: unknown, { what, known }: { what: string; known: readonly string[] }, fail: Fail): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail(`${what} must be an object`)
  const stranger = Object.keys(value).find(field => !known.includes(field))
  return stranger === undefined ? (value as Json) : fail(`${what} has an unknown field "${stranger}"`)
}

function readProvider(json: Json, fail: Fail): Provider {
  const string = (field: string): string => {
    const value = json[field]
    return typeof value === 'string' && value !== '' ? value : fail(`"${field}" must be a text`)
  }
  const flag = (field: string): boolean => {
    const value = json[field] ?? false
    return typeof value === 'boolean' ? value : fail(`"${field}" must be true or false`)
  }
  const shown = (text: string): string =>
    text.length <= 200 && !/\p{Cc}/u.test(text) ? text : fail('"name" must be one line of 200 characters at most')
  const webAddress = (text: string): string =>
    /^https?:\/\/[\x21-\x7e]{1,500}$/.test(text) ? text : fail('"website" must be an http(s) address')
  const id = string('id')
  if (!/^[a-z0-9][a-z0-9-]{0,39}$/.test(id)) fail('"id" must be lower-case letters, digits and dashes')
  const baseUrl = string('baseUrl')
  checkAddress(baseUrl, fail)
  const free = flag('free')
  const speaks = parseSpeaks(json.speaks, fail)
  const traits = json.traits === undefined ? noTraits : parseTraits(json.traits, fail)
  const times = parseTimes(json.times ?? {}, { otherwise: defaultTimes, of: 'provider', fail })
  return {
    id,
    name: shown(string('name')),
    ...(json.website !== undefined && { website: webAddress(string('website')) }),
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
    openModels: flag('openModels'),
    free,
    keyless: flag('keyless'),
    builtIn: flag('builtIn'),
    models: parseModels(json.models, { free, traits, times, dialects: Object.keys(speaks) }, fail),
  }
}

/** Variables may stand in it, in braces. */
function checkAddress(text: string, fail: Fail): void {
  const filled = text.replace(/\{[A-Z][A-Z0-9_]*\}/g, 'x')
  if (/[{}]/.test(filled)) fail('"baseUrl" may hold variables such as {AWS_REGION}, and no other braces')
  if (filled.endsWith('/')) fail('"baseUrl" must be without a trailing slash')
  try {
    readAddress(filled)
  } catch (fault) {
    fail(`"baseUrl" ${(fault as Error).message}`)
  }
}

function parseAliases(value: unknown, fail: Fail): readonly string[] {
  const isPath = (path: unknown): boolean => typeof path === 'string' && /^(\/[\w.-]+)+$/.test(path)
  if (Array.isArray(value) && value.every(isPath)) return value as readonly string[]
  return fail('"basePathAliases" must be a list of paths such as "/api", without a trailing slash')
}

function parseCan(value: unknown, fail: Fail): Capabilities {
  const known = ['streamUsage', 'outputCap', 'capsThought', 'keepsResponses', 'keepsThreads', 'billsWhenLeft']
  const can = record(value, { what: '"can"', known }, fail)
  const flag = (name: string, unsaid: boolean): boolean => {
    const given = can[name] ?? unsaid
    return typeof given === 'boolean' ? given : fail(`"can.${name}" must be true or false`)
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
    billsWhenLeft: flag('billsWhenLeft', false),
  }
}

/** One way for all dialects, or each with its own. */
function parseSign(value: unknown, dialects: readonly string[], fail: Fail): Readonly<Record<string, string>> {
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value)
  const given = isMap ? record(value, { what: '"sign"', known: dialects }, fail) : {}
  return Object.fromEntries(
    dialects.map(dialect => {
      const way = isMap ? given[dialect] : value
      if (typeof way !== 'string' || way === '') return fail('"sign" must be a text, or one for each dialect')
      if (!isWayToSign(way)) fail(`"sign" is not a way we know: ${way}`)
      return [dialect, way]
    }),
  )
}

function parseQuirks(value: unknown, fail: Fail): readonly NamedQuirk[] {
  if (!Array.isArray(value)) return fail('"quirks" must be a list')
  return value.map((name: unknown) => {
    const quirk = typeof name === 'string' ? readQuirk(name) : undefined
    return quirk ?? fail(`"quirks" has one that we do not know: ${String(name)}`)
  })
}

export const isTag = (text: unknown): boolean => typeof text === 'string' && /^[a-z0-9-]{1,40}$/.test(text)

function parseTags(value: unknown, fail: Fail): readonly string[] {
  const isList = Array.isArray(value) && value.every(isTag)
  return isList ? (value as string[]) : fail('"tags" must be a list of words of lower-case letters, digits and dashes')
}

/** Each dialect with one path, or with two where streams have their own. */
function parseSpeaks(value: unknown, fail: Fail): Readonly<Record<string, SpokenAt>> {
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value)
  const entries: [string, unknown][] = isMap ? Object.entries(value) : []
  if (entries.length === 0) fail('"speaks" must name a dialect and its path')
  return Object.fromEntries(
    entries.map(([dialect, given]) => {
      const paths: readonly unknown[] = Array.isArray(given) ? given : [given, given]
      if (paths.length !== 2 || !paths.every(isPath)) fail(`"speaks.${dialect}" must be ${PATH}, or a list of two`)
      return [dialect, { plain: paths[0] as string, stream: paths[1] as string }]
    }),
  )
}

function parseCounts(value: unknown, dialects: readonly string[], fail: Fail): Readonly<Record<string, string>> {
  const counts = record(value, { what: '"counts"', known: dialects }, fail)
  for (const dialect of Object.keys(counts)) if (!isPath(counts[dialect])) fail(`"counts.${dialect}" must be ${PATH}`)
  return counts as Record<string, string>
}

const PATH = 'a path below the base URL, such as /chat/completions'

/** Below the base URL: no segment is empty or made of dots, which would lead out of it. */
const isPath = (path: unknown): boolean =>
  typeof path === 'string' &&
  /^(\/[A-Za-z0-9._:{}-]+)+(\?[A-Za-z0-9=&._-]+)?$/.test(path) &&
  !/\/\.+(?=[/?]|$)/.test(path) &&
  !/[{}]/.test(path.replace('{model}', ''))

interface Shared {
  readonly free: boolean
  readonly traits: Traits
  readonly times: Times
  readonly dialects: readonly string[]
}

function parseModels(value: unknown, shared: Shared, fail: Fail): ReadonlyMap<string, Model> {
  if (!Array.isArray(value)) return fail('"models" must be a list')
  const models = new Map<string, Model>()
  for (const entry of value) {
    const json = record(entry, { what: 'a model', known: MODEL_FIELDS }, fail)
    const model = parseModel(json, shared, fail)
    if (models.has(model.id)) fail(`model "${model.id}" stands twice`)
    models.set(model.id, model)
  }
  return models
}

function parseModel(entry: Json, shared: Shared, fail: Fail): Model {
  const { id, name } = entry
  if (typeof id !== 'string' || !isVisible(id)) return fail('a model needs an "id" of visible characters')
  if (name !== undefined && typeof name !== 'string') fail(`model "${id}": "name" must be a text`)
  const count = (field: string): number | undefined => {
    const value = entry[field]
    const isCount = Number.isSafeInteger(value) && (value as number) > 0
    if (value === undefined || isCount) return value as number | undefined
    return fail(`model "${id}": "${field}" must be a positive integer`)
  }
  const [contextTokens, outputTokensMax] = [count('contextTokens'), count('outputTokensMax')]
  const failModel = (problem: string): never => fail(`model "${id}": ${problem}`)
  const price = entry.price === undefined ? undefined : parsePrice(entry.price, failModel)
  const speaks = entry.speaks === undefined ? undefined : parseDialects(entry.speaks, shared.dialects, failModel)
  const traits = { ...shared.traits, ...(entry.traits !== undefined && parseTraits(entry.traits, failModel)) }
  const timing = { otherwise: shared.times, of: 'model', fail: failModel } as const
  const times = entry.times === undefined ? undefined : parseTimes(entry.times, timing)
  for (const name of ['free', 'billsWhenLeft']) {
    if (entry[name] !== undefined && typeof entry[name] !== 'boolean') failModel(`"${name}" must be true or false`)
  }
  const isGivenAway = price !== undefined && !shared.free && isOfNothing(price)
  if (isGivenAway) failModel('a price of nothing needs "free" on the provider')
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

function parseDialects(value: unknown, spoken: readonly string[], fail: Fail): readonly string[] {
  const isList = Array.isArray(value) && value.length > 0 && value.every(dialect => spoken.includes(dialect as string))
  return isList ? (value as string[]) : fail('"speaks" must be a list of dialects of the provider')
}
