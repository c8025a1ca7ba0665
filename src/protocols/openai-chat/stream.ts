// Reads one event of a streamed chat completion.

import type { FrameReading } from '../neutral/call.ts'
import { isBadEnd } from '../neutral/finish-reasons.ts'
import { parseAnswer } from '../request/json-object.ts'
import { mediaOf } from '../usage/media-bytes.ts'
import type { ChatAnswer } from './response.ts'
import {
  errorIn,
  mediaBytes,
  readError,
  readFailed,
  readServiceClass,
  statusBeside,
  thoughtBytes,
  writtenBytes,
} from './response.ts'
import { readUsage, usageIn } from './usage.ts'

const aside: FrameReading = { kind: 'aside', outputBytes: 0, finishes: 0 }
const garbage: FrameReading = { kind: 'garbage', outputBytes: 0, finishes: 0 }
const terminal: FrameReading = { kind: 'terminal', outputBytes: 0, finishes: 0 }

export function readFrame(data: string | undefined): FrameReading {
  if (data === undefined) return aside
  if (data.length < 16 && data.trim() === '[DONE]') return terminal
  let chunk: ChatAnswer
  try {
    chunk = parseAnswer(data) as ChatAnswer
  } catch {
    return garbage
  }
  if (typeof chunk !== 'object' || chunk === null) return garbage
  const error = errorIn(chunk)
  if (error) return { kind: 'error', outputBytes: 0, finishes: 0, error: readError(error, statusBeside(chunk)) }
  const choices = Array.isArray(chunk.choices) ? chunk.choices : []
  let outputBytes = 0
  let thoughts = 0
  let finishes = 0
  let pictureBytes = 0
  let soundBytes = 0
  let badEnd = false
  for (const choice of choices) {
    const media = mediaBytes(choice?.delta)
    outputBytes += writtenBytes(choice?.delta) + media.pictureBytes + media.soundBytes
    pictureBytes += media.pictureBytes
    soundBytes += media.soundBytes
    thoughts += thoughtBytes(choice?.delta)
    // Some upstreams write an empty reason into each chunk before the last.
    if (typeof choice?.finish_reason === 'string' && choice.finish_reason !== '') finishes++
    badEnd ||= isBadEnd('openai-chat', choice?.finish_reason)
  }
  const report = usageIn(chunk)
  const isContent = outputBytes > 0 || finishes > 0
  const kind = isContent ? 'content' : choices.length === 0 && report ? 'usage' : 'opening'
  const usage = readUsage(report)
  const serviceClass = readServiceClass(chunk)
  const failure = readFailed(chunk)
  return {
    kind,
    outputBytes,
    finishes,
    json: chunk,
    usage,
    serviceClass,
    ...mediaOf({ pictureBytes, soundBytes }),
    ...(thoughts > 0 && { thoughtBytes: thoughts }),
    ...failure,
    ...(badEnd && { badEnd }),
  }
}
