// Writes the OpenAI chat dialect: whole answers, stream chunks and errors.

import { readChatRequest } from './chat-request.ts'
import type { Choice, Dialect, Frame, RawJson, Reply, SaidError, SpokenUsage } from './dialect.ts'

/** Fixed, so that the same requests give the same bytes. */
export const createdS = Date.UTC(2026, 0, 1) / 1000

const base36 = (ordinal: number) => ordinal.toString(36).padStart(6, '0')
const callId = (reply: Reply, choice: Choice) => `call_fake${base36(reply.ordinal)}${choice.index}`

const numberJson = (value: number | RawJson) => (typeof value === 'number' ? String(value) : value.json)

function usageJson(usage: SpokenUsage): string {
  if ('json' in usage) return usage.json
  const { input, output, cached = 0 } = usage
  const total = typeof input === 'number' && typeof output === 'number' ? input + output : output
  const fields = { prompt_tokens: input, completion_tokens: output, total_tokens: total }
  const counts = Object.entries(fields).map(([name, value]) => `"${name}":${numberJson(value)},`)
  return `{${counts.join('')}"prompt_tokens_details":{"cached_tokens":${cached}}}`
}

/** Usage is put in as text, because a fault may give one that no JSON writer would write. */
function writeObject(reply: Reply, object: string, rest: { choices: readonly unknown[]; usage: string | undefined }) {
  const id = `chatcmpl-fake${base36(reply.ordinal)}`
  const json = JSON.stringify({ id, object, created: createdS, model: reply.model, choices: rest.choices })
  return rest.usage === undefined ? json : `${json.slice(0, -1)},"usage":${rest.usage}}`
}

function writePlain(reply: Reply): string {
  const choices = reply.choices.map(choice => ({
    index: choice.index,
    message: writeMessage(reply, choice),
    logprobs: null,
    finish_reason: choice.finish,
  }))
  return writeObject(reply, 'chat.completion', { choices, usage: reply.usage && usageJson(reply.usage) })
}

function writeMessage(reply: Reply, choice: Choice) {
  if (!choice.toolCall) return { role: 'assistant', content: [...choice.pieces].join(''), refusal: null }
  const { name, arguments: given } = choice.toolCall
  const call = { id: callId(reply, choice), type: 'function', function: { name, arguments: given } }
  return { role: 'assistant', content: null, refusal: null, tool_calls: [call] }
}

function* writeFrames(reply: Reply): Iterable<Frame> {
  const noUsage = reply.usageAsked ? 'null' : undefined
  const write = (choices: readonly unknown[], usage: string | undefined) =>
    writeObject(reply, 'chat.completion.chunk', { choices, usage })
  const one = (choice: Choice, delta: unknown, finish: string | null = null) =>
    ({ index: choice.index, delta, logprobs: null, finish_reason: finish })

  for (const choice of reply.choices) {
    const content = choice.toolCall ? null : ''
    yield { kind: 'open', data: write([one(choice, { role: 'assistant', content, refusal: null })], noUsage) }
  }
  let pieces = 0
  for (const [choice, delta] of inTurn(reply)) {
    const usage = reply.usageOfPiece ? usageJson(reply.usageOfPiece(pieces++)) : noUsage
    yield { kind: 'piece', data: write([one(choice, delta)], usage) }
  }
  for (const choice of reply.choices) {
    yield { kind: 'finish', data: write([one(choice, {}, choice.finish)], noUsage) }
  }
  if (reply.usage) yield { kind: 'usage', data: write([], usageJson(reply.usage)) }
  yield { kind: 'done', data: '[DONE]' }
}

/** The choices grow side by side, as they do at the provider. */
function* inTurn(reply: Reply): Iterable<readonly [Choice, unknown]> {
  const growing = reply.choices.map(choice => ({ choice, deltas: deltasOf(reply, choice)[Symbol.iterator]() }))
  while (growing.length > 0) {
    for (const part of [...growing]) {
      const next = part.deltas.next()
      if (next.done) growing.splice(growing.indexOf(part), 1)
      else yield [part.choice, next.value]
    }
  }
}

function* deltasOf(reply: Reply, choice: Choice): Iterable<unknown> {
  if (!choice.toolCall) {
    for (const content of choice.pieces) yield { content }
    return
  }
  const { name, arguments: given, index = 0 } = choice.toolCall
  const id = callId(reply, choice)
  yield { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }
  yield { tool_calls: [{ index, function: { arguments: given } }] }
}

function writeError(error: SaidError): string {
  const { message, type = 'invalid_request_error', param = null, code = null } = error
  return JSON.stringify({ error: { message, type, param, code } })
}

export const chatWire: Dialect = {
  name: 'openai-chat',
  read: readChatRequest,
  plain: writePlain,
  frames: writeFrames,
  error: writeError,
  errorFrame: error => ({ kind: 'error', data: writeError(error) }),
}
