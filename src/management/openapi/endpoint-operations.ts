// Describes the management interface from its endpoint rows, with the same schemas that parse the requests.

import type { ErrorCode } from '../../base/errors.ts'
import { settersOf } from '../../base/hint-sentences.ts'
import { isForPeople, staffRoleFor } from '../actor.ts'
import type { WebEndpoint } from '../resources/endpoint.ts'
import { isRead } from '../resources/endpoint.ts'
import { describeErrors, describeOtherErrors } from './error-answers.ts'
import type { Content, JsonSchema, OpenApiResponse, Operation, OperationRoles, Parameter } from './operation.ts'
import { headerRef, JSON_TYPE } from './operation.ts'
import { authErrors, operationErrors } from './operation-errors.ts'
import { sampleOf } from './samples.ts'
import type { Schemas } from './schemas.ts'

const DIALECT = 'openai-chat'

export function describeEndpoint(row: WebEndpoint, schemas: Schemas): Operation {
  const isAuth = row.path.startsWith('/api/auth/')
  const { method, who, summary, reserved = {} } = row
  const reservedTexts = Object.entries(Object.groupBy(Object.entries(reserved), ([, role]) => role)).map(
    ([role, fields]) => `Only ${settersOf(role)} may set ${fields!.map(([field]) => `\`${field}\``).join(', ')}.`,
  )
  return {
    method,
    path: row.path.replaceAll('*}', '}'),
    operationId: operationIdOf(row),
    tag: isAuth ? 'Sign in' : row.path.split('/')[3]!,
    summary,
    ...(reservedTexts.length > 0 && { description: reservedTexts.join(' ') }),
    auth: who === 'nobody' ? 'nobody' : isForPeople(who) ? 'session' : 'token',
    who: whoText(row),
    roles: rolesOf(row),
    dialect: DIALECT,
    parameters: [...parametersOf(row, schemas), ...(isEdit(row) ? [ifMatch] : [])],
    ...(row.body && { requestBody: { required: true, content: { [JSON_TYPE]: bodyOf(row, schemas) } } }),
    responses: {
      [String(row.status ?? 200)]: answerOf(row, schemas),
      ...describeErrors(codesOf(row), DIALECT),
      default: describeOtherErrors(DIALECT),
    },
  }
}

/** True if the endpoint changes or removes an existing resource. */
const isEdit = (row: WebEndpoint): boolean => !isRead(row) && row.params !== undefined

function rolesOf(row: WebEndpoint): OperationRoles {
  const { who, reserved } = row
  const fields = reserved === undefined ? {} : { fields: reserved }
  if (typeof who === 'string') return { site: who === 'nobody' ? null : 'member', account: null, ...fields }
  if ('site' in who) return { site: who.site, account: null, ...fields }
  return { site: staffRoleFor(isRead(row)), account: who.account, ...fields }
}

function whoText(row: WebEndpoint): string {
  const { who } = row
  if (who === 'nobody') return 'everybody'
  if (who === 'person') return 'everybody who is signed in, but no service tokens'
  if (who === 'actor') return 'everybody who is signed in'
  if ('site' in who) return `${staff[who.site]}${who.onlyPeople ? ', but no service tokens' : ''}`
  const members = { viewer: 'members', developer: 'developers and managers', manager: 'managers' }[who.account]
  return `${members} of the account; ${staff[staffRoleFor(isRead(row))]}`
}

const staff = { support: 'support, admins and owners', admin: 'admins and owners', owner: 'owners' } as const

const ifMatch: Parameter = {
  name: 'If-Match',
  in: 'header',
  schema: { type: 'string', examples: ['"3"'] },
  description: 'The ETag of the version that you have read. If the resource has changed since then, the answer is 412.',
}

function parametersOf({ params, query, path }: WebEndpoint, schemas: Schemas): readonly Parameter[] {
  const [inPath, inQuery] = [params, query].map(schema => schema && fieldsOf(schemas.describe(schema, 'input')))
  const takesRest = path.endsWith('*}') ? ' It may contain slashes.' : ''
  return [
    ...(inPath ?? []).map(({ name, description, schema }): Parameter => {
      const fullText = `${description ?? ''}${takesRest}`.trim()
      return { name, in: 'path', required: true, ...(fullText !== '' && { description: fullText }), schema }
    }),
    ...(inQuery ?? []).map(({ required, ...field }): Parameter => {
      return { ...field, in: 'query', ...(required && { required }) }
    }),
  ]
}

interface Field {
  readonly name: string
  readonly description?: string
  readonly required: boolean
  readonly schema: JsonSchema
}

function fieldsOf({ properties = {}, required = [] }: JsonSchema): readonly Field[] {
  return Object.entries(properties as Record<string, JsonSchema>).map(([name, { description, ...schema }]) => ({
    name,
    ...(typeof description === 'string' && { description }),
    required: (required as readonly string[]).includes(name) && schema.default === undefined,
    schema,
  }))
}

function bodyOf({ body }: WebEndpoint, schemas: Schemas): Content {
  const schema = schemas.describe(body!, 'input')
  // Zod leaves out the examples of a schema that transforms its input.
  const [own] = (body!.meta()?.examples ?? []) as readonly unknown[]
  const value = own ?? sampleOf(schema, ref => schemas.named.get(ref.replace(/^.*\//, '')))
  return { schema, ...(value !== undefined && { examples: { body: { value } } }) }
}

function answerOf(row: WebEndpoint, schemas: Schemas): OpenApiResponse {
  if (row.status === 204) return { description: 'Done.' }
  const schema = schemas.describe(row.answer, 'output')
  const isList = isListOf(row)
  const isOne = row.method !== 'DELETE' && (row.params !== undefined || row.status === 201)
  const headers = {
    ...(isList && { 'X-Weir-Clamped': headerRef('X-Weir-Clamped') }),
    ...(isOne && { ETag: headerRef('ETag') }),
  }
  return {
    description: row.status === 202 ? 'Started.' : row.status === 201 ? 'Created.' : 'Done.',
    ...(Object.keys(headers).length > 0 && { headers }),
    content: Object.fromEntries(typesOf(row).map(type => [type, type === JSON_TYPE ? { schema } : asText])),
  }
}

const asText: Content = { schema: { type: 'string' } }
const formats: Readonly<Record<string, string>> = { csv: 'text/csv', ndjson: 'application/x-ndjson', json: JSON_TYPE }

/** The content types of the answer: that of the row, those of the query parameter `format`, else JSON. */
function typesOf({ query, contentType }: WebEndpoint): readonly string[] {
  if (contentType !== undefined) return [contentType].flat()
  const { format } = (query?.shape ?? {}) as { format?: { unwrap?(): { options?: readonly string[] } } }
  const options = format?.unwrap?.().options
  return options?.map(option => formats[option] ?? 'text/plain') ?? [JSON_TYPE]
}

/** The errors that follow from the row, and those that refusals.ts adds. */
function codesOf(row: WebEndpoint): readonly ErrorCode[] {
  const { method, who, params, query, body, reserved } = row
  const isNobody = who === 'nobody'
  const mayBeTooLow =
    isForPeople(who) || (typeof who === 'object' && 'site' in who) || Object.keys(reserved ?? {}).length > 0
  const codes: ErrorCode[] = ['field_unknown']
  // A body where none is taken is read, too: it must be empty.
  const isBodyRead = body !== undefined || method !== 'GET'
  if (query !== undefined || isBodyRead) codes.push('field_invalid', 'field_duplicate')
  if (isBodyRead) {
    codes.push('json_invalid', 'body_not_object', 'body_too_large', 'body_too_slow')
    codes.push('body_in_pieces', 'content_type_unsupported', 'encoding_refused', 'json_too_deep', 'json_too_many')
  }
  if (!isNobody) codes.push('token_invalid')
  if (!isNobody || isBodyRead) codes.push('concurrency_exceeded')
  if (!isNobody) codes.push('tried_too_often')
  if (mayBeTooLow) codes.push('role_too_low')
  if (params !== undefined) codes.push('resource_unknown')
  if (isEdit(row)) codes.push('version_stale')
  if (row.changes !== undefined) codes.push('managed_by_file')
  codes.push('overloaded', 'storage_away')
  if (method !== 'GET') codes.push('storage_full')
  if (row.path.startsWith('/api/auth/')) codes.push(...authErrors)
  return [...codes, ...(operationErrors[operationIdOf(row)] ?? [])]
}

const verbs = { GET: 'get', POST: 'post', PUT: 'set', PATCH: 'update', DELETE: 'delete' } as const

/** A list has pages. A stream continues after an event, and has none. */
const isListOf = ({
  method,
  query,
}: Pick<WebEndpoint, 'method'> & { readonly query?: WebEndpoint['query'] }): boolean =>
  method === 'GET' && query !== undefined && 'after' in query.shape && 'limit' in query.shape

/** `listTiers`, `getTier`, `createTier`, `updateTier`, `postKeyRotate`. */
function operationIdOf({ method, path, query, status }: WebEndpoint): string {
  const segments = path.split('/').slice(path.startsWith('/api/auth/') ? 2 : 3)
  const isList = isListOf({ method, query })
  const isNew = method === 'POST' && status === 201
  const verb = isList ? 'list' : isNew ? 'create' : verbs[method]
  const words = segments.flatMap((segment, at) => {
    if (segment.startsWith('{')) return []
    const isOne = segments[at + 1]?.startsWith('{') === true || (isNew && at === segments.length - 1)
    return segment.split('-').map((word, index, all) => (isOne && index === all.length - 1 ? singular(word) : word))
  })
  return [verb, ...words.map(word => word.charAt(0).toUpperCase() + word.slice(1))].join('')
}

function singular(word: string): string {
  if (word.endsWith('ies')) return `${word.slice(0, -3)}y`
  return /[^s]s$/.test(word) && !word.endsWith('us') ? word.slice(0, -1) : word
}
