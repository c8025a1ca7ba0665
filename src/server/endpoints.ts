// Every URL we answer, as one table, each row with its mandatory `auth`. What is not here does not exist: the family
// of its prefix decides who may learn that, and in which dialect.

import type { LedgerState } from '../billing/auditor.ts'
import type { FileService } from '../features/files/files.ts'
import type { ResponsesAsking } from '../features/stored-responses/requests.ts'
import type { TaskService } from '../features/tasks/tasks.ts'
import type { CountCall } from '../features/token-counts/token-counts.ts'
import type { Pages } from '../management/openapi/pages.ts'
import type { ReportKey } from '../management/public/key-report.ts'
import type { PublicData } from '../management/public/public-data.ts'
import type { AnswerWeb } from '../management/web/dispatch.ts'
import type { ErrorDialectName } from '../protocols/list.ts'
import { protocols } from '../protocols/list.ts'
import type { Answer, Ask, Auth, Endpoint, Reply } from './endpoint.ts'
import { listDialect, modelEndpoints } from './model-endpoints.ts'
import { pageEndpoints } from './page-endpoints.ts'
import { sideEndpoints } from './passthrough-endpoints.ts'
import { countEndpoints } from './token-count-endpoints.ts'

export interface Family {
  readonly prefix: string
  /** Only paths that end in one of Gemini's verbs, which win over any longer prefix. */
  readonly verbs?: boolean
  readonly auth: Auth
  readonly dialect: ErrorDialectName
  /** Its answers, and so its errors, are in the dialect of whoever asks. */
  readonly negotiates?: boolean
  /** Whether browsers of other origins may call it. */
  readonly cors: boolean
  /** On all that it answers, refusals as well. */
  readonly headers?: Readonly<Record<string, string>>
}

/** What is for one pair of eyes stays nowhere, and is nothing but what it says it is. */
const unkept = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' }

/** The longest prefix that fits decides. */
export const families: readonly Family[] = [
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
  { prefix: '/api/web', auth: 'token', dialect: 'openai-chat', cors: false, headers: unkept },
  { prefix: '/api/auth', auth: 'nobody', dialect: 'openai-chat', cors: false, headers: unkept },
  { prefix: '', auth: 'nobody', dialect: 'openai-chat', cors: false },
]

export interface EndpointParts {
  readonly countCall: CountCall
  readonly publicData: PublicData
  readonly reportKey: ReportKey
  readonly responses: ResponsesAsking
  readonly tasks: TaskService
  readonly files: FileService
  readonly answerWeb: AnswerWeb
  /** Made by the first who reads one of them. */
  pages(): Promise<Pages>
  isReady(): boolean
  overloadLevel(): number
  ledgerState(): LedgerState
}

export function buildEndpoints(parts: EndpointParts): readonly Endpoint[] {
  const { publicData, reportKey, countCall } = parts
  const data =
    (body: () => string): Answer =>
    () => ({ body: body() })
  const key: Answer = ({ caller }) => found(caller && reportKey(caller))
  return [
    { method: 'POST', path: '/v1/chat/completions', auth: 'key', kind: 'chat', call: protocols['openai-chat'] },
    { method: 'POST', path: '/v1/messages', auth: 'key', kind: 'messages', call: protocols['anthropic-messages'] },
    { method: 'POST', path: '/v1/responses', auth: 'key', kind: 'responses', call: protocols['openai-responses'] },
    { method: 'POST', path: '/api/v3/chat/completions', auth: 'key', kind: 'ark', call: protocols.ark },
    { method: 'POST', path: '/api/v3/responses', auth: 'key', kind: 'ark', call: protocols['ark-responses'] },
    ...['/v1beta/*', '/v1/*'].flatMap(path => geminiVerbs.map(ending => ({ ...geminiCall, path, ending }))),
    ...sideEndpoints,
    ...countEndpoints(countCall),
    ...responsesEndpoints(parts.responses),

    ...ownedEndpoints(parts),

    { method: 'GET', path: '/v1/key', auth: 'key', kind: 'own', answer: key },
    ...modelEndpoints(publicData),
    ...pageEndpoints(publicData, parts.pages),

    ...managementEndpoints(parts.answerWeb),

    { method: 'GET', path: '/health/live', auth: 'nobody', answer: data(() => '{"status":"live"}') },
    { method: 'GET', path: '/health/ready', auth: 'nobody', answer: () => readiness(parts) },
  ]
}

