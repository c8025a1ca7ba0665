// POST /v1/completions: OpenAI's older endpoint, which continues a text.

import type { AnswerReading, Call, CallTarget, FrameReading } from '../neutral/call.ts'
import { writeError } from '../openai-chat/errors.ts'
import { buildUsageSplice, refuseDuplicateOption } from '../openai-chat/request.ts'
import { readUsage } from '../openai-chat/usage.ts'
import {
  buildAnswerReader,
  findError,
  garbageFrame,
  ignoredFrame,
  parseAnswerObject,
  readJsonCall,
} from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { invalid, missing, readOptional } from '../request/checks.ts'
import { insertField } from '../request/field-splice.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { Splice } from '../request/splices.ts'
import { applySplices } from '../request/splices.ts'
import { estimateTextBytes } from '../usage/text-bytes.ts'

const CHOICES_MAX = 128 * 128
const uniqueFields = ['prompt', 'stream', 'stream_options', 'n', 'best_of', 'max_tokens']

export const completions: Protocol = {
  name: 'openai-completions',
  lastEvent: 'data: [DONE]\n\n',
  readCall(body) {
    const { outputTokensMax: _none, uncapped: _may, ...call } = readJsonCall('openai-completions', body, uniqueFields)
    const { json } = call
    checkPrompt(json.prompt)
    const options = readOptional(json, 'stream_options', 'object')
    refuseDuplicateOption(body, call.fields.get('stream_options'))
    const [choicesPerPrompt, bestOf] = [
      readOptional(json, 'n', 'choices') ?? 1,
      readOptional(json, 'best_of', 'choices') ?? 1,
    ]
    // With `best_of`, the tokens of discarded choices are billed as well.
    const choices = countPrompts(json.prompt) * Math.max(choicesPerPrompt, bestOf)
    if (choices > CHOICES_MAX) throw invalid('prompt', 'has too many texts for this many choices')
    const cap = readOptional(json, 'max_tokens', 'count')
    return {
      ...call,
      choices,
      // The model's context window bounds each text on its own, so the whole body is the bound on the input.
      ...(countPrompts(json.prompt) > 1 && { inputTokensMax: body.byteLength }),
      stream: readOptional(json, 'stream', 'boolean') ?? false,
      wantsUsage: options?.include_usage === true,
      ...(cap !== undefined && { outputTokensMax: cap }),
    }
  },
  writeCall,
  readAnswer: buildAnswerReader(json => readCompletion(json)),
  readFrame,
  writeError,
}

function writeCall(call: Call, target: CallTarget): Uint8Array {
  const splices: Splice[] = [{ ...call.fields.get('model')!, text: JSON.stringify(target.model) }]
  if (call.stream && target.askUsage && !call.wantsUsage) splices.push(buildUsageSplice(call))
  if (target.cap !== undefined) splices.push(capSplice(call, target.cap))
  return applySplices(call.body, splices)
}

/** The gateway imposes a cap only if it is smaller than the caller's own. */
function capSplice(call: Call, cap: number): Splice {
  const ownCap = call.fields.get('max_tokens')
  return ownCap === undefined ? insertField(call, 'max_tokens', String(cap)) : { ...ownCap, text: String(cap) }
}

function checkPrompt(prompt: unknown): void {
  if (prompt === undefined || prompt === null) throw missing('prompt')
  if (typeof prompt !== 'string' && !(Array.isArray(prompt) && prompt.length > 0)) {
    throw invalid('prompt', 'must be a text or a list')
  }
}

/** A list of numbers is one text as tokens. */
const countPrompts = (prompt: unknown): number =>
  Array.isArray(prompt) && !prompt.every(item => typeof item === 'number') ? prompt.length : 1

function readCompletion({ choices, usage }: Json): AnswerReading | undefined {
  if (!Array.isArray(choices)) return undefined
  return { outputBytes: countOutputBytes(choices), usage: readUsage(usage) }
}

function countOutputBytes(choices: readonly unknown[]): number {
  let bytes = 0
  for (const choice of choices) {
    if (isObject(choice)) bytes += estimateTextBytes(choice.text)
  }
  return bytes
}

function readFrame(data: string | undefined): FrameReading {
  if (data === undefined) return ignoredFrame
  if (data === '[DONE]') return { kind: 'terminal', outputBytes: 0, finishes: 0 }
  const json = parseAnswerObject(data)
  if (json === undefined) return garbageFrame
  const error = findError(json)
  if (error !== undefined) return { ...garbageFrame, kind: 'error', error }
  const choices = Array.isArray(json.choices) ? (json.choices as readonly unknown[]) : []
  const outputBytes = countOutputBytes(choices)
  const isDone = (item: unknown): boolean =>
    isObject(item) && typeof item.finish_reason === 'string' && item.finish_reason !== ''
  const finishes = choices.filter(isDone).length
  const kind = outputBytes > 0 || finishes > 0 ? 'content' : choices.length === 0 && json.usage ? 'usage' : 'opening'
  return { kind, outputBytes, finishes, usage: readUsage(json.usage) }
}
