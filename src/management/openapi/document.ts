// Builds the OpenAPI 3.1 document of the whole interface from the endpoint rows, so that it matches the code.

import { createHash } from 'node:crypto'
import { assert } from '../../base/assert.ts'
import type { ErrorCode } from '../../base/errors.ts'
import type { WebEndpoint } from '../resources/endpoint.ts'
import { callSchemas } from './call-bodies.ts'
import { describeCall } from './call-operations.ts'
import { callRows } from './call-rows.ts'
import { describeEndpoint } from './endpoint-operations.ts'
import { errorSchemas, errorTable } from './error-answers.ts'
import type { Operation, OperationRoles } from './operation.ts'
import { authErrors, operationErrors } from './operation-errors.ts'
import { otherOperations } from './other-operations.ts'
import { publicSchemas } from './public-schemas.ts'
import { Schemas } from './schemas.ts'
import type { Tag } from './tags.ts'
import { tagName, tagsOf } from './tags.ts'

export interface OpenApi {
  readonly openapi: '3.1.0'
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly object[]
  readonly tags: readonly Tag[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentOperation>>>>
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>
  /** Every error code with its status, its text, and whether the same request may succeed later. */
  readonly 'x-weir-errors': typeof errorTable
}

export interface DocumentOperation
  extends Omit<Operation, 'method' | 'path' | 'tag' | 'auth' | 'who' | 'roles' | 'dialect'> {
  readonly tags: readonly [string]
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  /** Who may use the operation, in words. */
  readonly 'x-weir-who': string
  /** The same as data; only in the management interface. */
  readonly 'x-weir-roles'?: OperationRoles
}

const ABOUT = `A gateway for calls to large language models. One key, any dialect, every model; each call is limited,
priced, billed and recorded.

Calls are made with an API key (\`wk-…\`). The management interface takes the token of a session (JWT) or a
service token (\`wst-…\`), and no API key. Money is US dollars as decimal text. Times are UTC.

Unknown fields are refused by name. Lists have pages: \`limit\`, \`after\`, \`sort\`. Resources that can be changed have
an \`ETag\`, and the same number as \`version\` in their rows. Send it as \`If-Match\`: if another change came in
between, the answer is 412.

\`x-weir-roles\` of a management operation is the least role that it needs: \`site\` for the whole site (null: none,
\`member\`: everybody who is signed in), or \`account\` in the account of the request; one of both is enough. Its
\`fields\` are the fields of the body that need a higher role for the site.`

export interface DocumentParts {
  readonly endpoints: readonly WebEndpoint[]
  readonly version: string
  /** Awaited between the rows: there are many, and the same thread serves calls. */
  pause(): Promise<void>
}

export async function buildDocument({ endpoints, version, pause }: DocumentParts): Promise<OpenApi> {
  const schemas = new Schemas()
  const operations: Operation[] = []
  const managedCodes = new Set<ErrorCode>([...authErrors, ...Object.values(operationErrors).flat()])
  for (const row of callRows) {
    operations.push(describeCall(row, managedCodes))
    await pause()
  }
  operations.push(...otherOperations)
  for (const row of endpoints) {
    operations.push(describeEndpoint(row, schemas))
    await pause()
  }
  const { paths, responses } = await sharedAnswers(operations, pause)
  return {
    openapi: '3.1.0',
    info: { title: 'Weir', version, description: ABOUT },
    servers: [{ url: '/' }],
    tags: tagsOf(new Set(operations.map(({ tag }) => tag))),
    paths,
    components: {
      securitySchemes,
      headers,
      responses,
      schemas: sorted(union([errorSchemas, callSchemas, publicSchemas, Object.fromEntries(schemas.named)])),
    },
    'x-weir-errors': errorTable,
  }
}

const keyScheme = (place: string, name: string): object => ({ type: 'apiKey', in: place, name })

const securitySchemes: Readonly<Record<string, object>> = {
  key: {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key: `Authorization: Bearer wk-…`. This is the recommended header.',
  },
  xApiKey: { ...keyScheme('header', 'x-api-key'), description: 'An API key, as Anthropic’s clients send it.' },
  googApiKey: { ...keyScheme('header', 'x-goog-api-key'), description: 'An API key, as Google’s clients send it.' },
  apiKey: { ...keyScheme('header', 'api-key'), description: 'An API key, as Azure’s clients send it.' },
  keyInQuery: {
    ...keyScheme('query', 'key'),
    description: 'An API key in the query string. Servers on the way may log it.',
  },
  token: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'The token of a session, from `/api/auth`. An API key is not accepted.',
  },
  serviceToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'A service token, for programs: `Authorization: Bearer wst-…`. See `/api/web/service-tokens`.',
  },
}