/** What is there, and who may ask for it, is a table of its own: management/resources/table.ts. */
function managementEndpoints(answerWeb: AnswerWeb): readonly Endpoint[] {
  // Bounded before it is read: under /api/auth nobody has said yet who they are.
  const answer: Answer = async ({ holder, readBody, ...ask }) => {
    return await answerWeb({ ...ask, address: ask.address(), actor: holder, readBody: () => readBody('json') })
  }
  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
  return methods.flatMap((method): readonly Endpoint[] => [
    { method, path: '/api/web/*', auth: 'token', answer },
    { method, path: '/api/auth/*', auth: 'nobody', answer },
  ])
}

/** What lies at an upstream and is one account's. */
function ownedEndpoints({ tasks, files }: EndpointParts): readonly Endpoint[] {
  const [task, file] = ['/api/v3/contents/generations/tasks', '/api/v3/files']
  const ofTasks = { auth: 'key', kind: 'tasks' } as const
  const ofFiles = { auth: 'key', kind: 'files' } as const
  return [
    { ...ofTasks, method: 'POST', path: task, answer: ask => tasks.create(ask) },
    { ...ofTasks, counted: true, method: 'GET', path: task, answer: ask => tasks.list(ask) },
    { ...ofTasks, counted: true, method: 'GET', path: `${task}/*`, answer: ask => tasks.get(ask) },
    { ...ofTasks, counted: true, method: 'DELETE', path: `${task}/*`, answer: ask => tasks.delete(ask) },
    { ...ofFiles, method: 'POST', path: file, answer: ask => files.upload(ask) },
    { ...ofFiles, counted: true, method: 'GET', path: file, answer: ask => files.list(ask) },
    { ...ofFiles, counted: true, method: 'GET', path: `${file}/*`, answer: ask => files.get(ask) },
    { ...ofFiles, counted: true, method: 'DELETE', path: `${file}/*`, answer: ask => files.delete(ask) },
  ]
}

const geminiCall = { method: 'POST', auth: 'key', kind: 'gemini', call: protocols.gemini } as const
const geminiVerbs = [':generateContent', ':streamGenerateContent'] as const

const found = (body: string | undefined): Reply | undefined => (body === undefined ? undefined : { body })

/** Responses that are kept, in both dialects that have them. */
function responsesEndpoints(asking: ResponsesAsking): readonly Endpoint[] {
  const roots = { '/v1/responses': protocols['openai-responses'], '/api/v3/responses': protocols['ark-responses'] }
  return Object.entries(roots).flatMap(([root, protocol]): readonly Endpoint[] => {
    const kind = protocol === protocols['openai-responses'] ? 'responses' : 'ark'
    const counted = { auth: 'key', kind, counted: true } as const
    const one = { ...counted, path: `${root}/*`, named: true } as const
    const asks =
      (name: keyof ResponsesAsking): Answer =>
      ask =>
        asking[name](ask, protocol)
    return [
      { ...counted, method: 'POST', path: `${root}/compact`, answer: asks('compact') },
      { ...one, method: 'GET', ending: '/input_items', answer: asks('inputItems') },
      { ...one, method: 'POST', ending: '/cancel', answer: asks('cancel') },
      { ...one, method: 'GET', answer: asks('retrieve') },
      { ...one, method: 'DELETE', answer: asks('delete') },
    ]
  })
}

/** Books that do not agree freeze their own account; all others must be served. */
function readiness({ isReady, ledgerState, overloadLevel }: EndpointParts): Reply {
  const ready = isReady()
  const told = { status: ready ? 'ready' : 'not ready', overload: overloadLevel(), ledger: ledgerState() }
  return { status: ready ? 200 : 503, body: JSON.stringify(told) }
}

/** In which dialect it speaks to whoever asks. */
export function dialectOf({ dialect, negotiates }: Family, asked: Pick<Ask, 'header' | 'query'>): ErrorDialectName {
  return (negotiates ? listDialect(asked) : undefined) ?? dialect
}

const GEMINI_VERB = /:(generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)$/

export function familyOf(path: string): Family {
  let best = families.at(-1)!
  const hasVerb = path.includes(':') && GEMINI_VERB.test(path)
  for (const family of families) {
    const fits = path === family.prefix || path.startsWith(`${family.prefix}/`)
    if (!fits || (family.verbs && !hasVerb)) continue
    if (family.verbs === best.verbs ? family.prefix.length >= best.prefix.length : family.verbs) best = family
  }
  return best
}
