// The Ark dialect: OpenAI's chat with Ark's own reasoning, reasoning state and errors.

import type { Json } from '../body-fields.ts'
import { bodyOf, has, objectOf, recordOf, recordsOf } from '../body-fields.ts'
import type { Choice, Dialect, ErrorFields, Problem, Reply } from '../dialect.ts'
import { base36, createdS, findStatus } from '../dialect.ts'
import { findFieldProblem, findMessageProblem, readChatRequest, stateKept } from '../openai-chat/request.ts'
import type { Flavour } from '../openai-chat/wire.ts'
import { chatWire, writeFrames, writePlain } from '../openai-chat/wire.ts'
import { findBodyProblem, responsesFields } from '../openai-responses/problem.ts'
import { responsesWire } from '../openai-responses/wire.ts'
import { isIssuedState, issueState } from '../reasoning-state.ts'
import type { ReceivedRequest } from '../request.ts'
import { isRecord } from '../request.ts'

/** The issuer in reasoning state of this dialect. */
const stateOwner = 'ark'

function writeState(reply: Reply, choice: Choice): object {
  const { text = '', state } = choice.reasoning ?? {}
  if (state === null) return {}
  return { encrypted_content: state ?? issueState({ by: stateOwner, ordinal: reply.ordinal, text }) }
}

const flavour: Flavour = { emptyText: '', state: writeState }

const ERROR_BY_STATUS: Readonly<Record<number, readonly [type: string, code: string]>> = {
  400: ['BadRequest', 'InvalidParameter'],
  401: ['Unauthorized', 'AuthenticationError'],
  403: ['Forbidden', 'AccessDenied'],
  404: ['NotFound', 'InvalidEndpointOrModel.NotFound'],
  429: ['TooManyRequests', 'RateLimitExceeded.EndpointRPMExceeded'],
}

export function writeArkError(error: ErrorFields): string {
  const [type, code] = ERROR_BY_STATUS[findStatus(error)] ?? ['InternalServerError', 'InternalServiceError']
  const message = `${error.message} Request id: fake${base36(createdS)}`
  return JSON.stringify({ error: { code, message, param: error.param ?? '', type } })
}

const roles = ['system', 'user', 'assistant', 'tool']

function findArkProblem(request: ReceivedRequest): Problem | undefined {
  const body = bodyOf(request)
  if (!isRecord(body)) return { message: 'The request body is not valid JSON.' }
  if (has(body.max_tokens) && has(body.max_completion_tokens)) {
    const message = 'The parameters `max_tokens` and `max_completion_tokens` cannot be set at the same time.'
    return { message, param: 'max_tokens' }
  }
  const messages = recordsOf(body.messages)
  return findFieldProblem(body) ?? findMessageProblem(messages, roles) ?? findStateProblem(messages, request.ordinal)
}

function findStateProblem(messages: readonly Json[], ordinal: number): Problem | undefined {
  const looking = { by: stateOwner, ordinal }
  const foreign = messages.find(it => has(it.encrypted_content) && !isIssuedState(it.encrypted_content, looking))
  return foreign && { message: 'The parameter `encrypted_content` is not valid.', param: 'messages' }
}

export const arkWire: Dialect = {
  name: 'ark',
  traits: chatWire.traits,
  read(request) {
    const body = objectOf(request)
    const messages = recordsOf(body.messages)
    const usageInEveryChunk = recordOf(body.stream_options).chunk_include_usage === true
    const asked = readChatRequest(request)
    const looking = { by: stateOwner, ordinal: request.ordinal }
    const hasState = stateKept(messages, message => isIssuedState(message.encrypted_content, looking))
    return { ...asked, wantsUsage: asked.wantsUsage || usageInEveryChunk, stateKept: hasState }
  },
  problem: findArkProblem,
  plain: reply => writePlain(reply, flavour),
  frames: reply => writeFrames(reply, flavour),
  error: writeArkError,
  errorFrame: error => ({ kind: 'error', data: writeArkError(error) }),
}

const UNSUPPORTED_FIELDS = new Set([
  'background',
  'conversation',
  'truncation',
  'top_logprobs',
  'prompt',
  'metadata',
  'user',
])
export const arkResponsesFields: readonly string[] = [
  ...responsesFields.filter(name => !UNSUPPORTED_FIELDS.has(name)),
  'caching',
  'expire_at',
  'thinking',
  'session',
]

/** Ark's Responses API: OpenAI's with other fields and other errors. */
export const arkResponsesWire: Dialect = {
  ...responsesWire,
  name: 'ark-responses',
  problem(request) {
    const body = bodyOf(request)
    if (!isRecord(body)) return { message: 'The request body is not valid JSON.' }
    return findBodyProblem(body, arkResponsesFields, request.ordinal)
  },
  error: writeArkError,
}
