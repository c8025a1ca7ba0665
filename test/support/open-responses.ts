// Checks of whole responses and of streams against what OpenAI's SDK types and the Open Responses schema both require.
// Fields that only one of the two requires are required here as well.

import { expect } from 'bun:test'
import { z } from 'zod'

const count = z.int().min(0)
const text = z.string()
const id = z.string().min(1)
const itemStatus = z.enum(['in_progress', 'completed', 'incomplete'])

const prob = { token: text, logprob: z.number(), bytes: z.array(count) }
const logprob = z.strictObject({ ...prob, top_logprobs: z.array(z.strictObject(prob)) })

const annotation = z.strictObject({
  type: z.literal('url_citation'),
  url: id,
  title: text,
  start_index: count,
  end_index: count,
})

const outputText = z.strictObject({
  type: z.literal('output_text'),
  text,
  annotations: z.array(annotation),
  logprobs: z.array(logprob),
})
const refusal = z.strictObject({ type: z.literal('refusal'), refusal: text })
const summaryText = z.strictObject({ type: z.literal('summary_text'), text })
const reasoningText = z.strictObject({ type: z.literal('reasoning_text'), text })

const message = z.strictObject({
  id,
  type: z.literal('message'),
  status: itemStatus,
  role: z.literal('assistant'),
  content: z.array(z.discriminatedUnion('type', [outputText, refusal])),
})
const functionCall = z.strictObject({
  id,
  type: z.literal('function_call'),
  status: itemStatus,
  call_id: id,
  name: id,
  arguments: text,
})
const customCall = z.strictObject({
  id,
  type: z.literal('custom_tool_call'),
  status: itemStatus,
  call_id: id,
  name: id,
  input: text,
})
const reasoning = z.strictObject({
  id,
  type: z.literal('reasoning'),
  status: itemStatus.optional(),
  summary: z.array(summaryText),
  content: z.array(reasoningText).optional(),
  encrypted_content: id.optional(),
})
const image = z.strictObject({
  id,
  type: z.literal('image_generation_call'),
  status: z.literal('completed'),
  result: id,
  output_format: z.enum(['png', 'webp', 'jpeg', 'gif', 'svg']).optional(),
})
const item = z.discriminatedUnion('type', [message, functionCall, customCall, reasoning, image])

const tool = z.looseObject({ type: id }).superRefine((value, context) => {
  if (value.type !== 'function') return
  const known = z.looseObject({
    name: id,
    description: text.nullable(),
    parameters: z.record(text, z.unknown()).nullable(),
    strict: z.boolean().nullable(),
  })
  for (const issue of known.safeParse(value).error?.issues ?? []) context.addIssue({ ...issue, code: 'custom' })
})

const mode = z.enum(['none', 'auto', 'required'])
const named = z.looseObject({ type: id })

const usage = z.looseObject({
  input_tokens: count,
  input_tokens_details: z.looseObject({ cached_tokens: count, cache_write_tokens: count }),
  output_tokens: count,
  output_tokens_details: z.looseObject({ reasoning_tokens: count }),
  total_tokens: count,
})

export const response = z.strictObject({
  id: z.string().startsWith('resp_'),
  object: z.literal('response'),
  created_at: count,
  completed_at: count.nullable(),
  status: z.enum(['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled']),
  incomplete_details: z.strictObject({ reason: z.enum(['max_output_tokens', 'content_filter']) }).nullable(),
  error: z.strictObject({ code: id, message: id }).nullable(),
  model: id,
  access_programs: z.null(),
  background: z.boolean(),
  frequency_penalty: z.number(),
  presence_penalty: z.number(),
  instructions: text.nullable(),
  max_output_tokens: count.nullable(),
  max_tool_calls: count.nullable(),
  metadata: z.record(text, text),
  output: z.array(item),
  parallel_tool_calls: z.boolean(),
  previous_response_id: id.nullable(),
  prompt_cache_key: text.nullable(),
  reasoning: z.strictObject({
    effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).nullable(),
    summary: z.enum(['auto', 'concise', 'detailed']).nullable(),
  }),
  safety_identifier: text.nullable(),
  service_tier: z.enum(['auto', 'default', 'flex', 'scale', 'priority']),
  store: z.boolean(),
  temperature: z.number(),
  text: z.strictObject({
    format: z.discriminatedUnion('type', [
      z.strictObject({ type: z.literal('text') }),
      z.strictObject({ type: z.literal('json_object') }),
      z.strictObject({
        type: z.literal('json_schema'),
        name: id,
        description: text.nullable(),
        strict: z.boolean(),
        schema: z.record(text, z.unknown()),
      }),
    ]),
    verbosity: z.enum(['low', 'medium', 'high']),
  }),
  tool_choice: z.union([mode, named]),
  tools: z.array(tool),
  top_logprobs: count,
  top_p: z.number(),
  truncation: z.enum(['auto', 'disabled']),
  usage: usage.nullable(),
  user: text.nullable(),
})

