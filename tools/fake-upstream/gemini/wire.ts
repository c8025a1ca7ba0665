// Writes the Gemini dialect: whole answers, stream chunks and errors.

import type { Choice, Dialect, ErrorFields, Finish, Frame, Reply, ToolCall, WireUsage } from '../dialect.ts'
import { addRawField, base36, findStatus, joinPieces, listTextPieces, writeCounts } from '../dialect.ts'
import { issueStateBytes } from '../reasoning-state.ts'
import { findGeminiProblem } from './problem.ts'
import { readGeminiRequest, stateOwner } from './request.ts'

const finishReasons: Readonly<Record<Finish, string>> = {
  stop: 'STOP',
  length: 'MAX_TOKENS',
  tool_calls: 'STOP',
  content_filter: 'SAFETY',
}

/** The count of candidates does not include thoughts. */
function usageJson(usage: WireUsage): string {
  if ('json' in usage) return usage.json
  const { input, output, cached, reasoning = 0, audioInput } = usage
  const total = typeof input === 'number' && typeof output === 'number' ? input + output : output
  const counts = writeCounts({
    promptTokenCount: input,
    cachedContentTokenCount: cached,
    candidatesTokenCount: typeof output === 'number' ? output - reasoning : output,
    thoughtsTokenCount: reasoning || undefined,
    totalTokenCount: total,
  })
  if (typeof input !== 'number') return counts
  const text = { modality: 'TEXT', tokenCount: input - (audioInput ?? 0) }
  const audio = audioInput === undefined ? [] : [{ modality: 'AUDIO', tokenCount: audioInput }]
  return `${counts.slice(0, -1)},"promptTokensDetails":${JSON.stringify([text, ...audio])}}`
}

/** The usage before the end of a stream: only the prompt is known. */
function earlyUsageJson(usage: WireUsage | undefined): string | undefined {
  if (!usage || 'json' in usage) return undefined
  const { input, cached } = usage
  return writeCounts({ promptTokenCount: input, cachedContentTokenCount: cached, totalTokenCount: input })
}

function writeObject(reply: Reply, candidates: readonly object[], usage: string | undefined): string {
  const object = { candidates, modelVersion: reply.model, responseId: `fake${base36(reply.ordinal)}` }
  return addRawField(object, 'usageMetadata', usage)
}

function writeState(reply: Reply, choice: Choice): object {
  const { text = '', state } = choice.reasoning ?? {}
  if (state === null) return {}
  return { thoughtSignature: state ?? issueStateBytes({ by: stateOwner, ordinal: reply.ordinal, text }) }
}

function parseArgs(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

/** The first call of a turn has the signature, whether thoughts are shown or not. */
function callPart(
  reply: Reply,
  { choice, call, position }: { choice: Choice; call: ToolCall; position: number },
): object {
  const id = call.id ?? `fc_fake${base36(reply.ordinal)}${choice.index}${position}`
  const functionCall = { id, name: call.name, args: parseArgs(call.arguments) }
  return { functionCall, ...(position === 0 && writeState(reply, choice)) }
}

/** The thoughts; a stream sends the text separately, piece by piece. */
function thoughtParts(choice: Choice): readonly object[] {
  return choice.reasoning && choice.reasoning.text !== '' ? [{ text: choice.reasoning.text, thought: true }] : []
}

/** Reasoning without calls has its signature on the last part. */
const writeLastState = (reply: Reply, choice: Choice): object =>
  choice.reasoning && !choice.toolCalls ? writeState(reply, choice) : {}

const callParts = (reply: Reply, choice: Choice): readonly object[] =>
  (choice.toolCalls ?? []).map((call, position) => callPart(reply, { choice, call, position }))

function candidate(choice: Choice, parts: readonly object[], finish?: string): object {
  const content = { role: 'model', parts }
  const refused = finish === 'SAFETY' && choice.refusal !== undefined ? { finishMessage: choice.refusal } : {}
  return { content, ...(finish !== undefined && { finishReason: finish }), ...refused, index: choice.index }
}

function writePlain(reply: Reply): string {
  const candidates = reply.choices.map(choice => {
    const text = joinPieces(choice)
    const silent = text === '' && (choice.toolCalls !== undefined || choice.refusal !== undefined)
    const textParts = silent ? [] : [{ text, ...writeLastState(reply, choice) }]
    const parts = [...thoughtParts(choice), ...textParts, ...callParts(reply, choice)]
    return candidate(choice, parts, finishReasons[choice.finish])
  })
  return writeObject(reply, candidates, reply.usage && usageJson(reply.usage))
}

function* writeFrames(reply: Reply): Iterable<Frame> {
  const early = earlyUsageJson(reply.usage)
  let pieces = 0
  const chunk = (choice: Choice, part: object): Frame => {
    const usage = reply.usageOfPiece ? usageJson(reply.usageOfPiece(pieces++)) : early
    return { kind: 'piece', data: writeObject(reply, [candidate(choice, [part])], usage), newline: '\r\n' }
  }
  for (const choice of reply.choices) {
    for (const part of thoughtParts(choice)) yield chunk(choice, part)
    for (const text of listTextPieces(choice)) yield chunk(choice, { text })
    for (const part of callParts(reply, choice)) yield chunk(choice, part)
  }
  for (const [at, choice] of reply.choices.entries()) {
    const isLast = at === reply.choices.length - 1
    const usage = isLast ? reply.usage && usageJson(reply.usage) : early
    const last = candidate(choice, [{ text: '', ...writeLastState(reply, choice) }], finishReasons[choice.finish])
    yield { kind: 'finish', data: writeObject(reply, [last], usage), newline: '\r\n' }
  }
}

const statusNames: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  413: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

function writeError(error: ErrorFields): string {
  const code = findStatus(error)
  const reason = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: error.code, domain: 'googleapis.com' }
  const details = error.code === undefined ? {} : { details: [reason] }
  const status = statusNames[code] ?? (code < 500 ? 'UNKNOWN' : 'UNAVAILABLE')
  return JSON.stringify({ error: { code, message: error.message, status, ...details } })
}

export const geminiWire: Dialect = {
  name: 'gemini',
  traits: { terminal: false, opening: false, choices: true, places: false, earlyUsage: true },
  read: readGeminiRequest,
  problem: findGeminiProblem,
  plain: writePlain,
  frames: writeFrames,
  error: writeError,
  errorFrame: error => ({ kind: 'error', data: writeError(error), newline: '\r\n' }),
}
