// The table of all endpoints. Each row says which credential it needs. For paths that are not in the table, the path group
// of their prefix decides which credential is needed to learn that, and the dialect of the error.

import type { LedgerState } from '../billing/auditor.ts'
import type { FileService } from '../features/files/files.ts'
import type { StoredResponseRequests } from '../features/stored-responses/requests.ts'
import type { TaskService } from '../features/tasks/tasks.ts'
import type { CountCall } from '../features/token-counts/token-counts.ts'
import type { LoadStaticFiles } from '../http/server/static-files.ts'
import type { Pages } from '../management/openapi/pages.ts'
import type { ReportKey } from '../management/public/key-report.ts'
import type { PublicData } from '../management/public/public-data.ts'
import type { HandleWebRequest } from '../management/web/dispatch.ts'
import { tasks as taskProtocol } from '../protocols/ark-passthrough/tasks.ts'
import type { ErrorDialectName } from '../protocols/protocols.ts'
import { protocols } from '../protocols/protocols.ts'
import { consoleEndpoints, consoleHeaders } from './console-endpoints.ts'
import type { Endpoint, EndpointAuth, EndpointHandler, EndpointReply, EndpointRequest } from './endpoint.ts'
import { listDialect, modelEndpoints } from './model-endpoints.ts'
import { pageEndpoints } from './page-endpoints.ts'
import { passthroughEndpoints } from './passthrough-endpoints.ts'
import { countEndpoints } from './token-count-endpoints.ts'

