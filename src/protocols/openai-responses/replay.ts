// The events of an answer that is over, told again from what it came to.
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { LAST_EVENT } from './event-writer.ts'
import { argumentsOf } from './write-output.ts'

type Said = readonly [type: string, fields: Json]

/** Those after the one of this number; the last one is always told, for it ends the stream. */
export function replayEvents(response: Json, after: number): string {
  const { status: _status, output: _output, ...rest } = response
  const nothing = { completed_at: null, error: null, incomplete_details: null, output: [], usage: null }
  const begun = { ...rest, ...nothing, status: 'in_progress' }
  const output = Array.isArray(response.output) ? response.output.filter(isObject) : []
  const events: readonly Said[] = [
    ['response.created', { response: begun }],
    ['response.in_progress', { response: begun }],
    ...output.flatMap((item, at) => itemEvents(item, at)),
  ]
  const told = events.map((event, number) => (number > after ? write(event, number) : ''))
  const last = write([lastType(response.status), { response }], Math.max(events.length, after + 1))
  return told.join('') + last + LAST_EVENT
}

const write = ([type, fields]: Said, number: number): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number, ...fields })}\n\n`

const lastType = (status: unknown): string =>
  status === 'completed' || status === 'incomplete' ? `response.${status}` : 'response.failed'

function itemEvents(item: Json, at: number): readonly Said[] {
  const added = (empty: Json): Said => ['response.output_item.added', { output_index: at, item: { ...item, ...empty } }]
  const last: Said = ['response.output_item.done', { output_index: at, item }]
  const where = { item_id: item.id, output_index: at }
  switch (item.type) {
    case 'message':
      return [added({ status: 'in_progress', content: [] }), ...partsOf(item.content, contentEvents, where), last]
    case 'reasoning':
      return [
        added({ summary: [], ...(item.content !== undefined && { content: [] }) }),
        ...partsOf(item.summary, summaryEvents, where),
        ...partsOf(item.content, thoughtEvents, where),
        last,
      ]
    case 'function_call': {
      const text = argumentsOf(typeof item.arguments === 'string' ? item.arguments : '', false)
      const done = { arguments: text, name: item.name }
      const grown = growth('function_call_arguments', where, { delta: text, done })
      return [added({ status: 'in_progress', arguments: '' }), ...grown, last]
    }
    case 'custom_tool_call': {
      const text = typeof item.input === 'string' ? item.input : ''
      const grown = growth('custom_tool_call_input', where, { delta: text, done: { input: text } })
      return [added({ status: 'in_progress', input: '' }), ...grown, last]
    }
    default:
      return [added({}), last]
  }
}

type PartEvents = (part: Json, where: Json, index: number) => readonly Said[]

const partsOf = (parts: unknown, events: PartEvents, where: Json): readonly Said[] =>
  Array.isArray(parts) ? parts.filter(isObject).flatMap((part, index) => events(part, where, index)) : []

interface Grown {
  readonly delta: unknown
  readonly done: Json
}

/** All of it in one piece. */
function growth(name: string, where: Json, { delta, done }: Grown): readonly Said[] {
  return [
    [`response.${name}.delta`, { ...where, delta }],
    [`response.${name}.done`, { ...where, ...done }],
  ]
}

function contentEvents(part: Json, where: Json, index: number): readonly Said[] {
  const place = { ...where, content_index: index }
  const isRefusal = part.type === 'refusal'
  const empty = isRefusal ? { refusal: '' } : { text: '', annotations: [] }
  const { refusal, text, logprobs = [], annotations } = part
  const grown = isRefusal
    ? growth('refusal', place, { delta: refusal, done: { refusal } })
    : growth('output_text', { ...place, logprobs }, { delta: text, done: { text } })
  return [
    ['response.content_part.added', { ...place, part: { ...part, ...empty } }],
    grown[0]!,
    ...(Array.isArray(annotations) ? annotations : []).map(
      (annotation, at): Said => [
        'response.output_text.annotation.added',
        { ...place, annotation_index: at, annotation },
      ],
    ),
    grown[1]!,
    ['response.content_part.done', { ...place, part }],
  ]
}

function thoughtEvents(part: Json, where: Json, index: number): readonly Said[] {
  const place = { ...where, content_index: index }
  return [
    ['response.content_part.added', { ...place, part: { ...part, text: '' } }],
    ...growth('reasoning_text', place, { delta: part.text, done: { text: part.text } }),
    ['response.content_part.done', { ...place, part }],
  ]
}

function summaryEvents(part: Json, where: Json, index: number): readonly Said[] {
  const place = { ...where, summary_index: index }
  return [
    ['response.reasoning_summary_part.added', { ...place, part: { ...part, text: '' } }],
    ...growth('reasoning_summary_text', place, { delta: part.text, done: { text: part.text } }),
    ['response.reasoning_summary_part.done', { ...place, part }],
  ]
}
