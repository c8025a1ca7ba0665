// POST /v1/images/generations and /v1/images/edits: plain, and as events of which each may hold a picture.

import type { Usage } from '../../base/money/usage.ts'
import type { AnswerReading, Call, FrameReading } from '../neutral/call.ts'
import { writeError } from '../openai-chat/errors.ts'
import {
  answerReader,
  formCount,
  formFlag,
  frameReader,
  readFormCall,
  readJsonCall,
  writeFormModel,
  writeModel,
} from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { optional, refuseFields } from '../request/checks.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { addUsage, readBothUsage } from '../usage/passthrough-usage.ts'

const IMAGES_MAX = 128
const FRAMES_MAX = 1_000
/** Of one picture: what the largest comes to, and what the usual ones do at each quality. */
const IMAGE_TOKENS_MAX = 16_384
const TOKENS_BY_QUALITY: Readonly<Record<string, number>> = { low: 408, medium: 1_584, standard: 1_584 }
const TOKENS_OF_BEST = 6_240
/** Of one picture that is shown to the model, at the highest fidelity. */
const SHOWN_TOKENS_MAX = 8_192

const readFields = ['prompt', 'n', 'stream', 'quality', 'frame_count', 'partial_images']

interface Wish {
  readonly images: number
  readonly frames: number
  readonly quality: unknown
}

/** What is drawn is counted in pictures, and in tokens for prices that know only those. */
function drawing(call: Call, { images, frames, quality }: Wish): Call {
  const pictures = images * frames
  const each = TOKENS_BY_QUALITY[typeof quality === 'string' ? quality : ''] ?? TOKENS_OF_BEST
  return {
    ...call,
    units: { images: pictures },
    outputTokensMax: pictures * IMAGE_TOKENS_MAX,
    outputTokensGuess: pictures * each,
    outputGuessKind: 'outputImage',
  }
}

const base = {
  lastEvent: '',
  quiet: true,
  writeCall: writeModel,
  writeError,
  readAnswer: answerReader(readImages),
  readFrame: frameReader(readImageFrame),
} as const

export const images: Protocol = {
  ...base,
  name: 'openai-images',
  readCall(body) {
    const call = readJsonCall('openai-images', body, readFields)
    const { json } = call
    // A second model would draw, at a price of its own.
    refuseFields(json, ['svg'])
    const wish = {
      images: optional(json, 'n', 'choices') ?? 1,
      frames: Math.min(optional(json, 'frame_count', 'count') ?? 1, FRAMES_MAX),
      quality: json.quality,
    }
    return { ...drawing(call, wish), stream: optional(json, 'stream', 'boolean') ?? false }
  },
}

export const imageEdits: Protocol = {
  ...base,
  name: 'openai-image-edits',
  takes: 'multipart',
  passes: ['content-type'],
  writeCall: writeFormModel,
  readCall(body, asked) {
    const { call, files } = readFormCall('openai-image-edits', body, { asked, readFields })
    const { json } = call
    const textBytes = files.reduce((rest, { start, end }) => rest - (end - start), body.byteLength)
    const wish = {
      images: formCount(json, 'n', IMAGES_MAX) ?? 1,
      frames: formCount(json, 'frame_count', FRAMES_MAX) ?? 1,
      quality: json.quality,
    }
    return {
      ...drawing(call, wish),
      stream: formFlag(json, 'stream'),
      textOnly: false,
      inputBytes: textBytes + files.length * 4_000,
      inputTokensMax: textBytes + Math.max(1, files.length) * SHOWN_TOKENS_MAX,
    }
  },
}

/** A slot may hold an error in place of a picture. */
const isDrawn = (one: unknown): boolean =>
  isObject(one) && (typeof one.url === 'string' || typeof one.b64_json === 'string')

function readImages({ data, usage }: Json): AnswerReading | undefined {
  if (!Array.isArray(data)) return undefined
  const drawn = data.filter(isDrawn).length
  return { outputBytes: drawn, usage: readBothUsage(usage, 'outputImage', { images: drawn }) }
}

/** There is no last event but the end: of several pictures each is completed, and tells what it alone came to. */
function readImageFrame({ usage }: Json, type: string, earlier?: Usage): FrameReading | undefined {
  if (type.endsWith('.partial_image')) return { kind: 'content', outputBytes: 1, finishes: 0 }
  if (!type.endsWith('.completed')) return undefined
  return { kind: 'closing', outputBytes: 1, finishes: 1, usage: addUsage(earlier, readBothUsage(usage, 'outputImage')) }
}
