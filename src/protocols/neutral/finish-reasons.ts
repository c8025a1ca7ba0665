// The table of finish reasons: each reason of each dialect and of compatible vendors, what it means, and what callers
// of each dialect get for it. docs/reference/finish-reasons.md is generated from this table.
//
// An incomplete answer must never look complete. A missing or unknown reason therefore means `other`, which no dialect
// writes as a normal end, and the upstream's reason is listed as a loss.

import type { Finish } from './answer.ts'
import type { Losses } from './losses.ts'
import type { TranslationNotes } from './translation-notes.ts'

/** A field in which upstreams give the finish reason. Ark uses the reasons of chat. */
export type FinishReasonField = 'openai-chat' | 'anthropic-messages' | 'gemini' | 'gemini-block' | 'openai-responses'

export interface FinishReasonRow {
  readonly field: FinishReasonField
  readonly reason: string
  readonly finish: Finish
  /** The vendors that send the reason, if it is not part of the dialect itself. */
  readonly vendors?: string
}

type ReasonTable = Readonly<Partial<Record<Finish, readonly (string | readonly [reason: string, by: string])[]>>>

/** Reasons of OpenAI's chat and of compatible vendors. Accepted in all dialects, because relays mix them up. */
const chat: ReasonTable = {
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

const messages: ReasonTable = {
  stop: ['end_turn'],
  stop_sequence: ['stop_sequence'],
  length: ['max_tokens'],
  context: ['model_context_window_exceeded'],
  calls: ['tool_use'],
  filtered: ['refusal'],
  // After a compaction the model expects another call with the summary that it wrote.
  paused: ['pause_turn', 'compaction'],
}

const gemini: ReasonTable = {
  stop: ['STOP'],
  // CONTINUATION: the model would continue in another call.
  length: ['MAX_TOKENS', 'CONTINUATION'],
  filtered: [
    'SAFETY',
    'RECITATION',
    'LANGUAGE',
    'BLOCKLIST',
    'PROHIBITED_CONTENT',
    'SPII',
    'IMAGE_SAFETY',
    'IMAGE_PROHIBITED_CONTENT',
    'IMAGE_RECITATION',
    ['MODEL_ARMOR', 'Vertex AI'],
  ],
  malformed: [
    'MALFORMED_FUNCTION_CALL',
    'UNEXPECTED_TOOL_CALL',
    'TOO_MANY_TOOL_CALLS',
    'MISSING_THOUGHT_SIGNATURE',
    'MALFORMED_RESPONSE',
  ],
  other: ['OTHER', 'FINISH_REASON_UNSPECIFIED', 'NO_IMAGE', 'IMAGE_OTHER'],
}

/** `promptFeedback.blockReason`: with any value, the prompt was blocked. */
const block: ReasonTable = {
  filtered: [
    'SAFETY',
    'OTHER',
    'BLOCKLIST',
    'PROHIBITED_CONTENT',
    'IMAGE_SAFETY',
    'MODEL_ARMOR',
    'JAILBREAK',
    'BLOCKED_REASON_UNSPECIFIED',
  ],
}

/** The status of a response. For `incomplete`, followed by the reason in `incomplete_details`. */
const responses: ReasonTable = {
  stop: ['completed'],
  length: ['incomplete/max_output_tokens'],
  filtered: ['incomplete/content_filter'],
  paused: ['incomplete/max_messages'],
  failed: ['failed'],
  other: ['incomplete', 'incomplete/steered', 'cancelled', 'in_progress', 'queued'],
}

const fields: Readonly<Record<FinishReasonField, ReasonTable>> = {
  'openai-chat': chat,
  'anthropic-messages': messages,
  'gemini': gemini,
  'gemini-block': block,
  'openai-responses': responses,
}

export const finishReasonRows: readonly FinishReasonRow[] = Object.entries(fields).flatMap(([field, listed]) =>
  Object.entries(listed).flatMap(([finish, reasons]) =>
    reasons.map((one): FinishReasonRow => {
      const [reason, by] = typeof one === 'string' ? [one] : one
      return {
        field: field as FinishReasonField,
        reason,
        finish: finish as Finish,
        ...(by !== undefined && { vendors: by }),
      }
    }),
  ),
)

const meanings: ReadonlyMap<string, Finish> = new Map(
  finishReasonRows.map(({ field, reason, finish }) => [`${field} ${reason.toLowerCase()}`, finish]),
)

/** `other` if the reason is unknown or no text. Some vendors add text after a colon: `content_filter: RECITATION`. */
export function readFinish(field: FinishReasonField, reason: unknown): Finish {
  if (field === 'gemini-block') return 'filtered'
  if (typeof reason !== 'string') return 'other'
  const known = meanings.get(`${field} ${reason}`)
  if (known !== undefined) return known
  const whole = reason.trim().toLowerCase()
  const colon = whole.indexOf(':')
  for (const name of colon < 0 ? [whole] : [whole, whole.slice(0, colon).trim()]) {
    const meaning = meanings.get(`${field} ${name}`) ?? meanings.get(`openai-chat ${name}`)
    if (meaning !== undefined) return meaning
  }
  return 'other'
}

/** Whether the table has the reason. */
export const isKnownReason = (field: FinishReasonField, reason: string): boolean =>
  meanings.has(`${field} ${reason.toLowerCase()}`)

/** Whether the reason means that the upstream failed in the middle of its answer. */
export const isFailureReason = (field: FinishReasonField, reason: unknown): boolean =>
  typeof reason === 'string' && reason !== '' && readFinish(field, reason) === 'failed'

/** With these reasons, an answer without content that its upstream does not bill is a failure. */
export const badFinishes: ReadonlySet<Finish> = new Set(['malformed', 'failed', 'other'])

export const isBadReason = (field: FinishReasonField, reason: unknown): boolean =>
  typeof reason === 'string' && reason !== '' && badFinishes.has(readFinish(field, reason))

export interface ChoiceEnd {
  readonly finish: Finish
  /** The upstream's own reason, if some dialect has no equal of `finish`. */
  readonly reason?: string | undefined
}

/** What a choice contains when it ends. */
export interface ChoiceContents {
  /** It has tool calls. */
  readonly calls: boolean
  /** It has text. */
  readonly words: boolean
  /** It has a refusal. */
  readonly refused?: boolean
  /** It has content that cannot be carried: a tool call that the caller should run, or something unknown. */
  readonly lost?: 'call' | 'unknown' | undefined
}

const REASON_CHARS_MAX = 48
const MISSING = 'missing'

const finishesWithReason: ReadonlySet<Finish> = new Set(['context', 'paused', 'malformed', 'failed', 'other'])

/** Returns why a choice ended. Checks the reason against what the choice contains, because upstreams contradict it. */
export function readChoiceEnd(
  field: FinishReasonField,
  reason: unknown,
  has: ChoiceContents,
  notes: TranslationNotes,
): ChoiceEnd {
  const finish = readFinish(field, reason)
  const original = typeof reason === 'string' && reason !== '' ? { reason: reason.slice(0, REASON_CHARS_MAX) } : {}
  if (finish === 'stop' && has.calls) return { finish: 'calls' }
  if (finish === 'stop' && has.refused) return { finish: 'filtered' }
  // The model waits for the result of a call that the caller does not get.
  if (finish === 'stop' && has.lost === 'call') return { finish: 'other', ...original }
  if (finish === 'calls' && !has.calls) {
    // The only call may be the tool that stands for the answer's schema. Its arguments are then the answer.
    if (has.words && notes.schemaTool !== undefined) return { finish: 'stop' }
    // Some vendors give this reason without any call, and then the text is the answer. If a call is lost, it is not.
    if (!has.words || has.lost !== undefined) return { finish: 'other', ...original }
    notes.losses.add(lossCode(original.reason))
    return { finish: 'stop' }
  }
  return finishesWithReason.has(finish) ? { finish, ...original } : { finish }
}

const lossCode = (reason = MISSING): string => `finish_reason.${reason}`

/** The dialects of callers that have their own finish reasons. Ark uses the reasons of chat. */
export type CallerDialect = 'openai-chat' | 'anthropic-messages' | 'openai-responses' | 'gemini'

interface WrittenReason {
  readonly reason: string
  /** The reason means the same. Otherwise the upstream's reason is listed as a loss. */
  readonly isExact: boolean
}

const exact = (says: string): WrittenReason => ({ reason: says, isExact: true })
const nearest = (says: string): WrittenReason => ({ reason: says, isExact: false })

const CUT_OFF = 'incomplete/max_output_tokens'

/**
 * The finish reason that callers get. If their dialect has no equal, the answer is written as cut off: agents then take
 * it neither for complete nor for forbidden. The Responses dialect always has a reason with `incomplete`, because
 * clients take `incomplete` without a reason for a normal end.
 */
export const writtenReasons: Readonly<Record<CallerDialect, Readonly<Record<Finish, WrittenReason>>>> = {
  'openai-chat': {
    stop: exact('stop'),
    stop_sequence: exact('stop'),
    length: exact('length'),
    calls: exact('tool_calls'),
    filtered: exact('content_filter'),
    context: nearest('length'),
    paused: nearest('length'),
    malformed: nearest('length'),
    failed: nearest('length'),
    other: nearest('length'),
  },
  'anthropic-messages': {
    stop: exact('end_turn'),
    stop_sequence: exact('stop_sequence'),
    length: exact('max_tokens'),
    calls: exact('tool_use'),
    filtered: exact('refusal'),
    context: exact('model_context_window_exceeded'),
    paused: exact('pause_turn'),
    malformed: nearest('max_tokens'),
    failed: nearest('max_tokens'),
    other: nearest('max_tokens'),
  },
  'openai-responses': {
    stop: exact('completed'),
    stop_sequence: exact('completed'),
    calls: exact('completed'),
    length: exact(CUT_OFF),
    filtered: exact('incomplete/content_filter'),
    context: nearest(CUT_OFF),
    paused: nearest(CUT_OFF),
    malformed: nearest(CUT_OFF),
    failed: nearest(CUT_OFF),
    other: nearest(CUT_OFF),
  },
  'gemini': {
    stop: exact('STOP'),
    stop_sequence: exact('STOP'),
    calls: exact('STOP'),
    length: exact('MAX_TOKENS'),
    filtered: exact('SAFETY'),
    context: nearest('MAX_TOKENS'),
    paused: nearest('OTHER'),
    malformed: exact('MALFORMED_FUNCTION_CALL'),
    failed: nearest('OTHER'),
    other: nearest('OTHER'),
  },
}

/** Adds a loss if this dialect cannot express how the choice ended. */
export function addFinishLoss(losses: Losses, dialect: CallerDialect, ended: ChoiceEnd): void {
  const code = findFinishLoss(dialect, ended)
  if (code !== undefined) losses.add(code)
}

/** Returns the loss code for the end of a choice in this dialect. Undefined: nothing is lost. */
export function findFinishLoss(dialect: CallerDialect, { finish, reason }: ChoiceEnd): string | undefined {
  return writtenReasons[dialect][finish].isExact
    ? undefined
    : lossCode(reason ?? (finish === 'other' ? MISSING : finish))
}
