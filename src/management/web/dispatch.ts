// Answers requests to /api/web/* and /api/auth/*: finds the endpoint, checks the actor, parses the request, runs the
// endpoint, and returns only fields of its answer schema. Loaded by the first such request; calls do not need it.

import type * as z from 'zod'
import { Refusal, refusal } from '../../base/errors.ts'
import type { Place, RequestPart } from '../../base/hint-sentences.ts'
import type { Hint, Must } from '../../base/hints.ts'
import { hintOf, hintOfValue } from '../../base/hints.ts'
import { pathOfBrokenText } from '../../base/text/broken-text.ts'
import type { ObjectScan, ScanBounds, ScanProblem } from '../../base/text/json-bytes.ts'
import { countFields, countNames, decodeName, hasLoneSurrogate, scanObject } from '../../base/text/json-bytes.ts'
import { nearestName } from '../../base/text/nearest-name.ts'
import { bodyRules } from '../../http/server/body-rules.ts'
import type { Actor } from '../actor.ts'
import { isAtLeast, operator, refuseServiceToken, resolveScope, subjectOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { EndpointAnswer, Method, WebEndpoint } from '../resources/endpoint.ts'
import { isRead } from '../resources/endpoint.ts'
import { buildWebEndpoints } from '../resources/table.ts'
import { markOwned } from '../services/file-ownership.ts'
import { bearsServiceToken } from './bearer-check.ts'
import { mustOf } from './issue-text.ts'
import { RequestShares } from './request-shares.ts'
import { refuseOtherSites } from './same-site.ts'

export interface WebRequest {
  readonly method: string
  readonly path: string
  readonly requestId: string
  readonly address: string
  /** The signed-in actor; undefined under /api/auth. */
  readonly actor: Actor | undefined
  /** The name of the operator in the audit log, if it is not `cli`. */
  readonly author?: string
  header(name: string): string | undefined
  /** The query string, without the question mark. */
  readonly search: string
  /** Reads the body, up to its size limit. */
  readBody(): Promise<Buffer>
}

export interface WebResponse {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

export type HandleWebRequest = (request: WebRequest) => Promise<WebResponse | Response>

interface EndpointPath {
  readonly endpoint: WebEndpoint
  readonly segments: readonly string[]
}

const AUTH = '/api/auth/'
/** The paths under /api/auth that are open before there is an owner. */
const BEFORE_SETUP = ['/api/auth/setup', '/api/auth/session']

export function buildWebApp(parts: ManagementParts): HandleWebRequest {
  const table = buildWebEndpoints(parts)
  const paths: readonly EndpointPath[] = table.map(endpoint => ({ endpoint, segments: endpoint.path.split('/') }))
  const shares = new RequestShares(parts)
  return async function answerWeb(request) {
    // Requests without an actor have limits of their own, such as those of signing in. The operator has none.
    const isLimited = request.actor !== undefined && request.actor !== operator
    const release = isLimited ? shares.enter(request.actor, methodOf(request) === 'GET') : undefined
    try {
      return await answer(request)
    } finally {
      release?.()
    }
  }

  async function answer(request: WebRequest): Promise<WebResponse | Response> {
    if (request.path.startsWith(AUTH)) checkAuthRequest(request, await parts.reader.people.hasOwner())
    const segments = request.path.split('/')
    const matches = paths.filter(path => matchesPath(path.segments, segments)).sort(bySpecificity)
    const match = matches.find(
      ({ endpoint }) => endpoint.method === methodOf(request) && !isHeadOfWrite(request, endpoint),
    )
    if (match === undefined) throw noEndpoint(request, matches)
    const { endpoint } = match
    const actor = request.actor ?? nobody
    if (endpoint.who !== 'nobody' && request.actor === undefined) throw new Refusal('token_invalid', request.path)
    const scope = resolveScope(endpoint.who, actor, isRead(endpoint))
    const params = read(endpoint.params, pathParams(match.segments, segments), 'path')
    const query = read(endpoint.query, queryOf(request.search), 'query')
    const body = endpoint.body === undefined && !hasBody(request) ? undefined : await bodyOf(endpoint, request, actor)
    const changes = endpoint.changes?.(params as never, body as never) ?? []
    await parts.ownership.refuseChange(changes, { scope, queryWorker: parts.queryWorker })
    // One write was counted for the method, before anything else.
    if (request.actor !== undefined) shares.countWrites(actor, endpoint.writes ? 1 : changes.length - 1)
    const expects = versionOf(request.header('if-match'))
    const result = await endpoint.run({
      actor,
      scope,
      requestId: request.requestId,
      address: request.address,
      params: params as never,
      query: query as never,
      body: body as never,
      by: {
        actor: request.author ?? (actor === nobody ? 'nobody' : subjectOf(actor)),
        ...(actor !== operator && { address: request.address, request: request.requestId }),
        ...(expects !== undefined && { expectedVersion: expects }),
      },
      header: name => request.header(name),
    })
    return result instanceof Response ? result : reply(endpoint, result, { query, ownership: parts.ownership })
  }
}

/**
 * Service tokens do not sign in, and are refused without a check. Until there is an owner, only the set-up and the start
 * of a page are allowed.
 */
function checkAuthRequest(request: WebRequest, isSetUp: boolean): void {
  if (bearsServiceToken(request.header('authorization'))) refuseServiceToken('nobody')
  if (!isSetUp && !BEFORE_SETUP.includes(request.path)) throw new Refusal('setup_needed', request.path)
  if (methodOf(request) !== 'GET') refuseOtherSites(name => request.header(name))
}

/** No person has this id; 0 is the operator. */
const nobody: Actor = { personId: -1, role: 'member', sessionId: -1 }

const methodOf = ({ method }: WebRequest): Method => (method === 'HEAD' ? 'GET' : (method as Method))

const isHeadOfWrite = ({ method }: WebRequest, { writes }: WebEndpoint): boolean => method === 'HEAD' && writes === true

const isParameter = (segment: string): boolean => segment.startsWith('{')

/** The last parameter may match the rest of the path, because model names contain slashes. */
const takesRest = (pattern: readonly string[]): boolean => pattern.at(-1)!.endsWith('*}')

const matchesPath = (pattern: readonly string[], path: readonly string[]): boolean =>
  (pattern.length === path.length || (takesRest(pattern) && path.length > pattern.length)) &&
  pattern.every((segment, at) => (isParameter(segment) ? path[at] !== '' : segment === path[at]))

/** A literal path comes before one with a parameter, and that before one whose parameter takes the rest. */
const bySpecificity = (a: EndpointPath, b: EndpointPath): number =>
  Number(takesRest(a.segments)) - Number(takesRest(b.segments)) ||
  a.segments.filter(isParameter).length - b.segments.filter(isParameter).length

function noEndpoint({ path }: WebRequest, matches: readonly EndpointPath[]): Refusal {
  if (matches.length === 0) return new Refusal('path_unknown', path)
  const allow = [...new Set(matches.map(({ endpoint }) => endpoint.method))].join(', ')
  return new Refusal('method_not_allowed', path, { headers: { allow } })
}

function pathParams(pattern: readonly string[], path: readonly string[]): Record<string, string> {
  const parameters = pattern.flatMap((segment, at) =>
    isParameter(segment) ? [[segment.slice(1, -1), at] as const] : [],
  )
  const value = (name: string, at: number): string => (name.endsWith('*') ? path.slice(at).join('/') : path[at]!)
  return Object.fromEntries(parameters.map(([name, at]) => [name.replace('*', ''), value(name, at)]))
}

/** A query parameter that is given twice is refused, because ignoring one value would hide a mistake. */
function queryOf(search: string): Record<string, string> {
  const query: Record<string, string> = Object.create(null) as Record<string, string>
  for (const [name, value] of new URLSearchParams(search)) {
    const param = name.slice(0, 50)
    if (name in query)
      throw new Refusal('field_duplicate', param, { param, hint: hintOf('twice', { part: 'query', name: param }) })
    query[name] = value
  }
  return query
}

/** Runs before the JSON parser: half a million brackets take the parser 76 ms, and this a few microseconds. */
function checkShape(bytes: Buffer, within: ScanBounds): ObjectScan | ScanProblem {
  const scan = scanObject(bytes, within)
  if (scan === 'too_deep') {
    throw new Refusal('json_too_deep', 'management', { hint: hintOf('levels_max', { max: within.depthMax }) })
  }
  if (scan === 'too_many') {
    throw new Refusal('json_too_many', 'management', { hint: hintOf('values_max', { max: within.valuesMax }) })
  }
  return scan
}

/** JSON.parse() takes the last of several values of a field, and readers before the gateway may have taken the first. */
function refuseDuplicates(bytes: Buffer, json: object, { duplicates, counts }: ObjectScan): void {
  const [first] = duplicates
  if (first !== undefined) {
    const param = first.slice(0, 50)
    throw new Refusal('field_duplicate', param, { param, hint: hintOf('twice', { part: 'body', name: param }) })
  }
  if (counts.fields === countFields(json)) return
  const param = nameGivenTwice(bytes, json).slice(0, 50)
  throw new Refusal('field_duplicate', 'in an object', { param, hint: hintOf('call_names_twice', { name: param }) })
}

/** The name of a field that an object within the body has twice: it is written more often than it was parsed. */
function nameGivenTwice(bytes: Buffer, json: object): string {
  const scan = scanObject(bytes, { ...bodyRules.person.json, namesMax: bodyRules.person.json.valuesMax })
  const names = typeof scan === 'string' ? undefined : scan.names
  const written = new Map<string, number>(Object.keys(json).map(name => [name, 1]))
  for (const [key, { count }] of names ?? []) {
    const name = decodeName(key) ?? key
    written.set(name, (written.get(name) ?? 0) + count)
  }
  const parsed = countNames(json)
  return [...written.keys()].find(name => written.get(name) !== parsed.get(name)) ?? ''
}

/** Also where the endpoint takes none: then it must be empty, because it may hold what its sender believes to be obeyed. */
const hasBody = (request: WebRequest): boolean =>
  methodOf(request) !== 'GET' &&
  (Number(request.header('content-length')) > 0 || request.header('transfer-encoding') !== undefined)

async function bodyOf(endpoint: WebEndpoint, request: WebRequest, actor: Actor): Promise<unknown> {
  const bytes = await request.readBody()
  const scan = checkShape(bytes, bodyRules[request.actor === undefined ? 'anonymous' : 'person'].json)
  let json: unknown
  try {
    json = JSON.parse(bytes.toString('utf8'))
  } catch {
    throw new Refusal('json_invalid', 'management')
  }
  const isObject = typeof json === 'object' && json !== null && !Array.isArray(json)
  if (!isObject) throw new Refusal('body_not_object', 'management')
  if (typeof scan !== 'string') refuseDuplicates(bytes, json as object, scan)
  if (hasLoneSurrogate(bytes)) throw brokenText(pathOfBrokenText(json) ?? [])
  const body = read(endpoint.body as z.ZodType | undefined, json, 'body')
  for (const [field, least] of Object.entries(endpoint.reserved ?? {})) {
    const isAllowed = least === 'operator' ? actor === operator : isAtLeast(actor.role, least)
    if (isAllowed || !Object.hasOwn(json as object, field)) continue
    throw new Refusal('role_too_low', field, { param: field, hint: hintOf('only_for', { role: least, name: field }) })
  }
  return body
}

function brokenText(path: readonly PropertyKey[]): Refusal {
  const name = path.join('.')
  const must: Must = ['invalid', { must: hintOf('must_be_unicode') }]
  return refusal('field_invalid', hintOfValue({ part: 'body', name }, must), name === '' ? undefined : name)
}

function read(schema: z.ZodType | undefined, value: unknown, part: RequestPart): unknown {
  if (schema === undefined) {
    const [first] = Object.keys(value as object)
    if (first === undefined || part === 'path') return {}
    throw unknownField(first, [], part)
  }
  const { success, data, error } = schema.safeParse(value)
  if (success) return data
  const [issue] = error.issues
  if (part === 'path') throw unknownSegment(issue)
  if (issue?.code === 'unrecognized_keys') {
    const names = fieldsAt(schema, issue.path).map(name => [...issue.path, name].join('.'))
    throw unknownField([...issue.path, issue.keys[0]!].join('.'), names, part)
  }
  const param = issue?.path.join('.') ?? ''
  const isMissing = issue !== undefined && param !== '' && valueAt(value, issue.path) === undefined
  const place = { part, name: param }
  const must: Must = issue === undefined ? ['invalid', { must: hintOf('must_be_readable') }] : mustOf(issue)
  const hint = isMissing ? missingHint(issue, place) : hintOfValue(place, must)
  throw refusal('field_invalid', hint, param === '' ? undefined : param)
}

type Issue = z.core.$ZodIssue

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((at, name) => (at as Readonly<Record<PropertyKey, unknown>> | null | undefined)?.[name], value)

function missingHint(issue: Issue, place: Place): Hint {
  if (issue.code === 'invalid_value') return hintOf('missing_one_of', { ...place, allowed: issue.values.join(', ') })
  return 'expected' in issue
    ? hintOf('missing_type', { ...place, type: String(issue.expected) })
    : hintOf('missing', place)
}

/** A malformed id is the id of nothing. If the segment must be one of a few words, the error lists them. */
function unknownSegment(issue: Issue | undefined): Refusal {
  if (issue?.code !== 'invalid_value') return new Refusal('resource_unknown', 'malformed id')
  return refusal(
    'resource_unknown',
    hintOf('segment_one_of', { name: issue.path.join('.'), allowed: issue.values.join(', ') }),
  )
}

/** What is inside a schema: the fields of an object, the items of a list, the type that is optional. */
interface SchemaParts {
  readonly shape: Readonly<Record<string, z.ZodType>>
  readonly element: z.ZodType
  readonly unwrap: () => z.ZodType
}

/** The names of the known fields at this path. */
function fieldsAt(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  const { shape, element, unwrap } = schema as Partial<SchemaParts>
  if (unwrap !== undefined && element === undefined) return fieldsAt(unwrap(), path)
  const [name, ...below] = path
  if (name === undefined) return Object.keys(shape ?? {})
  const inner = typeof name === 'number' ? element : shape?.[String(name)]
  return inner === undefined ? [] : fieldsAt(inner, below)
}

const FIELDS_LISTED_MAX = 30

function unknownField(name: string, known: readonly string[], part: RequestPart): Refusal {
  const param = name.slice(0, 100)
  const near = nearestName(param, known)
  return new Refusal('field_unknown', param, { param, hint: unknownHint({ part, name: param }, near, known) })
}

function unknownHint(place: Place, near: string | undefined, known: readonly string[]): Hint {
  if (near !== undefined) return hintOf('unknown_near', { ...place, near })
  if (known.length === 0) return hintOf(place.part === 'query' ? 'unknown_none' : 'unknown', place)
  return known.length <= FIELDS_LISTED_MAX
    ? hintOf('unknown_allowed', { ...place, allowed: known.join(', ') })
    : hintOf('unknown', place)
}

/**
 * A version that no row has. Version 0 is that of a row that does not exist yet, such as a balance alert that is not
 * set.
 */
const NEVER_ISSUED = -1

/** The version in `If-Match: "7"`. `*` means the same as no header. */
function versionOf(header: string | undefined): number | undefined {
  if (header === undefined || header === '*') return undefined
  const version = /^(?:W\/)?"(\d{1,15})"$/.exec(header)?.[1]
  return version === undefined ? NEVER_ISSUED : Number(version)
}

interface ReplyParts {
  readonly query: unknown
  readonly ownership: ManagementParts['ownership']
}

function reply(endpoint: WebEndpoint, answer: EndpointAnswer<unknown>, { query, ownership }: ReplyParts): WebResponse {
  const status = answer.status ?? endpoint.status ?? 200
  const etag = answer.version === undefined ? {} : { etag: `"${answer.version}"` }
  const headers = { ...etag, ...clamped(answer.body, query), ...answer.headers }
  if (status === 204) return { status, body: '', headers }
  // No 304 for If-None-Match: the version counts changes by people, and an answer has more, such as a balance.
  const shown = endpoint.answer.parse(answer.body)
  markOwned(endpoint.path, shown, ownership)
  return { status, body: JSON.stringify(shown), headers }
}

/** A header that says that the page is smaller than requested. */
function clamped(body: unknown, query: unknown): Record<string, string> {
  const requested = (query as { limit?: unknown }).limit
  const actual = (body as { limit?: unknown } | undefined)?.limit
  const isSmaller = typeof requested === 'number' && typeof actual === 'number' && actual < requested
  return isSmaller ? { 'x-weir-clamped': `limit=${actual}` } : {}
}