const inItem = { item_id: id, output_index: count }
const inContent = { ...inItem, content_index: count }
const inSummary = { ...inItem, summary_index: count }
const event = <Type extends string, Shape extends z.ZodRawShape>(type: Type, shape: Shape) =>
  z.strictObject({ type: z.literal(type), sequence_number: count, ...shape })
const contentPart = z.discriminatedUnion('type', [outputText, refusal, reasoningText])

const events = z.discriminatedUnion('type', [
  event('response.created', { response }),
  event('response.in_progress', { response }),
  event('response.completed', { response }),
  event('response.incomplete', { response }),
  event('response.failed', { response }),
  event('response.output_item.added', { output_index: count, item }),
  event('response.output_item.done', { output_index: count, item }),
  event('response.content_part.added', { ...inContent, part: contentPart }),
  event('response.content_part.done', { ...inContent, part: contentPart }),
  event('response.output_text.delta', { ...inContent, delta: text, logprobs: z.array(logprob) }),
  event('response.output_text.done', { ...inContent, text, logprobs: z.array(logprob) }),
  event('response.output_text.annotation.added', { ...inContent, annotation_index: count, annotation }),
  event('response.refusal.delta', { ...inContent, delta: text }),
  event('response.refusal.done', { ...inContent, refusal: text }),
  event('response.reasoning_text.delta', { ...inContent, delta: text }),
  event('response.reasoning_text.done', { ...inContent, text }),
  event('response.reasoning_summary_part.added', { ...inSummary, part: summaryText }),
  event('response.reasoning_summary_part.done', { ...inSummary, part: summaryText }),
  event('response.reasoning_summary_text.delta', { ...inSummary, delta: text }),
  event('response.reasoning_summary_text.done', { ...inSummary, text }),
  event('response.function_call_arguments.delta', { ...inItem, delta: text }),
  event('response.function_call_arguments.done', { ...inItem, name: id, arguments: text }),
  event('response.custom_tool_call_input.delta', { ...inItem, delta: text }),
  event('response.custom_tool_call_input.done', { ...inItem, input: text }),
])

export type WholeResponse = z.infer<typeof response>
type Item = z.infer<typeof item>

function parsed<Out>(schema: z.ZodType<Out>, value: unknown): Out {
  const { success, data, error } = schema.safeParse(value)
  if (!success) throw new Error(`${z.prettifyError(error)}\n${JSON.stringify(value)}`)
  return data
}

/** Fails for a response that is not as both documents say, or that contradicts itself. */
export function checkResponse(json: unknown): WholeResponse {
  const whole = parsed(response, json)
  const { status, output, completed_at: completed, created_at: created } = whole
  const isOver = status === 'completed' || status === 'incomplete'
  expect(status === 'completed' ? completed! >= created : completed === null).toBe(true)
  expect(whole.incomplete_details !== null).toBe(status === 'incomplete')
  expect(whole.error !== null).toBe(status === 'failed')
  if (isOver) expect(whole.usage).not.toBeNull()
  expect(new Set(output.map(one => one.id)).size).toBe(output.length)
  const cut = output.map(one => (one.status ?? 'completed') !== 'completed')
  if (isOver) expect(cut).toEqual(output.map((_, at) => status === 'incomplete' && at === output.length - 1))
  return whole
}

/** The state of an item while its stream arrives. */
interface Growing {
  readonly id: string
  readonly added: Item
  /** Keyed by the name of the list of the part and its index there. */
  readonly parts: Map<string, { text: string; annotations: unknown[]; done?: unknown; isWhole?: boolean }>
  /** The arguments of a tool call so far. */
  text: string
  isWhole: boolean
  done?: Item
}

