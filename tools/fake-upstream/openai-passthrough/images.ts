// Image generation of OpenAI and Ark: always the same one-pixel image.

import { frameSteps, jsonAnswer, streamHead } from '../answers.ts'
import type { Json } from '../body-fields.ts'
import { isCount, listOf, numberOf, objectOf, recordOf, stringOf } from '../body-fields.ts'
import type { Frame, Problem } from '../dialect.ts'
import { countWords, createdS } from '../dialect.ts'
import { readForm } from '../multipart.ts'
import type { ReceivedRequest } from '../request.ts'
import type { Script } from '../script.ts'
import { end, script } from '../script.ts'

const DOT_PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const imagesMax = 8
const TOKENS_PER_IMAGE = 100

interface ImageOptions {
  readonly prompt: string
  readonly count: number
  readonly asUrl: boolean
  readonly inputImages: number
  readonly stream: boolean
}

type Refuse = (problem: Problem) => Script

const writeImage = ({ asUrl }: ImageOptions): object =>
  asUrl ? { url: 'https://images.invalid/dot.png' } : { b64_json: DOT_PNG }

function writeUsage({ prompt, count, inputImages }: ImageOptions): object {
  const [text_tokens, image_tokens] = [countWords(prompt), inputImages * TOKENS_PER_IMAGE]
  const [input, output] = [text_tokens + image_tokens, count * TOKENS_PER_IMAGE]
  const input_tokens_details = { text_tokens, image_tokens }
  return { input_tokens: input, output_tokens: output, total_tokens: input + output, input_tokens_details }
}

interface NamedEvent {
  readonly type: string
  readonly [field: string]: unknown
}

function writeStream(events: readonly NamedEvent[]): Script {
  const frames = events.map((event): Frame => ({ kind: 'piece', event: event.type, data: JSON.stringify(event) }))
  return script(streamHead, ...frameSteps(frames), end)
}

function readOptions(body: Json, inputImages: number): ImageOptions | undefined {
  if (stringOf(body.prompt) === '' || !isCount(body.n, imagesMax)) return undefined
  const count = numberOf(body.n) ?? 1
  const asUrl = body.response_format === 'url'
  return { prompt: stringOf(body.prompt), count, asUrl, inputImages, stream: body.stream === true }
}

function answerImages(options: ImageOptions, event: string): Script {
  const usage = writeUsage(options)
  if (!options.stream) {
    const data = Array.from({ length: options.count }, () => writeImage(options))
    return script(...jsonAnswer(200, JSON.stringify({ created: createdS, data, usage })))
  }
  const picture = { b64_json: DOT_PNG, created_at: createdS, size: '1024x1024', quality: 'low', output_format: 'png' }
  return writeStream([
    { type: `${event}.partial_image`, partial_image_index: 0, ...picture },
    { type: `${event}.completed`, ...picture, usage },
  ])
}

export function answerGenerations(request: ReceivedRequest, refuse: Refuse): Script {
  const options = readOptions(objectOf(request), 0)
  return options
    ? answerImages(options, 'image_generation')
    : refuse({ message: "Invalid 'prompt' or 'n'.", param: 'prompt' })
}

export function answerEdits(request: ReceivedRequest, refuse: Refuse): Script {
  const form = readForm(request)
  const pictures = [...(form?.files.keys() ?? [])].filter(name => name.startsWith('image'))
  if (!form || pictures.length === 0) return refuse({ message: "Missing required parameter: 'image'.", param: 'image' })
  const count = form.fields.get('n')
  const body = { ...Object.fromEntries(form.fields), n: count === undefined ? undefined : Number(count) }
  const options = readOptions({ ...body, stream: form.fields.get('stream') === 'true' }, pictures.length)
  return options
    ? answerImages(options, 'image_edit')
    : refuse({ message: "Invalid 'prompt' or 'n'.", param: 'prompt' })
}

/** Ark's images, counted per image. "fail" in the prompt makes the last of several images fail. */
export function answerArkImages(request: ReceivedRequest, refuse: Refuse): Script {
  const body = objectOf(request)
  const many = recordOf(body.sequential_image_generation_options).max_images
  const count = body.sequential_image_generation === 'auto' ? (numberOf(many) ?? 1) : 1
  const images = typeof body.image === 'string' ? 1 : listOf(body.image).length
  const options = readOptions({ ...body, n: count, response_format: body.response_format ?? 'url' }, images)
  if (!options) return refuse({ message: 'The parameter `prompt` is not valid.', param: 'prompt' })
  const fails = /\bfail\b/.test(options.prompt)
  const error = { code: 'OutputImageSensitiveContentDetected', message: 'The picture was withheld.' }
  const slots = Array.from({ length: options.count }, (_, at) =>
    fails && at === options.count - 1 ? { error } : { ...writeImage(options), size: '1024x1024' },
  )
  const made = slots.length - (fails ? 1 : 0)
  const tokens = made * TOKENS_PER_IMAGE
  const usage = { generated_images: made, output_tokens: tokens, total_tokens: tokens }
  const head = { model: body.model, created: createdS }
  if (!options.stream) return script(...jsonAnswer(200, JSON.stringify({ ...head, data: slots, usage })))
  const events = slots.map((slot, image_index) => {
    const how = 'error' in slot ? 'failed' : 'succeeded'
    return { type: `image_generation.partial_${how}`, ...head, image_index, ...slot }
  })
  return writeStream([...events, { type: 'image_generation.completed', ...head, usage }])
}