/** The paths with one prefix: their credential, error dialect and headers. */
export interface PathGroup {
  readonly prefix: string
  /** Only paths that end in a verb of the Gemini dialect. Such a group wins over any longer prefix. */
  readonly verbs?: boolean
  readonly auth: EndpointAuth
  readonly dialect: ErrorDialectName
  /** Whether answers and errors are in the dialect that the headers of the request show. */
  readonly negotiates?: boolean
  /** Whether browsers of other origins may call it. */
  readonly cors: boolean
  /** Whether all answers tell the build of the console, so that open pages notice an upgrade. */
  readonly tellsBuild?: boolean
  /** Headers of all answers, including refusals. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Personal data must not be cached, and its content type must not be guessed. */
const privateHeaders = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

/** The longest matching prefix decides. */
export const pathGroups: readonly PathGroup[] = [
  { prefix: '/v1/models', auth: 'nobody', dialect: 'openai-chat', negotiates: true, cors: true },
  { prefix: '/v1/messages', auth: 'key', dialect: 'anthropic-messages', cors: true },
  { prefix: '/v1/responses', auth: 'key', dialect: 'openai-responses', cors: true },
  { prefix: '/v1', auth: 'key', dialect: 'openai-chat', cors: true },
  { prefix: '/v1', verbs: true, auth: 'key', dialect: 'gemini', cors: true },
  { prefix: '/v1beta', verbs: true, auth: 'key', dialect: 'gemini', cors: true },
  { prefix: '/v1beta/openai', auth: 'key', dialect: 'openai-chat', cors: true },
  { prefix: '/v1beta', auth: 'key', dialect: 'gemini', cors: true },
  { prefix: '/api/v3', auth: 'key', dialect: 'ark', cors: true },
  { prefix: '/api/public', auth: 'nobody', dialect: 'openai-chat', cors: true },
  { prefix: '/api/web', auth: 'token', dialect: 'openai-chat', cors: false, headers: privateHeaders, tellsBuild: true },
  { prefix: '/api/auth', auth: 'nobody', dialect: 'openai-chat', cors: false, headers: privateHeaders },
  { prefix: '/console', auth: 'nobody', dialect: 'openai-chat', cors: false, headers: consoleHeaders },
  { prefix: '', auth: 'nobody', dialect: 'openai-chat', cors: false },
]

export interface EndpointParts {
  readonly countCall: CountCall
  readonly publicData: PublicData
  readonly reportKey: ReportKey
  readonly responses: StoredResponseRequests
  readonly tasks: TaskService
  readonly files: FileService
  readonly answerWeb: HandleWebRequest
  /** Built by the first request for one of them. */
  pages(): Promise<Pages>
  /** The files of the web console; undefined: it is not served. */
  readonly loadConsole: LoadStaticFiles | undefined
  isReady(): Promise<boolean>
  overloadLevel(): number
  ledgerState(): LedgerState
}

export function buildEndpoints(parts: EndpointParts): readonly Endpoint[] {
  const { publicData, reportKey, countCall } = parts
  const json =
    (body: () => string): EndpointHandler =>
    () => ({ body: body() })
  const ownKey: EndpointHandler = async ({ caller }) => replyOrNotFound(caller && (await reportKey(caller)))
  return [
    ...callEndpoints,
    ...countEndpoints(countCall),
    ...responsesEndpoints(parts.responses),

    ...ownedEndpoints(parts),

    { method: 'GET', path: '/v1/key', auth: 'key', kind: 'own', answer: ownKey },
    ...modelEndpoints(publicData),
    ...pageEndpoints(publicData, parts.pages, parts.loadConsole !== undefined),
    ...(parts.loadConsole === undefined ? [] : consoleEndpoints(parts.loadConsole)),

    ...managementEndpoints(parts.answerWeb),

    { method: 'GET', path: '/health/live', auth: 'nobody', answer: json(() => '{"status":"live"}') },
    { method: 'GET', path: '/health/ready', auth: 'nobody', answer: () => readiness(parts) },
  ]
}

const responsesCall = { kind: 'responses', call: protocols['openai-responses'] } as const
const geminiCall = { method: 'POST', auth: 'key', kind: 'gemini', call: protocols.gemini } as const
const geminiVerbs = [':generateContent', ':streamGenerateContent'] as const

/** The calls that run through the ordinary pipeline. */
export const callEndpoints: readonly Endpoint[] = [
  { method: 'POST', path: '/v1/chat/completions', auth: 'key', kind: 'chat', call: protocols['openai-chat'] },
  { method: 'POST', path: '/v1/messages', auth: 'key', kind: 'messages', call: protocols['anthropic-messages'] },
  { ...responsesCall, method: 'POST', path: '/v1/responses', auth: 'key', sockets: true },
  { method: 'POST', path: '/api/v3/chat/completions', auth: 'key', kind: 'ark', call: protocols.ark },
  { method: 'POST', path: '/api/v3/responses', auth: 'key', kind: 'ark', call: protocols['ark-responses'] },
  ...['/v1beta/*', '/v1/*'].flatMap(path => geminiVerbs.map(ending => ({ ...geminiCall, path, ending }))),
  ...passthroughEndpoints,
]

/** The management endpoints are a table of their own: management/resources/table.ts. */
function managementEndpoints(answerWeb: HandleWebRequest): readonly Endpoint[] {
  // The body is limited before it is read, because under /api/auth the client is not authenticated yet.
  const answer: EndpointHandler = async ({ actor, readBody, ...request }) => {
    return await answerWeb({ ...request, address: request.address(), actor, readBody: () => readBody('json') })
  }
  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
  return methods.flatMap((method): readonly Endpoint[] => [
    { method, path: '/api/web/*', auth: 'token', answer },
    { method, path: '/api/auth/*', auth: 'nobody', answer },
  ])
}

/** Endpoints of tasks and files, which are stored at an upstream and belong to an account. */
function ownedEndpoints({ tasks, files }: EndpointParts): readonly Endpoint[] {
  const [taskPath, filePath] = ['/api/v3/contents/generations/tasks', '/api/v3/files']
  const ofTasks = { auth: 'key', kind: 'tasks' } as const
  const ofFiles = { auth: 'key', kind: 'files' } as const
  return [
    { ...ofTasks, method: 'POST', path: taskPath, call: taskProtocol, run: (...call) => tasks.create(...call) },
    { ...ofTasks, counted: true, method: 'GET', path: taskPath, answer: request => tasks.list(request) },
    { ...ofTasks, counted: true, method: 'GET', path: `${taskPath}/*`, answer: request => tasks.get(request) },
    { ...ofTasks, counted: true, method: 'DELETE', path: `${taskPath}/*`, answer: request => tasks.delete(request) },
    { ...ofFiles, method: 'POST', path: filePath, answer: request => files.upload(request) },
    { ...ofFiles, counted: true, method: 'GET', path: filePath, answer: request => files.list(request) },
    { ...ofFiles, counted: true, method: 'GET', path: `${filePath}/*`, answer: request => files.get(request) },
    { ...ofFiles, counted: true, method: 'DELETE', path: `${filePath}/*`, answer: request => files.delete(request) },
  ]
}

const replyOrNotFound = (body: string | undefined): EndpointReply | undefined =>
  body === undefined ? undefined : { body }

/** Endpoints of stored responses, in both dialects that have them. */
function responsesEndpoints(responses: StoredResponseRequests): readonly Endpoint[] {
  const roots = { '/v1/responses': protocols['openai-responses'], '/api/v3/responses': protocols['ark-responses'] }
  return Object.entries(roots).flatMap(([root, protocol]): readonly Endpoint[] => {
    const kind = protocol === protocols['openai-responses'] ? 'responses' : 'ark'
    const counted = { auth: 'key', kind, counted: true } as const
    const one = { ...counted, path: `${root}/*`, named: true } as const
    const answerWith =
      (name: keyof StoredResponseRequests): EndpointHandler =>
      request =>
        responses[name](request, protocol)
    return [
      { ...counted, method: 'POST', path: `${root}/compact`, answer: answerWith('compact') },
      { ...one, method: 'GET', ending: '/input_items', answer: answerWith('inputItems') },
      { ...one, method: 'POST', ending: '/cancel', answer: answerWith('cancel') },
      { ...one, method: 'GET', answer: answerWith('retrieve') },
      { ...one, method: 'DELETE', answer: answerWith('delete') },
    ]
  })
}

/** Findings of the ledger audit do not make the gateway unready: they freeze their own account, and others are served. */
async function readiness({ isReady, ledgerState, overloadLevel }: EndpointParts): Promise<EndpointReply> {
  const ready = await isReady()
  const body = { status: ready ? 'ready' : 'not ready', overload: overloadLevel(), ledger: ledgerState() }
  return { status: ready ? 200 : 503, body: JSON.stringify(body) }
}

/** The dialect of errors for a request. */
export function errorDialectOf(
  { dialect, negotiates }: PathGroup,
  request: Pick<EndpointRequest, 'header' | 'query'>,
): ErrorDialectName {
  return (negotiates ? listDialect(request) : undefined) ?? dialect
}

const GEMINI_VERB = /:(generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)$/

export function findPathGroup(path: string): PathGroup {
  let best = pathGroups.at(-1)!
  const hasVerb = path.includes(':') && GEMINI_VERB.test(path)
  for (const group of pathGroups) {
    const matches = path === group.prefix || path.startsWith(`${group.prefix}/`)
    if (!matches || (group.verbs && !hasVerb)) continue
    if (group.verbs === best.verbs ? group.prefix.length >= best.prefix.length : group.verbs) best = group
  }
  return best
}