/** Fails for a stream that is not as both documents say, or whose events contradict each other. */
export function checkStream(sse: string): WholeResponse {
  const blocks = sse.split('\n\n').filter(block => block.trim() !== '' && !block.startsWith(':'))
  expect(blocks.pop()).toBe('data: [DONE]')
  const all = blocks.map((block, at) => {
    const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? []
    const one = parsed(events, JSON.parse(data!))
    expect<unknown>([name, at]).toEqual([one.type, one.sequence_number])
    return one
  })
  const [created, begun, ...rest] = all
  expect([created!.type, begun!.type]).toEqual(['response.created', 'response.in_progress'])
  const last = rest.pop()!
  const growing: Growing[] = []
  for (const one of rest) take(growing, one)
  if (!('response' in last) || !('response' in created!) || !('response' in begun!)) throw new Error('no response')
  expect([created.response.status, begun.response.status]).toEqual(['in_progress', 'in_progress'])
  for (const first of [created, begun]) checkResponse(first.response)
  expect<unknown>(last.type).toBe(`response.${last.response.status}`)
  const whole = checkResponse(last.response)
  const { status: _status, output: _output, usage: _usage, completed_at: _at, ...reported } = whole
  const { incomplete_details: _details, service_tier: _tier, error: _error, ...same } = reported
  expect(created.response).toMatchObject(same)
  expect<unknown>(whole.output).toEqual(growing.map(({ done }) => done))
  return whole
}

type StreamEvent = z.infer<typeof events>

function take(growing: Growing[], one: StreamEvent): void {
  if ('response' in one) throw new Error(`${one.type} in the middle`)
  if (one.type === 'response.output_item.added') {
    expect(one.output_index).toBe(growing.length)
    expect(growing.map(({ id: known }) => known)).not.toContain(one.item.id)
    const isPlain = one.item.type === 'image_generation_call' || one.item.type === 'reasoning'
    if (!isPlain) expect(one.item.status).toBe('in_progress')
    growing.push({ id: one.item.id, added: one.item, parts: new Map(), text: '', isWhole: false })
    return
  }
  const item = growing[one.output_index]
  if (item === undefined || item.done !== undefined) throw new Error(`${one.type} of an item that is not open`)
  if (one.type === 'response.output_item.done') return checkDone(item, one.item)
  expect(one.item_id).toBe(item.id)
  takePart(item, one)
}

type OfPart = Extract<StreamEvent, { item_id: string }>

function takePart(item: Growing, one: OfPart): void {
  const isSummary = 'summary_index' in one
  const at = isSummary ? one.summary_index : 'content_index' in one ? one.content_index : undefined
  if (at === undefined) return takeCall(item, one)
  const name = `${isSummary ? 'summary' : 'content'} ${at}`
  if (one.type.endsWith('_part.added')) {
    expect(item.parts.has(name)).toBe(false)
    expect(at).toBe([...item.parts.keys()].filter(known => known.startsWith(name.split(' ')[0]!)).length)
    item.parts.set(name, { text: '', annotations: [] })
    return
  }
  const part = item.parts.get(name)
  if (part === undefined || part.done !== undefined) throw new Error(`${one.type} of a part that is not open`)
  if ('part' in one) {
    expect(part.isWhole).toBe(true)
    const { part: done } = one
    expect('refusal' in done ? done.refusal : done.text).toBe(part.text)
    if (done.type === 'output_text') expect<unknown>(done.annotations).toEqual(part.annotations)
    part.done = done
    return
  }
  if ('annotation' in one) {
    expect(one.annotation_index).toBe(part.annotations.length)
    part.annotations.push(one.annotation)
    return
  }
  expect(part.isWhole).toBeUndefined()
  if ('delta' in one) return void (part.text += one.delta)
  part.isWhole = true
  expect('refusal' in one ? one.refusal : 'text' in one ? one.text : '').toBe(part.text)
}

function takeCall(item: Growing, one: OfPart): void {
  expect(item.isWhole).toBe(false)
  if ('delta' in one) return void (item.text += one.delta)
  item.isWhole = true
  expect('arguments' in one ? one.arguments : 'input' in one ? one.input : '').toBe(item.text)
}

function checkDone(item: Growing, done: Item): void {
  item.done = done
  expect([done.id, done.type]).toEqual([item.id, item.added.type])
  const partsOf = (list: string): unknown[] =>
    [...item.parts].filter(([name]) => name.startsWith(list)).map(([, part]) => part.done)
  if (done.type === 'message') expect<unknown>(done.content).toEqual(partsOf('content'))
  if (done.type === 'reasoning') {
    expect<unknown>(done.summary).toEqual(partsOf('summary'))
    expect<unknown>(done.content ?? []).toEqual(partsOf('content'))
  }
  if (done.type === 'function_call') expect([done.arguments, item.isWhole]).toEqual([item.text, true])
  if (done.type === 'custom_tool_call') expect([done.input, item.isWhole]).toEqual([item.text, true])
}
