// Reads one event of a streamed chat completion.

import type { FrameReading, ItemSizes } from '../neutral/call.ts'
import { addItems, asideFrame, garbageFrame, isEmptyItem, noItems } from '../neutral/call.ts'
import { isBadReason } from '../neutral/finish-reasons.ts'
import { parseUpstreamAnswer } from '../request/json-body.ts'
import { estimateWholeAudioBytes, pickMediaBytes } from '../usage/media-bytes.ts'
import type { ChatAnswer, ChatMessage } from './response.ts'
import {
  countMediaBytes,
  countThoughtBytes,
  countWrittenBytes,
  findError,
  findFailure,
  readError,
  readServiceClass,
  readStatus,
} from './response.ts'
import { findUsage, readUsage } from './usage.ts'

const terminal: FrameReading = { kind: 'terminal', outputBytes: 0, finishes: 0 }

export function readFrame(data: string | undefined): FrameReading {
  if (data === undefined) return asideFrame
  if (data.length < 16 && data.trim() === '[DONE]') return terminal
  const chunk = parseUpstreamAnswer(data) as ChatAnswer | undefined
  if (typeof chunk !== 'object' || chunk === null) return garbageFrame
  const error = findError(chunk)
  if (error) return { kind: 'error', outputBytes: 0, finishes: 0, error: readError(error, readStatus(chunk)) }
  const choices = Array.isArray(chunk.choices) ? chunk.choices : []
  let outputBytes = 0
  let thoughts = 0
  let finishes = 0
  let pictureBytes = 0
  let soundBytes = 0
  let badEnd = false
  let items: ItemSizes | undefined
  for (const choice of choices) {
    const media = countMediaBytes(choice?.delta)
    outputBytes += countWrittenBytes(choice?.delta) + media.pictureBytes + media.soundBytes
    pictureBytes += media.pictureBytes
    soundBytes += media.soundBytes
    thoughts += countThoughtBytes(choice?.delta)
    // Some upstreams send whole messages, a few of them after the deltas.
    if (!choice?.delta && choice?.message) items = addMessage(items, choice.message)
    // Some upstreams write an empty reason into each chunk before the last.
    if (typeof choice?.finish_reason === 'string' && choice.finish_reason !== '') finishes++
    badEnd ||= isBadReason('openai-chat', choice?.finish_reason)
  }
  const report = findUsage(chunk)
  const isContent = outputBytes > 0 || finishes > 0 || items !== undefined
  const kind = isContent ? 'content' : choices.length === 0 && report ? 'usage' : 'opening'
  const usage = readUsage(report)
  const serviceClass = readServiceClass(chunk)
  const failure = findFailure(chunk)
  return {
    kind,
    outputBytes,
    finishes,
    json: chunk,
    usage,
    serviceClass,
    ...pickMediaBytes({ pictureBytes, soundBytes }),
    ...(thoughts > 0 && { thoughtBytes: thoughts }),
    ...(items !== undefined && { items }),
    ...failure,
    ...(badEnd && { badEnd }),
  }
}

/** Undefined as long as there is no content. */
function addMessage(items: ItemSizes | undefined, message: ChatMessage): ItemSizes | undefined {
  const sizes = { textBytes: countWrittenBytes(message), thoughtBytes: countThoughtBytes(message) }
  const item = { ...sizes, ...countMediaBytes(message, estimateWholeAudioBytes) }
  return isEmptyItem(item) ? items : addItems(items ?? noItems, item)
}
