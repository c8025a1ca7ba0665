// Recreates the events of a stream from a finished response.

import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { defaultArguments } from './output-items.ts'
import { LAST_EVENT } from './write-events.ts'

type StreamEvent = readonly [type: string, fields: Json]

/**
 * Returns the events after the sequence number `after`. The last event is always included, because it ends the stream.
 */
export function replayEvents(response: Json, after: number): string {
  const { status: _status, output: _output, ...rest } = response
  const emptyFields = { completed_at: null, error: null, incomplete_details: null, output: [], usage: null }
  const started = { ...rest, ...emptyFields, status: 'in_progress' }
  const output = Array.isArray(response.output) ? response.output.filter(isObject) : []
  const events: readonly StreamEvent[] = [
    ['response.created', { response: started }],
    ['response.in_progress', { response: started }],
    ...output.flatMap((item, at) => itemEvents(item, at)),
  ]
  const repeated = events.map((event, number) => (number > after ? write(event, number) : ''))
  const last = write([lastType(response.status), { response }], Math.max(events.length, after + 1))
  return repeated.join('') + last + LAST_EVENT
}

const write = ([type, fields]: StreamEvent, number: number): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number, ...fields })}\n\n`

const lastType = (status: unknown): string =>
  status === 'completed' || status === 'incomplete' ? `response.${status}` : 'response.failed'

function itemEvents(item: Json, at: number): readonly StreamEvent[] {
  const added = (empty: Json): StreamEvent => [
    'response.output_item.added',
    { output_index: at, item: { ...item, ...empty } },
  ]
  const last: StreamEvent = ['response.output_item.done', { output_index: at, item }]
  const itemFields = { item_id: item.id, output_index: at }
  switch (item.type) {
    case 'message':
      return [added({ status: 'in_progress', content: [] }), ...partsOf(item.content, contentEvents, itemFields), last]
    case 'reasoning':
      return [
        added({ summary: [], ...(item.content !== undefined && { content: [] }) }),
        ...partsOf(item.summary, summaryEvents, itemFields),
        ...partsOf(item.content, thoughtEvents, itemFields),
        last,
      ]
    case 'function_call': {
      const text = defaultArguments(typeof item.arguments === 'string' ? item.arguments : '', false)
      const done = { arguments: text, name: item.name }
      const deltaEvents = deltaAndDone('function_call_arguments', itemFields, { delta: text, done })
      return [added({ status: 'in_progress', arguments: '' }), ...deltaEvents, last]
    }
    case 'custom_tool_call': {
      const text = typeof item.input === 'string' ? item.input : ''
      const deltaEvents = deltaAndDone('custom_tool_call_input', itemFields, { delta: text, done: { input: text } })
      return [added({ status: 'in_progress', input: '' }), ...deltaEvents, last]
    }
    default:
      return [added({}), last]
  }
}

type PartEvents = (part: Json, itemFields: Json, index: number) => readonly StreamEvent[]

const partsOf = (parts: unknown, events: PartEvents, itemFields: Json): readonly StreamEvent[] =>
  Array.isArray(parts) ? parts.filter(isObject).flatMap((part, index) => events(part, itemFields, index)) : []

interface DeltaAndDone {
  readonly delta: unknown
  readonly done: Json
}

/** Returns one delta with the whole text, and the event that it is done. */
function deltaAndDone(name: string, itemFields: Json, { delta, done }: DeltaAndDone): readonly StreamEvent[] {
  return [
    [`response.${name}.delta`, { ...itemFields, delta }],
    [`response.${name}.done`, { ...itemFields, ...done }],
  ]
}

function contentEvents(part: Json, itemFields: Json, index: number): readonly StreamEvent[] {
  const position = { ...itemFields, content_index: index }
  const isRefusal = part.type === 'refusal'
  const empty = isRefusal ? { refusal: '' } : { text: '', annotations: [] }
  const { refusal, text, logprobs = [], annotations } = part
  const deltaEvents = isRefusal
    ? deltaAndDone('refusal', position, { delta: refusal, done: { refusal } })
    : deltaAndDone('output_text', { ...position, logprobs }, { delta: text, done: { text } })
  return [
    ['response.content_part.added', { ...position, part: { ...part, ...empty } }],
    deltaEvents[0]!,
    ...(Array.isArray(annotations) ? annotations : []).map(
      (annotation, at): StreamEvent => [
        'response.output_text.annotation.added',
        { ...position, annotation_index: at, annotation },
      ],
    ),
    deltaEvents[1]!,
    ['response.content_part.done', { ...position, part }],
  ]
}

function thoughtEvents(part: Json, itemFields: Json, index: number): readonly StreamEvent[] {
  const position = { ...itemFields, content_index: index }
  return [
    ['response.content_part.added', { ...position, part: { ...part, text: '' } }],
    ...deltaAndDone('reasoning_text', position, { delta: part.text, done: { text: part.text } }),
    ['response.content_part.done', { ...position, part }],
  ]
}

function summaryEvents(part: Json, itemFields: Json, index: number): readonly StreamEvent[] {
  const position = { ...itemFields, summary_index: index }
  return [
    ['response.reasoning_summary_part.added', { ...position, part: { ...part, text: '' } }],
    ...deltaAndDone('reasoning_summary_text', position, { delta: part.text, done: { text: part.text } }),
    ['response.reasoning_summary_part.done', { ...position, part }],
  ]
}
