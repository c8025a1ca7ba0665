// The whole interface as one OpenAPI 3.1 document: made from the rows that answer, so that it says what is so.

import { createHash } from 'node:crypto'
import type { ErrorCode } from '../../base/errors.ts'
import type { WebEndpoint } from '../resources/endpoint.ts'
import { callSchemas } from './call-bodies.ts'
import { callRows } from './call-rows.ts'
import { describeCall } from './calls.ts'
import { errorSchemas, errorTable } from './error-answers.ts'
import { describeManaged } from './managed.ts'
import type { Operation } from './operation.ts'
import { otherOperations } from './other-rows.ts'
import { publicSchemas } from './public-schemas.ts'
import { refusals, refusalsOfStrangers } from './refusals.ts'
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
  /** Every code, with its status, whether the same request may succeed later, and its text. */
  readonly 'x-weir-errors': typeof errorTable
}

export interface DocumentOperation extends Omit<Operation, 'method' | 'path' | 'tag' | 'auth' | 'who' | 'dialect'> {
  readonly tags: readonly [string]
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  /** Who may, in words. */
  readonly 'x-weir-who': string
}

const ABOUT = `A gateway for calls to large language models. One key, any dialect, every model; each call is limited,
priced, billed and written down.

Calls are made with an API key (\`wk-…\`). The management interface takes a management token (JWT) and nothing else;
the two are not interchangeable. Money is US dollars as decimal text. Times are UTC.

Unknown fields are refused and named. Lists have pages: \`limit\`, \`after\`, \`sort\`. What can be changed has an
\`ETag\`; send it as \`If-Match\`, and a change of somebody else in between is told as 412.`

export interface DocumentParts {
  readonly managed: readonly WebEndpoint[]
  readonly version: string
  /** Waited for between the rows: there are many, and calls are served by the same thread. */
  pause(): Promise<void>
}

export async function buildDocument({ managed, version, pause }: DocumentParts): Promise<OpenApi> {
  const schemas = new Schemas()
  const operations: Operation[] = []
  const managedCodes = new Set<ErrorCode>([...refusalsOfStrangers, ...Object.values(refusals).flat()])
  for (const row of callRows) {
    operations.push(describeCall(row, managedCodes))
    await pause()
  }
  operations.push(...otherOperations)
  for (const row of managed) {
    operations.push(describeManaged(row, schemas))
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
      schemas: sorted({ ...errorSchemas, ...callSchemas, ...publicSchemas, ...Object.fromEntries(schemas.named) }),
    },
    'x-weir-errors': errorTable,
  }
}

const carrier = (place: string, name: string): object => ({ type: 'apiKey', in: place, name })

const securitySchemes: Readonly<Record<string, object>> = {
  key: {
    ...{ type: 'http', scheme: 'bearer' },
    description: 'An API key: `Authorization: Bearer wk-…`. The recommended way.',
  },
  xApiKey: { ...carrier('header', 'x-api-key'), description: 'An API key, as Anthropic’s clients send it.' },
  googApiKey: { ...carrier('header', 'x-goog-api-key'), description: 'An API key, as Google’s clients send it.' },
  apiKey: { ...carrier('header', 'api-key'), description: 'An API key, as Azure’s clients send it.' },
  keyInQuery: { ...carrier('query', 'key'), description: 'An API key in the address, where others may log it.' },
  token: {
    ...{ type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
    description: 'A management token, from `/api/auth`. An API key will not do.',
  },
}

const securityOf: Readonly<Record<Operation['auth'], DocumentOperation['security']>> = {
  key: ['key', 'xApiKey', 'googApiKey', 'apiKey', 'keyInQuery'].map(name => ({ [name]: [] })),
  token: [{ token: [] }],
  nobody: [],
}

const told = (description: string, example?: string): object => ({
  description,
  schema: { type: 'string', ...(example !== undefined && { examples: [example] }) },
})

const headers: Readonly<Record<string, object>> = {
  'X-Request-Id': told('The id of this request; `request-id` says the same.', 'req_00000000001'),
  'X-Pipeline-Auth': told('The key: `pass (<n>ms, tier=<tier>)` or `fail (<n>ms)`.', 'pass (0ms, tier=pro)'),
  'X-Pipeline-RateLimit': told('Limits: `pass (<n>ms)` or `fail (<n>ms, reason=<reason>)`.', 'pass (0ms)'),
  'X-Pipeline-Route': told('Where to: `pass (<n>ms, <provider>→<model>)` or `fail (<n>ms)`.', 'pass (0ms, demo→echo)'),
  'X-Pipeline-Adapter': told('The upstream: `done (<n>ms)` or `fail (<n>ms)`.', 'done (1ms)'),
  'X-Pipeline-Breakdown': told('Milliseconds of each step.', 'fwd=12 cost=0 deduct=1 record=0 bodies=0'),
  'X-Weir-Attempts': told('How often it was tried.', '1'),
  'X-Weir-Loss': told('What the upstream could not be told, in short codes.', 'logit_bias'),
  'X-Weir-Cap': told('To how many tokens the answer was cut, for a key that wants that.', '512'),
  'X-Weir-Replayed': told('The id of the call whose answer is given again.', 'req_00000000001'),
  'X-Weir-Clamped': told('That a page is smaller than was asked for.', 'limit=200'),
  'ETag': told('What you have seen, for If-Match and If-None-Match.', '"3"'),
  'Retry-After': told('Seconds to wait.', '1'),
}

const sorted = <T>(named: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(named).sort(([a], [b]) => (a < b ? -1 : 1)))

interface Shared extends Pick<OpenApi, 'paths'> {
  readonly responses: Readonly<Record<string, object>>
}

/** An answer that several operations have is told once. */
async function sharedAnswers(operations: readonly Operation[], pause: () => Promise<void>): Promise<Shared> {
  const seen = new Map<string, number>()
  const keys = new Map<object, string>()
  const keyOf = (answer: object): string => {
    const key = keys.get(answer) ?? JSON.stringify(answer)
    keys.set(answer, key)
    return key
  }
  for (const { responses } of operations) {
    for (const answer of Object.values(responses)) seen.set(keyOf(answer), (seen.get(keyOf(answer)) ?? 0) + 1)
    await pause()
  }
  const responses: Record<string, object> = {}
  // Named by what it says: another operation must not rename it.
  const nameOf = (status: string, answer: object): string => {
    const name = `Answer-${status}-${createHash('sha256').update(keyOf(answer)).digest('hex').slice(0, 6)}`
    responses[name] = answer
    return name
  }
  const paths: Record<string, Record<string, DocumentOperation>> = {}
  for (const operation of operations) {
    const { method, path, tag, auth, who, dialect: _, responses: own, ...rest } = operation
    const answers = Object.entries(own).map(([status, answer]) => {
      const isShared = seen.get(keyOf(answer))! > 1
      return [status, isShared ? { $ref: `#/components/responses/${nameOf(status, answer)}` } : answer] as const
    })
    paths[path] = {
      ...paths[path],
      [method.toLowerCase()]: {
        ...rest,
        tags: [tagName(tag)],
        security: securityOf[auth],
        'x-weir-who': who,
        responses: Object.fromEntries(answers),
      },
    }
    await pause()
  }
  return { paths, responses: sorted(responses) }
}
