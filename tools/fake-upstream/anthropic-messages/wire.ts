// Writes the Anthropic messages dialect: whole answers, events and errors.

import type { Choice, Counts, Dialect, ErrorFields, Finish, Frame, Reasoning, Reply, WireUsage } from '../dialect.ts'
import {
  addRawField,
  base36,
  findStatus,
  joinPieces,
  listArgumentPieces,
  listTextPieces,
  writeCounts,
} from '../dialect.ts'
import { issueState } from '../reasoning-state.ts'
import { findMessagesProblem } from './problem.ts'
import { readMessagesRequest, stateOwner } from './request.ts'

const STOP_REASON_BY_FINISH: Readonly<Record<Finish, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
}

/** The input without tokens read from the cache or written to it, which Anthropic counts separately. */
function uncached({ input, cached = 0, cacheWrite = 0 }: Counts): Counts['input'] {
  return typeof input === 'number' ? input - cached - cacheWrite : input
}

function usageJson(usage: WireUsage, rest: string): string {
  if ('json' in usage) return usage.json
  const { output, cached = 0, cacheWrite = 0, reasoning } = usage
  const counts = writeCounts({
    input_tokens: uncached(usage),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cached,
    output_tokens: output,
  })
  const details = reasoning === undefined ? 'null' : writeCounts({ thinking_tokens: reasoning })
  return `${counts.slice(0, -1)},"output_tokens_details":${details},"server_tool_use":null${rest}}`
}

/** The usage of a message, with the fields that the last event of a stream does not repeat. */
function messageUsageJson(usage: WireUsage): string {
  const written = 'json' in usage ? 0 : (usage.cacheWrite ?? 0)
  const creation = `{"ephemeral_5m_input_tokens":${written},"ephemeral_1h_input_tokens":0}`
  const otherFields = '"service_tier":"standard","inference_geo":null,"speed":null'
  return usageJson(usage, `,"cache_creation":${creation},${otherFields}`)
}

const onlyChoice = (reply: Reply): Choice => reply.choices[0] ?? { index: 0, pieces: [], finish: 'stop' }

interface Block {
  readonly index: number
  /** The block of the start event, without content. */
  readonly empty: object
  readonly deltas: () => Iterable<object>
  readonly whole: () => object
}

function writeSignature(reply: Reply, { text, state }: Reasoning): string {
  return state === undefined ? issueState({ by: stateOwner, ordinal: reply.ordinal, text }) : (state ?? '')
}

function thinkingBlock(reply: Reply, reasoning: Reasoning): Omit<Block, 'index'> {
  const signature = writeSignature(reply, reasoning)
  const thinking = reasoning.text
  if (reasoning.redacted) {
    const whole = { type: 'redacted_thinking', data: signature }
    return { empty: whole, deltas: () => [], whole: () => whole }
  }
  return {
    empty: { type: 'thinking', thinking: '', signature: '' },
    *deltas() {
      if (thinking !== '') yield { type: 'thinking_delta', thinking }
      yield { type: 'signature_delta', signature }
    },
    whole: () => ({ type: 'thinking', thinking, signature }),
  }
}

function textBlock(choice: Choice): Omit<Block, 'index'> {
  return {
    empty: { type: 'text', text: '' },
    *deltas() {
      for (const text of listTextPieces(choice)) yield { type: 'text_delta', text }
    },
    whole: () => ({ type: 'text', text: joinPieces(choice), citations: null }),
  }
}

