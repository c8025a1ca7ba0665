// Pictures, as OpenAI and Ark make them: always the same dot, as often as asked.

import { frameSteps, jsonAnswer, streamHead } from '../answers.ts'
import type { Frame, Problem } from '../dialect.ts'
import { countWords, createdS } from '../dialect.ts'
import { readForm } from '../multipart.ts'
import type { Json } from '../reading.ts'
import { isCount, listOf, numberOf, objectOf, recordOf, stringOf } from '../reading.ts'
import type { ReceivedRequest } from '../request.ts'
import type { Script } from '../script.ts'
import { end, script } from '../script.ts'

const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const imagesMax = 8
const tokensOfImage = 100

interface Wanted {
  readonly prompt: string
  readonly count: number
  readonly asUrl: boolean
  readonly inputImages: number
  readonly stream: boolean
}

type Refuse = (problem: Problem) => Script

const pictureOf = ({ asUrl }: Wanted): object => (asUrl ? { url: 'https://images.invalid/dot.png' } : { b64_json: dot })

function usageOf({ prompt, count, inputImages }: Wanted): object {
  const [text_tokens, image_tokens] = [countWords(prompt), inputImages * tokensOfImage]
  const [input, output] = [text_tokens + image_tokens, count * tokensOfImage]
  const input_tokens_details = { text_tokens, image_tokens }
  return { input_tokens: input, output_tokens: output, total_tokens: input + output, input_tokens_details }
}

interface Said {
  readonly type: string
  readonly [field: string]: unknown
}

function streamOf(events: readonly Said[]): Script {
  const frames = events.map((event): Frame => ({ kind: 'piece', event: event.type, data: JSON.stringify(event) }))
  return script(streamHead, ...frameSteps(frames), end)
}

function wantedBy(body: Json, inputImages: number): Wanted | undefined {
  if (stringOf(body.prompt) === '' || !isCount(body.n, imagesMax)) return undefined
  const count = numberOf(body.n) ?? 1
  const asUrl = body.response_format === 'url'
  return { prompt: stringOf(body.prompt), count, asUrl, inputImages, stream: body.stream === true }
}

function give(wanted: Wanted, event: string): Script {
  const usage = usageOf(wanted)
  if (!wanted.stream) {
    const data = Array.from({ length: wanted.count }, () => pictureOf(wanted))
    return script(...jsonAnswer(200, JSON.stringify({ created: createdS, data, usage })))
  }
  const picture = { b64_json: dot, created_at: createdS, size: '1024x1024', quality: 'low', output_format: 'png' }
  return streamOf([
    { type: `${event}.partial_image`, partial_image_index: 0, ...picture },
    { type: `${event}.completed`, ...picture, usage },
  ])
}

export function answerGenerations(request: ReceivedRequest, refuse: Refuse): Script {
  const wanted = wantedBy(objectOf(request), 0)
  return wanted ? give(wanted, 'image_generation') : refuse({ message: "Invalid 'prompt' or 'n'.", param: 'prompt' })
}

export function answerEdits(request: ReceivedRequest, refuse: Refuse): Script {
  const form = readForm(request)
  const pictures = [...(form?.files.keys() ?? [])].filter(name => name.startsWith('image'))
  if (!form || pictures.length === 0) return refuse({ message: "Missing required parameter: 'image'.", param: 'image' })
  const count = form.fields.get('n')
  const body = { ...Object.fromEntries(form.fields), n: count === undefined ? undefined : Number(count) }
  const wanted = wantedBy({ ...body, stream: form.fields.get('stream') === 'true' }, pictures.length)
  return wanted ? give(wanted, 'image_edit') : refuse({ message: "Invalid 'prompt' or 'n'.", param: 'prompt' })
}

/** Of Ark: counted in pictures; "fail" in the prompt lets the last of several fail by itself. */
export function answerArkImages(request: ReceivedRequest, refuse: Refuse): Script {
  const body = objectOf(request)
  const many = recordOf(body.sequential_image_generation_options).max_images
  const count = body.sequential_image_generation === 'auto' ? (numberOf(many) ?? 1) : 1
  const images = typeof body.image === 'string' ? 1 : listOf(body.image).length
  const wanted = wantedBy({ ...body, n: count, response_format: body.response_format ?? 'url' }, images)
  if (!wanted) return refuse({ message: 'The parameter `prompt` is not valid.', param: 'prompt' })
  const fails = /\bfail\b/.test(wanted.prompt)
  const error = { code: 'OutputImageSensitiveContentDetected', message: 'The picture was withheld.' }
  const slots = Array.from({ length: wanted.count }, (_, at) =>
    fails && at === wanted.count - 1 ? { error } : { ...pictureOf(wanted), size: '1024x1024' },
  )
  const made = slots.length - (fails ? 1 : 0)
  const tokens = made * tokensOfImage
  const usage = { generated_images: made, output_tokens: tokens, total_tokens: tokens }
  const head = { model: body.model, created: createdS }
  if (!wanted.stream) return script(...jsonAnswer(200, JSON.stringify({ ...head, data: slots, usage })))
  const events = slots.map((slot, image_index) => {
    const how = 'error' in slot ? 'failed' : 'succeeded'
    return { type: `image_generation.partial_${how}`, ...head, image_index, ...slot }
  })
  return streamOf([...events, { type: 'image_generation.completed', ...head, usage }])
}