const securityOf: Readonly<Record<Operation['auth'], DocumentOperation['security']>> = {
  key: ['key', 'xApiKey', 'googApiKey', 'apiKey', 'keyInQuery'].map(name => ({ [name]: [] })),
  session: [{ token: [] }],
  token: [{ token: [] }, { serviceToken: [] }],
  nobody: [],
}

const describeHeader = (description: string, example?: string): object => ({
  description,
  schema: { type: 'string', ...(example !== undefined && { examples: [example] }) },
})

const headers: Readonly<Record<string, object>> = {
  'X-Request-Id': describeHeader('The id of this request; `request-id` has the same value.', 'req_00000000001'),
  'X-Pipeline-Auth': describeHeader(
    'The check of the key: `pass (<n>ms, tier=<tier>)` or `fail (<n>ms)`.',
    'pass (0ms, tier=pro)',
  ),
  'X-Pipeline-RateLimit': describeHeader(
    'The check of the limits: `pass (<n>ms)` or `fail (<n>ms, reason=<reason>)`.',
    'pass (0ms)',
  ),
  'X-Pipeline-Route': describeHeader(
    'The route: `pass (<n>ms, <provider>→<model>)` or `fail (<n>ms)`.',
    'pass (0ms, demo→echo)',
  ),
  'X-Pipeline-Adapter': describeHeader('The request to the upstream: `done (<n>ms)` or `fail (<n>ms)`.', 'done (1ms)'),
  'X-Pipeline-Breakdown': describeHeader('The milliseconds of each step.', 'fwd=12 cost=0 deduct=1 record=0 bodies=0'),
  'X-Weir-Attempts': describeHeader('The number of attempts.', '1'),
  'X-Weir-Loss': describeHeader('What the translation could not carry, as short codes.', 'logit_bias'),
  'X-Weir-Cap': describeHeader(
    'The number of tokens to which the answer was limited, because the funds cover no more.',
    '512',
  ),
  'X-Weir-Stop': describeHeader(
    'The answer ended early, because the funds are used up or a bound is reached: the code of the error.',
    'balance_too_low',
  ),
  'X-Weir-Replayed': describeHeader('The id of the earlier call whose answer is sent again.', 'req_00000000001'),
  'X-Weir-Clamped': describeHeader('The page is smaller than requested.', 'limit=200'),
  'ETag': describeHeader('The version of the resource, for If-Match; of public data, for If-None-Match.', '"3"'),
  'Retry-After': describeHeader('Seconds to wait.', '1'),
}

const sorted = <T>(named: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(named).sort(([a], [b]) => (a < b ? -1 : 1)))

/** Two schemas of one name would hide one of them. */
function union<T>(parts: readonly Readonly<Record<string, T>>[]): Record<string, T> {
  const all = parts.flatMap(part => Object.entries(part))
  const named = Object.fromEntries(all)
  assert(Object.keys(named).length === all.length, 'every schema must have a name of its own')
  return named
}

interface SharedAnswers extends Pick<OpenApi, 'paths'> {
  readonly responses: Readonly<Record<string, object>>
}

/** Moves answers that several operations have to the components. */
async function sharedAnswers(operations: readonly Operation[], pause: () => Promise<void>): Promise<SharedAnswers> {
  const uses = new Map<string, number>()
  const keys = new Map<object, string>()
  const keyOf = (answer: object): string => {
    const key = keys.get(answer) ?? JSON.stringify(answer)
    keys.set(answer, key)
    return key
  }
  for (const { responses } of operations) {
    for (const answer of Object.values(responses)) uses.set(keyOf(answer), (uses.get(keyOf(answer)) ?? 0) + 1)
    await pause()
  }
  const responses: Record<string, object> = {}
  // The name depends on the contents, so that a new operation does not rename other answers.
  const nameOf = (status: string, answer: object): string => {
    const name = `Answer-${status}-${createHash('sha256').update(keyOf(answer)).digest('hex').slice(0, 6)}`
    responses[name] = answer
    return name
  }
  const paths: Record<string, Record<string, DocumentOperation>> = {}
  for (const operation of operations) {
    const { method, path, tag, auth, who, roles, dialect: _, responses: own, ...rest } = operation
    const answers = Object.entries(own).map(([status, answer]) => {
      const isShared = uses.get(keyOf(answer))! > 1
      return [status, isShared ? { $ref: `#/components/responses/${nameOf(status, answer)}` } : answer] as const
    })
    paths[path] = {
      ...paths[path],
      [method.toLowerCase()]: {
        ...rest,
        tags: [tagName(tag)],
        security: securityOf[auth],
        'x-weir-who': who,
        ...(roles !== undefined && { 'x-weir-roles': roles }),
        responses: Object.fromEntries(answers),
      },
    }
    await pause()
  }
  return { paths, responses: sorted(responses) }
}
