// POST /api/v3/images/generations: plain, and as events. What was drawn is what its report says: a slot may have failed
// on its own.

import type { UsageReport } from '../../base/money/usage.ts'
import { tokenCount } from '../../base/money/usage.ts'
import { writeError } from '../ark/errors.ts'
import type { AnswerReading, FrameReading } from '../neutral/call.ts'
import { answerReader, frameReader, readJsonCall, writeModel } from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { invalid, missing, optional } from '../request/checks.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'

/** As many as it draws of itself where it may draw several. */
const IMAGES_MAX = 15
const IMAGE_TOKENS_MAX = 65_536
const IMAGE_TOKENS = 4_096
/** As often as it may search while it draws. */
const SEARCHES_MAX = 10

const readFields = [
  'prompt', 'stream', 'tools', 'sequential_image_generation', 'sequential_image_generation_options',
]

export const images: Protocol = {
  name: 'ark-images',
  lastEvent: '',
  quiet: true,
  readCall(body) {
    const call = readJsonCall('ark-images', body, readFields)
    const { json } = call
    if (optional(json, 'prompt', 'text') === undefined) throw missing('prompt')
    const pictures = picturesOf(json)
    const searches = (optional(json, 'tools', 'list') ?? []).length > 0
    return {
      ...call,
      stream: optional(json, 'stream', 'boolean') ?? false,
      units: { images: pictures },
      outputTokensMax: pictures * IMAGE_TOKENS_MAX,
      outputTokensGuess: pictures * IMAGE_TOKENS,
      outputGuessKind: 'outputImage',
      searchesMax: searches ? SEARCHES_MAX : 0,
    }
  },
  writeCall: writeModel,
  readAnswer: answerReader(readImages),
  readFrame: frameReader(readImageFrame),
  writeError,
}

function picturesOf(json: Json): number {
  if (json.sequential_image_generation !== 'auto') return 1
  const options = optional(json, 'sequential_image_generation_options', 'object')
  const most = options?.max_images ?? IMAGES_MAX
  if (!(Number.isSafeInteger(most) && (most as number) >= 1 && (most as number) <= IMAGES_MAX)) {
    throw invalid('sequential_image_generation_options.max_images', `must be an integer from 1 to ${IMAGES_MAX}`)
  }
  return most as number
}

const isDrawn = (one: unknown): boolean =>
  isObject(one) && (typeof one.url === 'string' || typeof one.b64_json === 'string')

function readImages({ data, usage }: Json): AnswerReading | undefined {
  if (!Array.isArray(data)) return undefined
  const drawn = data.filter(isDrawn).length
  return { outputBytes: drawn, usage: readImageUsage(usage, drawn) }
}

function readImageFrame({ usage }: Json, type: string): FrameReading | undefined {
  if (type === 'image_generation.partial_succeeded') return { kind: 'content', outputBytes: 1, finishes: 0 }
  if (type === 'image_generation.partial_failed') return { kind: 'content', outputBytes: 0, finishes: 0 }
  if (type !== 'image_generation.completed') return undefined
  return { kind: 'closing', outputBytes: 0, finishes: 1, usage: readImageUsage(usage, undefined) }
}

/** `drawn` is what can be seen of it, where nothing is reported. */
export function readImageUsage(report: unknown, drawn: number | undefined): UsageReport | undefined {
  if (!isObject(report)) return drawn ? { input: 0, output: 0, images: drawn } : undefined
  const images = tokenCount(report.generated_images ?? drawn ?? 0)
  const output = tokenCount(report.output_tokens ?? 0)
  const total = tokenCount(report.total_tokens ?? output)
  const { web_search: searched } = isObject(report.tool_usage) ? report.tool_usage : {}
  const searches = tokenCount(searched ?? 0)
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
