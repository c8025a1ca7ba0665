// Describes the LLM endpoints as OpenAPI operations: headers, bodies, and errors of their dialect.

import type { ErrorCode } from '../../base/errors.ts'
import { errorRows } from '../../base/errors.ts'
import type { CallRow } from './call-rows.ts'
import { describeErrors, describeOtherErrors } from './error-answers.ts'
import type { Content, JsonSchema, OpenApiResponse, Operation, Parameter } from './operation.ts'
import { headerRef, JSON_TYPE, listOf, openObject, refTo, text } from './operation.ts'

const header = (name: string, description: string, schema: JsonSchema = { type: 'string' }): Parameter => ({
  name,
  in: 'header',
  description,
  schema,
})

const callHeaders: readonly Parameter[] = [
  header(
    'Idempotency-Key',
    'A request that is sent again with the same key within a day is executed and charged once.',
    {
      type: 'string',
      minLength: 1,
      maxLength: 255,
    },
  ),
  header('X-Weir-Tags', 'Tags for the record of the call: `name=value`, separated by commas.'),
  header(
    'X-Weir-Translate',
    '`strict`: refuse a request that cannot be translated completely, instead of leaving fields out.',
    {
      type: 'string',
      enum: ['strict'],
    },
  ),
  header(
    'X-Weir-Comments',
    '`on`: a comment with usage and cost at the end of a stream. `off`: no keep-alive comments.',
    {
      type: 'string',
      enum: ['on', 'off'],
    },
  ),
  header('X-Weir-Explain', '`dry`: explain what would happen to the call, without making it.', {
    type: 'string',
    enum: ['dry'],
  }),
]

const dialectHeaders: Readonly<Partial<Record<CallRow['dialect'], readonly Parameter[]>>> = {
  'anthropic-messages': [
    header('anthropic-version', 'The API version that the SDKs send.', { type: 'string', examples: ['2023-06-01'] }),
    header('anthropic-beta', 'Forwarded to upstreams of the same dialect.'),
  ],
}

const stages = ['Auth', 'RateLimit', 'Route', 'Adapter', 'Breakdown'].map(stage => `X-Pipeline-${stage}`)

/** Errors that a call cannot get: they belong to management, stored objects and other endpoints. */
const NOT_OF_CALLS: readonly ErrorCode[] = [
  ...(['token_invalid', 'role_too_low', 'resource_unknown', 'version_stale', 'name_taken', 'state_unfit'] as const),
  ...(['field_unknown', 'path_unknown', 'method_not_allowed', 'upgrade_refused', 'form_invalid'] as const),
  ...(['response_unknown', 'response_unfit', 'task_unknown', 'tasks_too_many', 'file_unknown'] as const),
  ...(['socket_expired', 'socket_streams_too_many'] as const),
]

const KEY_CODES: readonly ErrorCode[] = ['key_missing', 'key_invalid']
const BODY_CODES: readonly ErrorCode[] = [
  ...(['json_invalid', 'json_too_deep', 'json_too_many', 'body_not_object', 'field_duplicate'] as const),
  ...(['field_missing', 'field_invalid', 'encoding_invalid', 'body_too_slow', 'body_too_large'] as const),
  ...(['body_in_pieces', 'content_type_unsupported', 'encoding_unsupported', 'overloaded'] as const),
]
const LIMIT_CODES: readonly ErrorCode[] = ['qpm_exceeded', 'rpd_exceeded', 'explained_too_often']
const MODEL_CODES: readonly ErrorCode[] = [
  'model_malformed',
  'model_ambiguous',
  'model_forbidden',
  'provider_unknown',
  'model_unknown',
]

