// Reads one event of a streamed message as it passes.

import type { Usage } from '../../base/money/usage.ts'
import type { FrameReading } from '../neutral/call.ts'
import { asideFrame, garbageFrame } from '../neutral/call.ts'
import { isBadReason } from '../neutral/finish-reasons.ts'
import { isObject, parseUpstreamAnswer } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { estimateTextBytes } from '../usage/text-bytes.ts'
import { countWrittenBytes, readError, readFailed, readToolUse } from './response.ts'
import { readBilledClass, readUsage } from './usage.ts'

/** `earlier` is the usage that the stream last reported: the end of a stream repeats only a part of it. */
export function readFrame(data: string | undefined, earlier?: Usage): FrameReading {
  // Some providers send the end marker of OpenAI's dialect after their own last event.
  if (data === undefined || data === '[DONE]') return asideFrame
  const event = parseUpstreamAnswer(data)
  if (!isObject(event)) return garbageFrame
  if (event.type === 'error' || event.error) {
    return { kind: 'error', outputBytes: 0, finishes: 0, error: readError(event.error ?? event) }
  }
  return typeof event.type === 'string' ? readEvent(event, earlier) : garbageFrame
}

function readEvent(json: Json, earlier: Usage | undefined): FrameReading {
  switch (json.type) {
    case 'message_start': {
      const report = isObject(json.message) ? json.message.usage : undefined
      const [usage, serviceClass] = [readUsage(report, earlier), readBilledClass(report)]
      return { kind: 'opening', outputBytes: 0, finishes: 0, json, usage, serviceClass }
    }
    case 'content_block_start': {
      const uses = readToolUse(json.content_block)
      const reading = buildReading(json, countWrittenBytes(json.content_block), isWholeBlock(json.content_block))
      return {
        ...reading,
        ...(uses !== undefined && { uses }),
        ...(isReadAgainAfter(json.content_block) && { readsAgain: true }),
      }
    }
    case 'content_block_delta':
      return addThoughtBytes(buildReading(json, deltaBytes(json.delta)), json.delta)
    case 'content_block_stop':
      return buildReading(json, 0)
    case 'message_delta': {
      const isDone = isObject(json.delta) && typeof json.delta.stop_reason === 'string'
      const usage = readUsage(json.usage, earlier)
      const reason = isObject(json.delta) ? json.delta.stop_reason : undefined
      return {
        kind: isDone ? 'content' : 'opening',
        outputBytes: 0,
        finishes: isDone ? 1 : 0,
        json,
        usage,
        ...(isBadReason('anthropic-messages', reason) && { badEnd: true, ...readFailed(reason) }),
      }
    }
    case 'message_stop':
      return { kind: 'terminal', outputBytes: 0, finishes: 0, json }
    default:
      // A ping, or an unknown event, which clients of this dialect must ignore.
      return { ...asideFrame, json }
  }
}

const buildReading = (json: Json, outputBytes: number, whole = false): FrameReading => ({
  kind: outputBytes > 0 || whole ? 'content' : 'opening',
  outputBytes,
  finishes: 0,
  json,
})

const addThoughtBytes = (reading: FrameReading, delta: unknown): FrameReading =>
  isObject(delta) && delta.type === 'thinking_delta' ? { ...reading, thoughtBytes: reading.outputBytes } : reading

/** Blocks that arrive in one piece: redacted thinking, and results of the provider's tools. */
function isWholeBlock(block: unknown): boolean {
  if (!isObject(block) || typeof block.type !== 'string') return false
  return block.type === 'redacted_thinking' || block.type.endsWith('_tool_result')
}

/** Blocks that the model writes in one reading of its input. All others are tools of the provider, or a summary. */
const WRITTEN_BLOCKS: ReadonlySet<unknown> = new Set(['text', 'thinking', 'redacted_thinking', 'tool_use'])

const isReadAgainAfter = (block: unknown): boolean => isObject(block) && !WRITTEN_BLOCKS.has(block.type)

function deltaBytes(delta: unknown): number {
  if (!isObject(delta)) return 0
  switch (delta.type) {
    case 'text_delta':
      return estimateTextBytes(delta.text)
    case 'thinking_delta':
      return estimateTextBytes(delta.thinking)
    case 'input_json_delta':
      return estimateTextBytes(delta.partial_json)
    case 'compaction_delta':
      return estimateTextBytes(delta.content)
    default:
      return 0
  }
}
