// POST /v1/images/generations and /v1/images/edits, whole and as a stream whose events may each hold an image.

import type { Usage } from '../../base/money/usage.ts'
import type { AnswerReading, Call, FrameReading } from '../neutral/call.ts'
import { writeError } from '../openai-chat/errors.ts'
import {
  buildAnswerReader,
  buildFrameReader,
  readFormCall,
  readFormCount,
  readFormFlag,
  readJsonCall,
  writeFormModel,
  writeModel,
} from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { readOptional, refuseFields } from '../request/checks.ts'
import { MEDIA_PART_BYTES } from '../request/input-size.ts'
import type { Json } from '../request/json-type.ts'
import { addUsage, isImage, readInputOutputUsage } from '../usage/passthrough-usage.ts'

const IMAGES_MAX = 128
const FRAMES_MAX = 1_000
/** Tokens of one image: of the largest, and of a usual one at each quality. */
const IMAGE_TOKENS_MAX = 16_384
const TOKENS_BY_QUALITY: Readonly<Record<string, number>> = { low: 408, medium: 1_584, standard: 1_584 }
const BEST_QUALITY_TOKENS = 6_240
/** Tokens of one input image at the highest fidelity. */
const INPUT_IMAGE_TOKENS_MAX = 8_192

const uniqueFields = ['prompt', 'n', 'stream', 'quality', 'frame_count', 'partial_images']

interface ImageOptions {
  readonly images: number
  readonly frames: number
  readonly quality: unknown
}

/** Adds the images that a call can make: as images, and as tokens for models that are priced by tokens. */
function addImageUnits(call: Call, { images, frames, quality }: ImageOptions): Call {
  const total = images * frames
  const tokensPerImage = TOKENS_BY_QUALITY[typeof quality === 'string' ? quality : ''] ?? BEST_QUALITY_TOKENS
  return {
    ...call,
    units: { images: total },
    outputTokensMax: total * IMAGE_TOKENS_MAX,
    outputTokensGuess: total * tokensPerImage,
    outputGuessKind: 'outputImage',
    finishEvents: images,
    // An image of several frames is one image of the answer, but each frame is billed.
    ...(frames === 1 && { imageOrder: 'at_once' }),
  }
}

const common = {
  lastEvent: '',
  hidesStages: true,
  writeCall: writeModel,
  writeError,
  readAnswer: buildAnswerReader(readImages),
  readFrame: buildFrameReader(readImageFrame),
} as const

export const images: Protocol = {
  ...common,
  name: 'openai-images',
  readCall(body) {
    const call = readJsonCall('openai-images', body, uniqueFields)
    const { json } = call
    // With this field a second model would draw, at a price of its own.
    refuseFields(json, ['svg'])
    const options = {
      images: readOptional(json, 'n', 'choices') ?? 1,
      frames: Math.min(readOptional(json, 'frame_count', 'count') ?? 1, FRAMES_MAX),
      quality: json.quality,
    }
    return { ...addImageUnits(call, options), stream: readOptional(json, 'stream', 'boolean') ?? false }
  },
}

export const imageEdits: Protocol = {
  ...common,
  name: 'openai-image-edits',
  requestType: 'multipart',
  passedHeaders: ['content-type'],
  writeCall: writeFormModel,
  readCall(body, request) {
    const { call, files } = readFormCall('openai-image-edits', body, { request, readFields: uniqueFields })
    const { json } = call
    const textBytes = files.reduce((rest, { start, end }) => rest - (end - start), body.byteLength)
    const options = {
      images: readFormCount(json, 'n', IMAGES_MAX) ?? 1,
      frames: readFormCount(json, 'frame_count', FRAMES_MAX) ?? 1,
      quality: json.quality,
    }
    return {
      ...addImageUnits(call, options),
      stream: readFormFlag(json, 'stream'),
      textOnly: false,
      inputBytes: textBytes + files.length * MEDIA_PART_BYTES,
      imageInputBytes: files.length * MEDIA_PART_BYTES,
      inputTokensMax: textBytes + Math.max(1, files.length) * INPUT_IMAGE_TOKENS_MAX,
    }
  },
}

function readImages({ data, usage }: Json): AnswerReading | undefined {
  if (!Array.isArray(data)) return undefined
  const count = data.filter(isImage).length
  const uses = { images: count }
  return { outputBytes: count, usage: readInputOutputUsage(usage, 'outputImage', uses), uses }
}

/** The stream has no last event. Each image has a `completed` event of its own, with the usage of that image only. */
function readImageFrame({ usage }: Json, type: string, earlier?: Usage): FrameReading | undefined {
  if (type.endsWith('.partial_image')) return { kind: 'content', outputBytes: 1, finishes: 0 }
  if (!type.endsWith('.completed')) return undefined
  return {
    kind: 'closing',
    outputBytes: 1,
    finishes: 1,
    usage: addUsage(earlier, readInputOutputUsage(usage, 'outputImage')),
    uses: { images: 1 },
  }
}
