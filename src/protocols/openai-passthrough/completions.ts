// POST /v1/completions: the older sibling of chat, which goes on where a text breaks off.

import type { AnswerReading, Call, CallTarget, FrameReading } from '../neutral/call.ts'
import { writeError } from '../openai-chat/errors.ts'
import { checkOnce, usageSplice } from '../openai-chat/request.ts'
import { readUsage } from '../openai-chat/usage.ts'
import { answerReader, aside, garbage, parseAnswer, readJsonCall, saidError } from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { invalid, missing, optional } from '../request/checks.ts'
import { fieldSplice } from '../request/field-splice.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import type { Splice } from '../request/splice.ts'
import { spliced } from '../request/splice.ts'
import { textBytes } from '../usage/text-bytes.ts'

const CHOICES_MAX = 128 * 128
const readFields = ['prompt', 'stream', 'stream_options', 'n', 'best_of', 'max_tokens']

export const completions: Protocol = {
  name: 'openai-completions',
  lastEvent: 'data: [DONE]\n\n',
  readCall(body) {
    const { outputTokensMax: _none, uncapped: _may, ...call } = readJsonCall('openai-completions', body, readFields)
    const { json } = call
    checkPrompt(json.prompt)
    const options = optional(json, 'stream_options', 'object')
    checkOnce(body, call.fields.get('stream_options'))
    const [each, best] = [optional(json, 'n', 'choices') ?? 1, optional(json, 'best_of', 'choices') ?? 1]
    // Of what is written and not chosen, each token is billed as well.
    const choices = promptsOf(json.prompt) * Math.max(each, best)
    if (choices > CHOICES_MAX) throw invalid('prompt', 'holds too many texts')
    const cap = optional(json, 'max_tokens', 'count')
    return {
      ...call,
      choices,
      // A context is that of one text, and each is read in its own.
      ...(promptsOf(json.prompt) > 1 && { inputTokensMax: body.byteLength }),
      stream: optional(json, 'stream', 'boolean') ?? false,
      wantsUsage: options?.include_usage === true,
      ...(cap !== undefined && { outputTokensMax: cap }),
    }
  },
  writeCall,
  readAnswer: answerReader(json => readCompletion(json)),
  readFrame,
  writeError,
}

function writeCall(call: Call, target: CallTarget): Uint8Array {
  const splices: Splice[] = [{ ...call.fields.get('model')!, text: JSON.stringify(target.model) }]
  if (call.stream && target.askUsage && !call.wantsUsage) splices.push(usageSplice(call))
  if (target.cap !== undefined) splices.push(capSplice(call, target.cap))
  return spliced(call.body, splices)
}

/** A cap of ours is smaller than the caller's own, if there is one. */
function capSplice(call: Call, cap: number): Splice {
  const given = call.fields.get('max_tokens')
  return given === undefined ? fieldSplice(call, 'max_tokens', String(cap)) : { ...given, text: String(cap) }
}

function checkPrompt(prompt: unknown): void {
  if (prompt === undefined || prompt === null) throw missing('prompt')
  if (typeof prompt !== 'string' && !(Array.isArray(prompt) && prompt.length > 0)) {
    throw invalid('prompt', 'must be a text or a list')
  }
}

/** A list of numbers is one text, in tokens. */
const promptsOf = (prompt: unknown): number =>
  Array.isArray(prompt) && !prompt.every(one => typeof one === 'number') ? prompt.length : 1

function readCompletion({ choices, usage }: Json): AnswerReading | undefined {
  if (!Array.isArray(choices)) return undefined
  return { outputBytes: writtenBytes(choices), usage: readUsage(usage) }
}

function writtenBytes(choices: readonly unknown[]): number {
  let bytes = 0
  for (const choice of choices) {
    if (isObject(choice)) bytes += textBytes(choice.text)
  }
  return bytes
}

function readFrame(data: string | undefined): FrameReading {
  if (data === undefined) return aside
  if (data === '[DONE]') return { kind: 'terminal', outputBytes: 0, finishes: 0 }
  const json = parseAnswer(data)
  if (json === undefined) return garbage
  const error = saidError(json)
  if (error !== undefined) return { ...garbage, kind: 'error', error }
  const choices = Array.isArray(json.choices) ? (json.choices as readonly unknown[]) : []
  const outputBytes = writtenBytes(choices)
  const isDone = (one: unknown): boolean =>
    isObject(one) && typeof one.finish_reason === 'string' && one.finish_reason !== ''
  const finishes = choices.filter(isDone).length
  const kind = outputBytes > 0 || finishes > 0 ? 'content' : choices.length === 0 && json.usage ? 'usage' : 'opening'
  return { kind, outputBytes, finishes, usage: readUsage(json.usage) }
}
