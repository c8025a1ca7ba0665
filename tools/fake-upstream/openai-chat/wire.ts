// Writes the OpenAI chat dialect: whole answers, stream chunks and errors.

import type { Choice, Dialect, ErrorFields, Frame, Reply, ToolCall, WireUsage } from '../dialect.ts'
import {
  addRawField,
  base36,
  createdS,
  joinPieces,
  listArgumentPieces,
  listTextPieces,
  writeCounts,
} from '../dialect.ts'
import { findChatProblem, readChatRequest } from './request.ts'

/** How similar dialects differ from OpenAI's. */
export interface Flavour {
  /** The value of an absent text. */
  readonly emptyText: string | null
  /** The opaque state that is sent with the reasoning. */
  readonly state: (reply: Reply, choice: Choice) => object
}

const openAi: Flavour = { emptyText: null, state: () => ({}) }

function callId(reply: Reply, choice: Choice, place: number): string {
  return `call_fake${base36(reply.ordinal)}${choice.index}${place === 0 ? '' : `_${place}`}`
}

export function usageJson(usage: WireUsage): string {
  if ('json' in usage) return usage.json
  const { input, output, cached = 0, cacheWrite, reasoning, audioInput, audioOutput } = usage
  const total = typeof input === 'number' && typeof output === 'number' ? input + output : output
  const counts = writeCounts({ prompt_tokens: input, completion_tokens: output, total_tokens: total })
  const inside = writeCounts({ cached_tokens: cached, cache_write_tokens: cacheWrite, audio_tokens: audioInput })
  const hasDetails = reasoning !== undefined || audioOutput !== undefined
  const details = writeCounts({ reasoning_tokens: reasoning ?? 0, audio_tokens: audioOutput })
  const rest = hasDetails ? `,"completion_tokens_details":${details}` : ''
  return `${counts.slice(0, -1)},"prompt_tokens_details":${inside}${rest}}`
}

function writeObject(reply: Reply, object: string, rest: { choices: readonly unknown[]; usage: string | undefined }) {
  const id = `chatcmpl-fake${base36(reply.ordinal)}`
  return addRawField({ id, object, created: createdS, model: reply.model, choices: rest.choices }, 'usage', rest.usage)
}

export function writePlain(reply: Reply, flavour: Flavour = openAi): string {
  const choices = reply.choices.map(choice => ({
    index: choice.index,
    message: writeMessage(reply, choice, flavour),
    logprobs: reply.logprobs ? { content: [...choice.pieces].map(logprobOf), refusal: null } : null,
    finish_reason: choice.finish,
  }))
  return writeObject(reply, 'chat.completion', { choices, usage: reply.usage && usageJson(reply.usage) })
}

const logprobOf = (token: string) => ({ token, logprob: -0.25, bytes: [...Buffer.from(token)], top_logprobs: [] })

function writeMessage(reply: Reply, choice: Choice, flavour: Flavour) {
  const { reasoning, refusal = null, toolCalls } = choice
  const text = joinPieces(choice)
  const silent = text === '' && (toolCalls !== undefined || refusal !== null)
  const call = ({ id, name, arguments: given }: ToolCall, place: number) => ({
    id: id ?? callId(reply, choice, place),
    type: 'function',
    function: { name, arguments: given },
  })
  return {
    role: 'assistant',
    content: silent ? flavour.emptyText : text,
    refusal,
    ...(reasoning && { reasoning_content: reasoning.text, ...flavour.state(reply, choice) }),
    ...(toolCalls && { tool_calls: toolCalls.map(call) }),
  }
}

export function* writeFrames(reply: Reply, flavour: Flavour = openAi): Iterable<Frame> {
  const noUsage = reply.wantsUsage ? 'null' : undefined
  const write = (choices: readonly unknown[], usage: string | undefined) =>
    writeObject(reply, 'chat.completion.chunk', { choices, usage })
  const one = (choice: Choice, delta: Delta, finish: string | null = null) => {
    const hasLogprobs = reply.logprobs && typeof delta.content === 'string' && delta.role === undefined
    const logprobs = hasLogprobs ? { content: [logprobOf(String(delta.content))], refusal: null } : null
    return { index: choice.index, delta, logprobs, finish_reason: finish }
  }

  for (const choice of reply.choices) {
    const content = choice.toolCalls && joinPieces(choice) === '' ? flavour.emptyText : ''
    yield { kind: 'open', data: write([one(choice, { role: 'assistant', content, refusal: null })], noUsage) }
  }
  let pieces = 0
  for (const [choice, delta] of inTurn(reply, flavour)) {
    const usage = reply.usageOfPiece ? usageJson(reply.usageOfPiece(pieces++)) : noUsage
    yield { kind: 'piece', data: write([one(choice, delta)], usage) }
  }
  for (const choice of reply.choices) {
    yield { kind: 'finish', data: write([one(choice, {}, choice.finish)], noUsage) }
  }
  if (reply.usage) yield { kind: 'usage', data: write([], usageJson(reply.usage)) }
  yield { kind: 'done', data: '[DONE]' }
}

type Delta = Readonly<Record<string, unknown>>

/** The events of the choices alternate, as at the real provider. */
function* inTurn(reply: Reply, flavour: Flavour): Iterable<readonly [Choice, Delta]> {
  const growing = reply.choices.map(choice => ({ choice, deltas: deltasOf(reply, choice, flavour)[Symbol.iterator]() }))
  while (growing.length > 0) {
    for (const part of [...growing]) {
      const next = part.deltas.next()
      if (next.done) growing.splice(growing.indexOf(part), 1)
      else yield [part.choice, next.value]
    }
  }
}

function* deltasOf(reply: Reply, choice: Choice, flavour: Flavour): Iterable<Delta> {
  if (choice.reasoning) {
    if (choice.reasoning.text !== '') yield { reasoning_content: choice.reasoning.text }
    const state = flavour.state(reply, choice)
    if (Object.keys(state).length > 0) yield { ...state }
  }
  for (const content of listTextPieces(choice)) yield { content }
  if (choice.refusal !== undefined) yield { refusal: choice.refusal }
  for (const [place, call] of (choice.toolCalls ?? []).entries()) {
    const { id, name, index = place } = call
    const opened = { id: id ?? callId(reply, choice, place), type: 'function', function: { name, arguments: '' } }
    yield { tool_calls: [{ index, ...opened }] }
    for (const piece of listArgumentPieces(call)) yield { tool_calls: [{ index, function: { arguments: piece } }] }
  }
}

export function writeError(error: ErrorFields): string {
  const { message, type = 'invalid_request_error', param = null, code = null } = error
  return JSON.stringify({ error: { message, type, param, code } })
}

export const chatWire: Dialect = {
  name: 'openai-chat',
  traits: { terminal: true, opening: true, choices: true, places: true, earlyUsage: true },
  read: readChatRequest,
  problem: findChatProblem,
  plain: reply => writePlain(reply),
  frames: reply => writeFrames(reply),
  error: writeError,
  errorFrame: error => ({ kind: 'error', data: writeError(error) }),
}
