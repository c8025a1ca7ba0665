// The one table of why an answer ended: every reason of every dialect and of the vendors that are compatible with one,
// what it means, and what callers of each dialect get for it. docs/finish-reasons.md is generated from this table.
//
// An answer that was cut must never look whole. A reason that is not in the table, or that is missing, therefore means
// `other`, which no dialect writes as a good end, and the original reason is listed as a loss.

import type { Finish } from './answer.ts'
import type { Losses } from './losses.ts'
import type { TranslationNotes } from './translation-notes.ts'

/** A field in which an upstream says why its answer ended. Ark says it as chat does. */
export type ReasonField = 'openai-chat' | 'anthropic-messages' | 'gemini' | 'gemini-block' | 'openai-responses'

export interface ReasonRow {
  readonly field: ReasonField
  readonly reason: string
  readonly finish: Finish
  /** Who sends it, where that is not the dialect's own maker. */
  readonly by?: string
}

type Listed = Readonly<Partial<Record<Finish, readonly (string | readonly [reason: string, by: string])[]>>>

/** Reasons of OpenAI's chat, and of the many who speak it. All dialects know these, because relays mix them up. */
const chat: Listed = {
  stop: ['stop', ['eos', 'Together'], ['eos_token', 'TGI'], ['complete', 'Cohere'], ['end_turn', 'xAI, relays']],
  stop_sequence: [['stop_sequence', 'TGI, Cohere']],
  length: ['length', ['max_tokens', 'Cohere, relays'], ['max_output', 'MiniMax'], ['max_output_tokens', 'relays']],
  context: [
    ['model_length', 'Mistral'],
    ['model_context_window_exceeded', 'Zhipu, Bedrock'],
    ['error_limit', 'Cohere'],
  ],
  calls: ['tool_calls', 'function_call', ['tool_call', 'Cohere'], ['tool_use', 'relays']],
  filtered: [
    'content_filter',
    ['sensitive', 'Zhipu'],
    ['error_toxic', 'Cohere'],
    ['guardrail_intervened', 'Bedrock'],
    ['content_filtered', 'Bedrock'],
    ['refusal', 'relays'],
    ['safety', 'relays'],
  ],
  paused: [['pause_turn', 'relays']],
  malformed: [
    ['malformed_model_output', 'Bedrock'],
    ['malformed_tool_use', 'Bedrock'],
    ['function_call_filter', 'Google'],
  ],
  failed: [
    ['error', 'Mistral, OpenRouter, Cohere, vLLM'],
    ['insufficient_system_resource', 'DeepSeek'],
    ['network_error', 'Zhipu'],
    ['abort', 'vLLM, SGLang'],
    ['timeout', 'Cohere'],
    ['load', 'Ollama'],
    ['unload', 'Ollama'],
  ],
  other: [
    ['repetition', 'vLLM'],
    ['user_cancel', 'Cohere'],
    ['cancelled', 'relays'],
  ],
}

const messages: Listed = {
  stop: ['end_turn'],
  stop_sequence: ['stop_sequence'],
  length: ['max_tokens'],
  context: ['model_context_window_exceeded'],
  calls: ['tool_use'],
  filtered: ['refusal'],
  // After a compaction the model waits to be called with the summary that it wrote.
  paused: ['pause_turn', 'compaction'],
}

