// Answers what comes to /api/web/* and /api/auth/*: finds the row, sees who asks, reads what is asked, runs it, and
// shows nothing but what the row's answer has a place for. Loaded by the first who asks: calls do without it.

import type * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import type { ScanBounds } from '../../base/text/json-bytes.ts'
import { scanObject } from '../../base/text/json-bytes.ts'
import { nearest } from '../../base/text/nearest-name.ts'
import { bodyRules } from '../../http/server/body-rules.ts'
import type { Actor } from '../actor.ts'
import { isAtLeast, scopeOf, subjectOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { EndpointAnswer, Method, WebEndpoint } from '../resources/endpoint.ts'
import { buildWebEndpoints } from '../resources/table.ts'
import { Shares } from './query-shares.ts'
import { refuseOtherSites } from './same-site.ts'

export interface WebAsk {
  readonly method: string
  readonly path: string
  readonly requestId: string
  readonly address: string
  /** Who is signed in; undefined under /api/auth. */
  readonly actor: Actor | undefined
  header(name: string): string | undefined
  /** Without the question mark. */
  readonly search: string
  /** Within the bounds of one. */
  readBody(): Promise<Buffer>
}

export interface WebReply {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

export type AnswerWeb = (ask: WebAsk) => Promise<WebReply | Response>

interface Way {
  readonly endpoint: WebEndpoint
  readonly segments: readonly string[]
}

const AUTH = '/api/auth/'
const SETUP = '/api/auth/setup'

export function buildWebApp(parts: ManagementParts): AnswerWeb {
  const table = buildWebEndpoints(parts)
  const ways: readonly Way[] = table.map(endpoint => ({ endpoint, segments: endpoint.path.split('/') }))
  const shares = new Shares(parts.nowMs)
  return async function answerWeb(ask) {
    // Whoever is not signed in is bounded by what they may try.
    const leave = ask.actor && shares.enter(ask.actor, methodOf(ask) === 'GET')
    try {
      return await answered(ask)
    } finally {
      leave?.()
    }
  }

  async function answered(ask: WebAsk): Promise<WebReply | Response> {
    if (ask.path.startsWith(AUTH)) admitStranger(ask, parts.reader.people.hasOwner)
    const segments = ask.path.split('/')
    const there = ways.filter(way => fits(way.segments, segments)).sort(bySharpness)
    const way = there.find(({ endpoint }) => endpoint.method === methodOf(ask))
    if (way === undefined) throw notThere(ask, there)
    const { endpoint } = way
    const actor = ask.actor ?? nobody
    if (endpoint.who !== 'nobody' && ask.actor === undefined) throw new Refusal('token_invalid', ask.path)
    const scope = scopeOf(endpoint.who, actor, endpoint.method === 'GET')
    const params = read(endpoint.params, named(way.segments, segments), 'path')
    const query = read(endpoint.query, queryOf(ask.search), 'query')
    const body = endpoint.body === undefined ? undefined : await bodyOf(endpoint, ask, actor)
    const expects = versionOf(ask.header('if-match'))
    const answer = await endpoint.run({
      ...{ actor, scope, requestId: ask.requestId, address: ask.address },
      ...{ params: params as never, query: query as never, body: body as never },
      by: {
        actor: actor === nobody ? 'nobody' : subjectOf(actor.personId),
        ...{ address: ask.address, request: ask.requestId },
        ...(expects !== undefined && { expects }),
      },
      header: name => ask.header(name),
    })
    return answer instanceof Response ? answer : reply(endpoint, answer, { ask, query })
  }
}

/** Until there is an owner nothing can be asked but to become one. */
function admitStranger(ask: WebAsk, isSetUp: boolean): void {
  if (!isSetUp && ask.path !== SETUP) throw new Refusal('setup_needed', ask.path)
  if (methodOf(ask) !== 'GET') refuseOtherSites(name => ask.header(name))
}

/** No person has this number, and 0 is the operator. */
const nobody: Actor = { personId: -1, role: 'member', sessionId: -1 }

const methodOf = ({ method }: WebAsk): Method => (method === 'HEAD' ? 'GET' : (method as Method))

const isHole = (segment: string): boolean => segment.startsWith('{')

/** The last one may stand for all that is left, as names of models have slashes in them. */
const takesRest = (way: readonly string[]): boolean => way.at(-1)!.endsWith('*}')

const fits = (way: readonly string[], path: readonly string[]): boolean =>
  (way.length === path.length || (takesRest(way) && path.length > way.length)) &&
  way.every((segment, at) => (isHole(segment) ? path[at] !== '' : segment === path[at]))

/** A path that is written out wins over one with a hole there, and that over one with all that is left. */
const bySharpness = (a: Way, b: Way): number =>
  Number(takesRest(a.segments)) - Number(takesRest(b.segments)) ||
  a.segments.filter(isHole).length - b.segments.filter(isHole).length

function notThere({ path }: WebAsk, there: readonly Way[]): Refusal {
  if (there.length === 0) return new Refusal('path_unknown', path)
  const allow = [...new Set(there.map(({ endpoint }) => endpoint.method))].join(', ')
  return new Refusal('method_not_allowed', path, { headers: { allow } })
}

function named(way: readonly string[], path: readonly string[]): Record<string, string> {
  const holes = way.flatMap((segment, at) => (isHole(segment) ? [[segment.slice(1, -1), at] as const] : []))
  const value = (name: string, at: number): string => (name.endsWith('*') ? path.slice(at).join('/') : path[at]!)
  return Object.fromEntries(holes.map(([name, at]) => [name.replace('*', ''), value(name, at)]))
}

/** A name that stands there twice is a mistake that must not be passed over. */
function queryOf(search: string): Record<string, string> {
  const query: Record<string, string> = Object.create(null) as Record<string, string>
  for (const [name, value] of new URLSearchParams(search)) {
    const param = name.slice(0, 50)
    const hint = `The query parameter "${param}" is given more than once.`
    if (name in query) throw new Refusal('field_duplicate', param, { param, hint })
    query[name] = value
  }
  return query
}

/** Before it is parsed: half a million brackets take a parser 76 ms, and this a few microseconds. */
function checkShape(bytes: Buffer, within: ScanBounds): void {
  const scan = scanObject(bytes, within)
  if (scan === 'too_deep') {
    throw new Refusal('json_too_deep', 'management', { hint: `It may have ${within.depthMax} levels.` })
  }
  if (scan === 'too_many') {
    throw new Refusal('json_too_many', 'management', { hint: `It may hold ${within.valuesMax}.` })
  }
}

async function bodyOf(endpoint: WebEndpoint, ask: WebAsk, actor: Actor): Promise<unknown> {
  const bytes = await ask.readBody()
  checkShape(bytes, bodyRules[ask.actor === undefined ? 'stranger' : 'person'].json)
  let json: unknown
  try {
    json = JSON.parse(bytes.toString('utf8'))
  } catch {
    throw new Refusal('json_invalid', 'management')
  }
  const isObject = typeof json === 'object' && json !== null && !Array.isArray(json)
  if (!isObject) throw new Refusal('body_not_object', 'management')
  const body = read(endpoint.body as z.ZodType, json, 'body')
  for (const [field, least] of Object.entries(endpoint.reserved ?? {})) {
    if (!Object.hasOwn(json as object, field) || isAtLeast(actor.role, least)) continue
    throw new Refusal('role_too_low', field, { param: field, hint: `Only ${least}s may set "${field}".` })
  }
  return body
}

/** Where something stands that is asked for, and what it is called there. */
const places = { path: 'path segment', query: 'query parameter', body: 'field' } as const
type Place = keyof typeof places

function read(schema: z.ZodType | undefined, value: unknown, place: Place): unknown {
  if (schema === undefined) {
    const [first] = Object.keys(value as object)
    if (first === undefined || place === 'path') return {}
    throw unknownField(first, [], place)
  }
  const { success, data, error } = schema.safeParse(value)
  if (success) return data
  const [issue] = error.issues
  if (place === 'path') throw unknownSegment(issue)
  if (issue?.code === 'unrecognized_keys') {
    throw unknownField([...issue.path, issue.keys[0]!].join('.'), fieldsAt(schema, issue.path), place)
  }
  const param = issue?.path.join('.') ?? ''
  const isMissing = issue !== undefined && param !== '' && valueAt(value, issue.path) === undefined
  const hint = isMissing ? missingText(issue, param, place) : invalidText(issue, param, place)
  throw new Refusal('field_invalid', hint, { hint, ...(param !== '' && { param }) })
}

type Issue = z.core.$ZodIssue

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((at, name) => (at as Readonly<Record<PropertyKey, unknown>> | null | undefined)?.[name], value)

const missingText = (issue: Issue, param: string, place: Place): string => {
  if (issue.code === 'invalid_value') {
    return `The required ${places[place]} "${param}" is missing. It must be one of: ${issue.values.join(', ')}.`
  }
  const wanted = 'expected' in issue ? ` It must be of type ${String(issue.expected)}.` : ''
  return `The required ${places[place]} "${param}" is missing.${wanted}`
}

const invalidText = (issue: Issue | undefined, param: string, place: Place): string => {
  const what = param === '' ? `The ${place === 'body' ? 'body' : 'query'}` : `The ${places[place]} "${param}"`
  return `${what} is not valid: ${issue?.message ?? 'it cannot be read'}.`
}

/** An id that we never wrote is an id of nothing; of a word that must be one of a few, they are listed. */
function unknownSegment(issue: Issue | undefined): Refusal {
  if (issue?.code !== 'invalid_value') return new Refusal('resource_unknown', 'an id that we never wrote')
  const hint = `The path segment "${issue.path.join('.')}" must be one of: ${issue.values.join(', ')}.`
  return new Refusal('resource_unknown', hint, { hint })
}

/** The names of the fields that are known there. */
function fieldsAt(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  const shape = path.length === 0 ? (schema as { readonly shape?: Readonly<Record<string, unknown>> }).shape : undefined
  return Object.keys(shape ?? {})
}

const FIELDS_TOLD = 30

function unknownField(name: string, known: readonly string[], place: Place): Refusal {
  const param = name.slice(0, 100)
  const near = nearest(param, known)
  const also = known.length > 0 && known.length <= FIELDS_TOLD ? ` Allowed: ${known.join(', ')}.` : ''
  const meant = near === undefined ? also : ` Did you mean "${near}"?`
  const none = known.length === 0 && place === 'query' ? ' This path takes no query parameters.' : ''
  const hint = `The ${places[place]} "${param}" is not known.${meant}${none}`
  return new Refusal('field_unknown', param, { param, hint })
}

/** Of `If-Match: "7"`; any (`*`) and none are the same. */
function versionOf(header: string | undefined): number | undefined {
  if (header === undefined || header === '*') return undefined
  const version = /^(?:W\/)?"(\d{1,15})"$/.exec(header)?.[1]
  // What we never gave cannot be what they have seen.
  return version === undefined ? 0 : Number(version)
}

interface Asked {
  readonly ask: WebAsk
  readonly query: unknown
}

function reply(endpoint: WebEndpoint, answer: EndpointAnswer<unknown>, { ask, query }: Asked): WebReply {
  const status = answer.status ?? endpoint.status ?? 200
  const etag = answer.version === undefined ? {} : { etag: `"${answer.version}"` }
  const headers = { ...etag, ...clamped(answer.body, query), ...answer.headers }
  if (status === 204) return { status, body: '', headers }
  if (endpoint.method === 'GET' && etag.etag !== undefined && ask.header('if-none-match') === etag.etag) {
    return { status: 304, body: '', headers }
  }
  return { status, body: JSON.stringify(endpoint.answer.parse(answer.body)), headers }
}

/** A page that is smaller than was asked for says so. */
function clamped(body: unknown, query: unknown): Record<string, string> {
  const asked = (query as { limit?: unknown }).limit
  const given = (body as { limit?: unknown } | undefined)?.limit
  const isLess = typeof asked === 'number' && typeof given === 'number' && given < asked
  return isLess ? { 'x-weir-clamped': `limit=${given}` } : {}
}
