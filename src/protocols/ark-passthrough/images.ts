// POST /api/v3/images/generations, whole and as a stream. The usage report says how many images were made: single images
// may fail.

import type { UsageReport } from '../../base/money/usage.ts'
import { tokenCount } from '../../base/money/usage.ts'
import { writeError } from '../ark/errors.ts'
import type { AnswerReading, FrameReading } from '../neutral/call.ts'
import { buildAnswerReader, buildFrameReader, readJsonCall, writeModel } from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { invalid, missing, readOptional } from '../request/checks.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { isImage } from '../usage/passthrough-usage.ts'

/** How many images a model makes at most if it may decide on the number. */
const IMAGES_MAX = 15
const IMAGE_TOKENS_MAX = 65_536
const IMAGE_TOKENS_GUESS = 4_096
/** How many searches the hold assumes at most for one call. */
const SEARCHES_MAX = 10

const uniqueFields = ['prompt', 'stream', 'tools', 'sequential_image_generation', 'sequential_image_generation_options']

export const images: Protocol = {
  name: 'ark-images',
  lastEvent: '',
  hidesStages: true,
  readCall(body) {
    const call = readJsonCall('ark-images', body, uniqueFields)
    const { json } = call
    if (readOptional(json, 'prompt', 'text') === undefined) throw missing('prompt')
    const images = countImages(json)
    const hasTools = (readOptional(json, 'tools', 'list') ?? []).length > 0
    return {
      ...call,
      stream: readOptional(json, 'stream', 'boolean') ?? false,
      units: { images },
      outputTokensMax: images * IMAGE_TOKENS_MAX,
      outputTokensGuess: images * IMAGE_TOKENS_GUESS,
      outputGuessKind: 'outputImage',
      imageOrder: 'in_turn',
      searchesMax: hasTools ? SEARCHES_MAX : 0,
    }
  },
  writeCall: writeModel,
  readAnswer: buildAnswerReader(readImages),
  readFrame: buildFrameReader(readImageFrame),
  writeError,
}

function countImages(json: Json): number {
  if (json.sequential_image_generation !== 'auto') return 1
  const options = readOptional(json, 'sequential_image_generation_options', 'object')
  const max = options?.max_images ?? IMAGES_MAX
  if (!(Number.isSafeInteger(max) && (max as number) >= 1 && (max as number) <= IMAGES_MAX)) {
    throw invalid('sequential_image_generation_options.max_images', `must be an integer from 1 to ${IMAGES_MAX}`)
  }
  return max as number
}

function readImages({ data, usage }: Json): AnswerReading | undefined {
  if (!Array.isArray(data)) return undefined
  const images = data.filter(isImage).length
  return { outputBytes: images, usage: readImageUsage(usage, images), uses: { images } }
}

function readImageFrame({ usage }: Json, type: string): FrameReading | undefined {
  if (type === 'image_generation.partial_succeeded') {
    return { kind: 'content', outputBytes: 1, finishes: 0, uses: { images: 1 } }
  }
  if (type === 'image_generation.partial_failed') return { kind: 'content', outputBytes: 0, finishes: 0 }
  if (type !== 'image_generation.completed') return undefined
  return { kind: 'closing', outputBytes: 0, finishes: 1, usage: readImageUsage(usage, undefined) }
}

/** `counted` is the number of images in the answer, which counts if the report has none. */
export function readImageUsage(report: unknown, counted: number | undefined): UsageReport | undefined {
  if (!isObject(report)) return counted ? { input: 0, output: 0, images: counted } : undefined
  const images = tokenCount(report.generated_images ?? counted ?? 0)
  const output = tokenCount(report.output_tokens ?? 0)
  const total = tokenCount(report.total_tokens ?? output)
  const { web_search: webSearches } = isObject(report.tool_usage) ? report.tool_usage : {}
  const searches = tokenCount(webSearches ?? 0)
  if (images === undefined || output === undefined || total === undefined || searches === undefined) return 'nonsense'
  if (total < output) return 'nonsense'
  return {
    input: total - output,
    output: 0,
    ...(output > 0 && { outputImage: output }),
    images,
    ...(searches > 0 && { searches }),
  }
}