/** Parses the arguments; a fault may have arguments that are not JSON. */
function parseInput(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

/** Whether a choice has text, without iterating a text that may be endless. */
function hasText(choice: Choice): boolean {
  for (const piece of choice.pieces) if (piece !== '') return true
  return false
}

function* blocksOf(reply: Reply): Iterable<Block> {
  const choice = onlyChoice(reply)
  let next = 0
  if (choice.reasoning) yield { index: next++, ...thinkingBlock(reply, choice.reasoning) }
  const { refusal } = choice
  if (refusal !== undefined) yield { index: next++, ...textBlock({ ...choice, pieces: [refusal] }) }
  else if (hasText(choice)) yield { index: next++, ...textBlock(choice) }
  for (const [place, call] of (choice.toolCalls ?? []).entries()) {
    const { name, arguments: text } = call
    const id = call.id ?? `toolu_fake${base36(reply.ordinal)}${place}`
    yield {
      index: next + (call.index ?? place),
      empty: { type: 'tool_use', id, name, input: {} },
      deltas: () => ['', ...listArgumentPieces(call)].map(json => ({ type: 'input_json_delta', partial_json: json })),
      whole: () => ({ type: 'tool_use', id, name, input: parseInput(text), caller: { type: 'direct' } }),
    }
  }
}

function buildEnding(choice: Choice): object {
  const refused = choice.finish === 'content_filter'
  const explanation = choice.refusal ?? 'The answer was withheld.'
  return {
    stop_reason: choice.stopSequence !== undefined ? 'stop_sequence' : STOP_REASON_BY_FINISH[choice.finish],
    stop_sequence: choice.stopSequence ?? null,
    stop_details: refused ? { type: 'refusal', category: 'general_harms', explanation } : null,
    container: null,
  }
}

function messageJson(reply: Reply, content: readonly object[], rest: { end: object; usage: string | undefined }) {
  const id = `msg_fake${base36(reply.ordinal)}`
  const message = { id, type: 'message', role: 'assistant', model: reply.model, content }
  return addRawField({ ...message, ...rest.end, diagnostics: null }, 'usage', rest.usage)
}

function writePlain(reply: Reply): string {
  const content = Array.from(blocksOf(reply), block => block.whole())
  const usage = reply.usage && messageUsageJson(reply.usage)
  return messageJson(reply, content, { end: buildEnding(onlyChoice(reply)), usage })
}

function frame(kind: Frame['kind'], event: { readonly type: string; readonly [field: string]: unknown }): Frame {
  return { kind, event: event.type, data: JSON.stringify(event) }
}

const OPEN_ENDING = { stop_reason: null, stop_sequence: null, stop_details: null, container: null }

/** The usage in the start event: the input, and one token of output. */
function firstUsage(reply: Reply): string | undefined {
  const { usage } = reply
  if (reply.usageOfPiece) return messageUsageJson(reply.usageOfPiece(0))
  if (!usage) return undefined
  if ('json' in usage) return usage.json
  const { reasoning: _, ...known } = usage
  return messageUsageJson({ ...known, output: 1 })
}

function* writeFrames(reply: Reply): Iterable<Frame> {
  const message = messageJson(reply, [], { end: OPEN_ENDING, usage: firstUsage(reply) })
  yield { kind: 'open', event: 'message_start', data: `{"type":"message_start","message":${message}}` }
  yield frame('open', { type: 'ping' })
  for (const { index, empty, deltas } of blocksOf(reply)) {
    yield frame('open', { type: 'content_block_start', index, content_block: empty })
    for (const delta of deltas()) yield frame('piece', { type: 'content_block_delta', index, delta })
    yield frame('finish', { type: 'content_block_stop', index })
  }
  const last = { type: 'message_delta', delta: buildEnding(onlyChoice(reply)) }
  const usage = reply.usage && usageJson(reply.usage, '')
  yield { kind: 'finish', event: last.type, data: addRawField(last, 'usage', usage) }
  yield frame('done', { type: 'message_stop' })
}

const TYPE_BY_STATUS: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  408: 'timeout_error',
  409: 'conflict_error',
  413: 'request_too_large',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

function buildError(error: ErrorFields): object {
  const known = Object.values(TYPE_BY_STATUS).includes(error.type ?? '') || error.type === 'api_error'
  const type = error.status === undefined && known ? error.type : (TYPE_BY_STATUS[findStatus(error)] ?? 'api_error')
  const details = error.code === undefined ? {} : { details: { error_code: error.code } }
  return { type, message: error.message, ...details }
}

const writeError = (error: ErrorFields): string =>
  JSON.stringify({ type: 'error', error: buildError(error), request_id: 'req_fake' })

export const anthropicWire: Dialect = {
  name: 'anthropic-messages',
  traits: { terminal: true, opening: true, choices: false, places: true, earlyUsage: true },
  read: readMessagesRequest,
  problem: findMessagesProblem,
  plain: writePlain,
  frames: writeFrames,
  error: writeError,
  errorFrame: error => ({
    kind: 'error',
    event: 'error',
    data: JSON.stringify({ type: 'error', error: buildError(error) }),
  }),
}