const gemini: Listed = {
  stop: ['STOP'],
  // At CONTINUATION the model would go on if it were asked again.
  length: ['MAX_TOKENS', 'CONTINUATION'],
  filtered: [
    ...['SAFETY', 'RECITATION', 'LANGUAGE', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII'],
    ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION', ['MODEL_ARMOR', 'Vertex AI'] as const],
  ],
  malformed: [
    ...['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS'],
    ...['MISSING_THOUGHT_SIGNATURE', 'MALFORMED_RESPONSE'],
  ],
  other: ['OTHER', 'FINISH_REASON_UNSPECIFIED', 'NO_IMAGE', 'IMAGE_OTHER'],
}

/** `promptFeedback.blockReason`: whatever it says, the prompt was blocked. */
const block: Listed = {
  filtered: [
    ...['SAFETY', 'OTHER', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'IMAGE_SAFETY', 'MODEL_ARMOR', 'JAILBREAK'],
    'BLOCKED_REASON_UNSPECIFIED',
  ],
}

/** The status, or `incomplete` with the reason in its details. */
const responses: Listed = {
  stop: ['completed'],
  length: ['incomplete/max_output_tokens'],
  filtered: ['incomplete/content_filter'],
  paused: ['incomplete/max_messages'],
  failed: ['failed'],
  other: ['incomplete', 'incomplete/steered', 'cancelled', 'in_progress', 'queued'],
}

const fields: Readonly<Record<ReasonField, Listed>> = {
  'openai-chat': chat,
  'anthropic-messages': messages,
  'gemini': gemini,
  'gemini-block': block,
  'openai-responses': responses,
}

export const reasonRows: readonly ReasonRow[] = Object.entries(fields).flatMap(([field, listed]) =>
  Object.entries(listed).flatMap(([finish, reasons]) =>
    reasons.map((one): ReasonRow => {
      const [reason, by] = typeof one === 'string' ? [one] : one
      return { field: field as ReasonField, reason, finish: finish as Finish, ...(by !== undefined && { by }) }
    }),
  ),
)

const meanings: ReadonlyMap<string, Finish> = new Map(
  reasonRows.map(({ field, reason, finish }) => [`${field} ${reason.toLowerCase()}`, finish]),
)

/** `other` for a reason that is unknown or no text. Some put more behind a colon: `content_filter: RECITATION`. */
export function meaningOf(field: ReasonField, reason: unknown): Finish {
  if (field === 'gemini-block') return 'filtered'
  if (typeof reason !== 'string') return 'other'
  const whole = reason.trim().toLowerCase()
  const colon = whole.indexOf(':')
  for (const name of colon < 0 ? [whole] : [whole, whole.slice(0, colon).trim()]) {
    const meaning = meanings.get(`${field} ${name}`) ?? meanings.get(`openai-chat ${name}`)
    if (meaning !== undefined) return meaning
  }
  return 'other'
}

/** Whether the table has it. */
export const isListed = (field: ReasonField, reason: string): boolean =>
  meanings.has(`${field} ${reason.toLowerCase()}`)

/** Whether the reason says that the upstream itself failed in the middle of its answer. */
export const isFailure = (field: ReasonField, reason: unknown): boolean =>
  typeof reason === 'string' && reason !== '' && meaningOf(field, reason) === 'failed'

/** Ends at which an answer without any content is none. */
export const badEnds: ReadonlySet<Finish> = new Set(['malformed', 'failed', 'other'])

export const isBadEnd = (field: ReasonField, reason: unknown): boolean =>
  typeof reason === 'string' && reason !== '' && badEnds.has(meaningOf(field, reason))

export interface Ended {
  readonly finish: Finish
  /** The upstream's own word, where some dialect cannot say the same. */
  readonly reason?: string | undefined
}

/** What else is known of a choice when it ends. */
export interface EndedWith {
  readonly calls: boolean
  /** It said something in words. */
  readonly words: boolean
  /** It refused in words of its own. */
  readonly refused?: boolean
}

const REASON_CHARS_MAX = 48
const MISSING = 'missing'

const named: ReadonlySet<Finish> = new Set(['context', 'paused', 'malformed', 'failed', 'other'])

/** Why a choice ended. What a model says of its calls is checked against the calls that are there. */
export function endedBy(field: ReasonField, said: unknown, has: EndedWith, notes: TranslationNotes): Ended {
  const finish = meaningOf(field, said)
  const given = typeof said === 'string' && said !== '' ? { reason: said.slice(0, REASON_CHARS_MAX) } : {}
  if (finish === 'stop' && has.calls) return { finish: 'calls' }
  if (finish === 'stop' && has.refused) return { finish: 'filtered' }
  if (finish === 'calls' && !has.calls) {
    // The one call may have been the tool that holds an answer to its schema: then its arguments are the answer.
    if (has.words && notes.schemaTool !== undefined) return { finish: 'stop' }
    if (!has.words) return { finish: 'other', ...given }
    notes.losses.add(lossCode(given.reason))
    return { finish: 'stop' }
  }
  return named.has(finish) ? { finish, ...given } : { finish }
}

const lossCode = (reason = MISSING): string => `finish_reason.${reason}`

/** Dialects that callers read, as far as they say differently why an answer ended. Ark says it as chat does. */
export type CallerDialect = 'openai-chat' | 'anthropic-messages' | 'openai-responses' | 'gemini'

interface Written {
  readonly says: string
  /** It means the same; else the upstream's own reason is listed as a loss. */
  readonly exact: boolean
}

const exact = (says: string): Written => ({ says, exact: true })
const nearest = (says: string): Written => ({ says, exact: false })

const CUT = 'incomplete/max_output_tokens'

/**
 * What callers get. An end that their dialect has no word for becomes the one after which an agent does the least
 * harm: it takes the answer for cut, and neither for whole nor for forbidden. The Responses dialect always gives a
 * reason with `incomplete`, because clients read `incomplete` without a reason as a good end.
 */
export const writtenReasons: Readonly<Record<CallerDialect, Readonly<Record<Finish, Written>>>> = {
  'openai-chat': {
    ...{ stop: exact('stop'), stop_sequence: exact('stop'), length: exact('length'), calls: exact('tool_calls') },
    ...{ filtered: exact('content_filter'), context: nearest('length'), paused: nearest('length') },
    ...{ malformed: nearest('length'), failed: nearest('length'), other: nearest('length') },
  },
  'anthropic-messages': {
    ...{ stop: exact('end_turn'), stop_sequence: exact('stop_sequence'), length: exact('max_tokens') },
    ...{ calls: exact('tool_use'), filtered: exact('refusal'), context: exact('model_context_window_exceeded') },
    ...{ paused: exact('pause_turn'), malformed: nearest('max_tokens'), failed: nearest('max_tokens') },
    other: nearest('max_tokens'),
  },
  'openai-responses': {
    ...{ stop: exact('completed'), stop_sequence: exact('completed'), calls: exact('completed'), length: exact(CUT) },
    ...{ filtered: exact('incomplete/content_filter'), context: nearest(CUT), paused: nearest(CUT) },
    ...{ malformed: nearest(CUT), failed: nearest(CUT), other: nearest(CUT) },
  },
  'gemini': {
    ...{ stop: exact('STOP'), stop_sequence: exact('STOP'), calls: exact('STOP'), length: exact('MAX_TOKENS') },
    ...{ filtered: exact('SAFETY'), context: nearest('MAX_TOKENS'), paused: nearest('OTHER') },
    ...{ malformed: exact('MALFORMED_FUNCTION_CALL'), failed: nearest('OTHER'), other: nearest('OTHER') },
  },
}

/** Lists the end of an answer as lost where a caller of this dialect cannot be told the same reason. */
export function addLossOfEnd(losses: Losses, dialect: CallerDialect, ended: Ended): void {
  const code = lossOfEnd(dialect, ended)
  if (code !== undefined) losses.add(code)
}

/** The code to list as lost when a caller of this dialect is told of this end; undefined where nothing is lost. */
export function lossOfEnd(dialect: CallerDialect, { finish, reason }: Ended): string | undefined {
  return writtenReasons[dialect][finish].exact ? undefined : lossCode(reason ?? (finish === 'other' ? MISSING : finish))
}