/** `managed`: errors that only the management interface returns. */
function codesOf(row: CallRow, managed: ReadonlySet<ErrorCode>): readonly ErrorCode[] {
  if (row.forwarded) {
    const all = (Object.keys(errorRows) as ErrorCode[]).filter(
      code => !NOT_OF_CALLS.includes(code) && !managed.has(code),
    )
    const form: readonly ErrorCode[] = row.form ? ['form_invalid'] : []
    const state: readonly ErrorCode[] =
      row.body?.[0] === 'ResponsesRequest' ? ['response_unknown', 'response_unfit'] : []
    const sockets: readonly ErrorCode[] =
      row.path === '/v1/responses' ? ['socket_expired', 'socket_streams_too_many'] : []
    const task: readonly ErrorCode[] = row.body?.[0] === 'TaskRequest' ? ['tasks_too_many', 'task_unknown'] : []
    return [...all, ...form, ...state, ...sockets, ...task, 'file_unknown']
  }
  const known: Readonly<Record<string, readonly ErrorCode[]>> = {
    'Counting': [...MODEL_CODES, 'concurrency_exceeded', 'no_channel', 'upstream_refused'],
    'Stored responses': ['response_unknown', 'response_unfit', 'field_invalid', 'upstream_unusable'],
    'Tasks and files': ['task_unknown', 'file_unknown', 'field_invalid', 'no_channel', 'upstream_unusable'],
  }
  const body = row.body || row.form ? BODY_CODES : []
  return [...KEY_CODES, ...body, ...LIMIT_CODES, ...(known[row.tag] ?? [])]
}

export function describeCall(row: CallRow, managed: ReadonlySet<ErrorCode>): Operation {
  const { path, id, tag, summary, dialect, parameters = [], generates = false, forwarded = false } = row
  return {
    method: row.method ?? 'POST',
    path,
    operationId: id,
    tag,
    summary,
    dialect,
    auth: row.auth ?? 'key',
    who: 'an API key',
    parameters: [...parameters, ...(dialectHeaders[dialect] ?? []), ...(forwarded ? callHeaders : [])],
    ...(bodyOf(row) && { requestBody: { required: true, content: bodyOf(row)! } }),
    responses: {
      200: answerOf(row),
      ...withStages(describeErrors(codesOf(row, managed), dialect), generates),
      default: describeOtherErrors(dialect),
    },
  }
}

function bodyOf({ body, form }: CallRow): Readonly<Record<string, Content>> | undefined {
  if (form !== undefined) {
    const fields = Object.entries(form).map(([name, kind]) => {
      const file = { type: 'string', format: 'binary', description: 'A file.' }
      return [name, kind === 'file' ? file : text('A string.')] as const
    })
    const required = Object.keys(form).slice(0, 2)
    return { 'multipart/form-data': { schema: openObject(Object.fromEntries(fields), required) } }
  }
  if (body === undefined) return undefined
  const [schema, value] = body
  return { [JSON_TYPE]: { schema: refTo(schema), examples: { call: { value } } } }
}

function answerOf({ generates, forwarded, streams, answers, answersList, dialect }: CallRow): OpenApiResponse {
  const own = ['X-Request-Id', ...(forwarded ? ['X-Weir-Attempts', 'X-Weir-Loss'] : [])]
  const names = [...own, ...(generates ? [...stages, 'X-Weir-Cap', 'X-Weir-Stop', 'X-Weir-Replayed'] : [])]
  const object = openObject({}, [], `The answer in the dialect ${dialect}.`)
  const plain = { schema: answersList ? listOf(object) : object }
  const events = { schema: text('Server-sent events of the dialect. The gateway itself only adds comments.') }
  const type = answers ?? JSON_TYPE
  return {
    description: 'The answer.',
    headers: Object.fromEntries(names.map(name => [name, headerRef(name)])),
    content: {
      [type]: type === JSON_TYPE ? plain : { schema: { type: 'string', format: 'binary' } },
      ...(streams && { 'text/event-stream': events }),
    },
  }
}

/** Errors of generating calls have the headers of all stages. Other endpoints only have that of a refused key. */
function withStages(
  answers: Readonly<Record<string, OpenApiResponse>>,
  generates: boolean,
): Record<string, OpenApiResponse> {
  return Object.fromEntries(
    Object.entries(answers).map(([status, answer]) => {
      const names = generates ? stages : status === '401' ? [stages[0]!] : []
      const headers = { ...answer.headers, ...Object.fromEntries(names.map(name => [name, headerRef(name)])) }
      return [status, Object.keys(headers).length === 0 ? answer : { ...answer, headers }]
    }),
  )
}
