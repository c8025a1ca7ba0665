// Reads a whole message as it passes: its usage, how much text it has, and whether it is an error with status 200.

import type { UpstreamError } from '../../base/errors.ts'
import type { Units } from '../../base/money/usage.ts'
import { jsonText } from '../../base/text/json-text.ts'
import { readErrorDetail } from '../error-detail.ts'
import { findErrorStatus } from '../error-status.ts'
import type { AnswerReading } from '../neutral/call.ts'
import { isFailureReason } from '../neutral/finish-reasons.ts'
import { isObject, parseUpstreamAnswer } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { estimateTextBytes } from '../usage/text-bytes.ts'
import { readBilledClass, readUsage } from './usage.ts'

export function readAnswer(body: Buffer): AnswerReading | undefined {
  const answer = parseUpstreamAnswer(body)
  if (!isObject(answer)) return undefined
  if (answer.type === 'error' || answer.error) return { outputBytes: 0, error: readError(answer.error ?? answer) }
  const content = contentOf(answer)
  if (content === undefined) return undefined
  let outputBytes = 0
  for (const block of content) outputBytes += countWrittenBytes(block)
  const { usage } = answer
  const uses = countToolUses(content)
  return {
    json: answer,
    outputBytes,
    usage: readUsage(usage),
    serviceClass: readBilledClass(usage),
    ...(uses !== undefined && { uses }),
    ...readFailed(answer.stop_reason),
  }
}

/** The blocks of a message. Some servers write an empty list as null, or a text instead of a list. */
export function contentOf({ type, content }: Json): readonly unknown[] | undefined {
  if (Array.isArray(content)) return content as readonly unknown[]
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return content === null && type === 'message' ? [] : undefined
}

/** Counts the use of a provider's tool that a block reports. */
export function readToolUse(block: unknown): Units | undefined {
  if (!isObject(block) || block.type !== 'server_tool_use') return undefined
  if (block.name === 'web_search') return { searches: 1 }
  return typeof block.name === 'string' && block.name.includes('code_execution') ? { codeSessions: 1 } : undefined
}

/** An answer has one session for all its code. */
function countToolUses(blocks: readonly unknown[]): Units | undefined {
  const uses = blocks.map(readToolUse).filter(use => use !== undefined)
  const searches = uses.filter(use => use.searches !== undefined).length
  if (uses.length === 0) return undefined
  return { ...(searches > 0 && { searches }), ...(searches < uses.length && { codeSessions: 1 }) }
}

/** Other providers of this dialect have stop reasons that report a failure. */
export const readFailed = (reason: unknown): { readonly failed?: string } =>
  isFailureReason('anthropic-messages', reason) ? { failed: `It ended with "${jsonText(reason)}".` } : {}

/** Counts what the model wrote in a block; results of the provider's tools do not count. */
export function countWrittenBytes(block: unknown): number {
  if (!isObject(block)) return 0
  switch (block.type) {
    case 'text':
      return estimateTextBytes(block.text)
    case 'thinking':
      return estimateTextBytes(block.thinking)
    case 'compaction':
      return estimateTextBytes(block.content)
    case 'tool_use':
    case 'server_tool_use':
    case 'mcp_tool_use':
      return estimateTextBytes(block.name) + inputBytes(block.input)
    default:
      return 0
  }
}

/** Every streamed block starts with an empty input, which is not output of the model. */
function inputBytes(input: unknown): number {
  if (!isObject(input)) return 0
  const text = JSON.stringify(input)
  return text === '{}' ? 0 : estimateTextBytes(text)
}

/** The status of an error that arrives with status 200 and names no status itself. */
const ERROR_STATUS = 502

export function readError(value: unknown): UpstreamError {
  const error: Json = isObject(value) ? value : { message: value }
  const { type, details } = error
  return {
    status: findErrorStatus(error, ERROR_STATUS),
    message: readErrorDetail(error) ?? 'The upstream gave no reason.',
    ...(typeof type === 'string' && type !== '' && { type }),
    ...(isObject(details) && { details }),
  }
}
