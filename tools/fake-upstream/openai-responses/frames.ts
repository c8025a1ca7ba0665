// Writes the events of the OpenAI responses dialect, in the order in which the provider sends them.

import type { Frame, Reply } from '../dialect.ts'
import { joinPieces, listArgumentPieces, listTextPieces } from '../dialect.ts'
import {
  callItem,
  hasMessage,
  messageItem,
  onlyChoice,
  reasoningItem,
  refusalPart,
  responseJson,
  statusOfReply,
  textPart,
} from './response.ts'

type Kind = Frame['kind']
type Event = readonly [kind: Kind, type: string, fields: object]

/** Numbers the events. */
export function* writeFrames(reply: Reply): Iterable<Frame> {
  let number = 0
  const whole = (kind: Kind, type: string, status: string): Frame => {
    const start = `{"type":"${type}","sequence_number":${number++}`
    return { kind, event: type, data: `${start},"response":${responseJson(reply, status)}}` }
  }
  yield whole('open', 'response.created', 'in_progress')
  yield whole('open', 'response.in_progress', 'in_progress')
  for (const [kind, type, fields] of itemEvents(reply)) {
    yield { kind, event: type, data: JSON.stringify({ type, sequence_number: number++, ...fields }) }
  }
  const status = statusOfReply(reply)
  yield whole('done', `response.${status}`, status)
}

function* itemEvents(reply: Reply): Iterable<Event> {
  const choice = onlyChoice(reply)
  let next = 0
  if (choice.reasoning) yield* reasoningEvents(reply, next++)
  if (hasMessage(choice)) yield* messageEvents(reply, next++)
  for (const [place, call] of (choice.toolCalls ?? []).entries()) {
    const output_index = next + (call.index ?? place)
    const [opened, closed] = ['in_progress', 'completed'].map(status => callItem(reply, { place, call }, status))
    const at = { item_id: opened!.id, output_index }
    yield ['open', 'response.output_item.added', { output_index, item: opened }]
    for (const delta of listArgumentPieces(call)) {
      yield ['piece', 'response.function_call_arguments.delta', { ...at, delta }]
    }
    const given = { name: call.name, arguments: call.arguments }
    yield ['finish', 'response.function_call_arguments.done', { ...at, ...given }]
    yield ['finish', 'response.output_item.done', { output_index, item: closed }]
  }
}

function* reasoningEvents(reply: Reply, output_index: number): Iterable<Event> {
  const { text } = onlyChoice(reply).reasoning!
  const opened = reasoningItem(reply, false)
  yield ['open', 'response.output_item.added', { output_index, item: opened }]
  if (text !== '') {
    const at = { item_id: opened.id, output_index, summary_index: 0 }
    const part = (summary: string) => ({ type: 'summary_text', text: summary })
    yield ['open', 'response.reasoning_summary_part.added', { ...at, part: part('') }]
    yield ['piece', 'response.reasoning_summary_text.delta', { ...at, delta: text }]
    yield ['finish', 'response.reasoning_summary_text.done', { ...at, text }]
    yield ['finish', 'response.reasoning_summary_part.done', { ...at, part: part(text) }]
  }
  yield ['finish', 'response.output_item.done', { output_index, item: reasoningItem(reply, true) }]
}

function* messageEvents(reply: Reply, output_index: number): Iterable<Event> {
  const choice = onlyChoice(reply)
  const opened = messageItem(reply, [], 'in_progress')
  const at = { item_id: opened.id, output_index, content_index: 0 }
  yield ['open', 'response.output_item.added', { output_index, item: opened }]
  let part: object
  if (choice.refusal === undefined) {
    yield ['open', 'response.content_part.added', { ...at, part: textPart('') }]
    for (const delta of listTextPieces(choice)) {
      yield ['piece', 'response.output_text.delta', { ...at, delta, logprobs: [] }]
    }
    const text = joinPieces(choice)
    part = textPart(text)
    yield ['finish', 'response.output_text.done', { ...at, text, logprobs: [] }]
  } else {
    const { refusal } = choice
    part = refusalPart(refusal)
    yield ['open', 'response.content_part.added', { ...at, part: refusalPart('') }]
    yield ['piece', 'response.refusal.delta', { ...at, delta: refusal }]
    yield ['finish', 'response.refusal.done', { ...at, refusal }]
  }
  const ended = choice.finish === 'length' ? 'incomplete' : 'completed'
  yield ['finish', 'response.content_part.done', { ...at, part }]
  yield ['finish', 'response.output_item.done', { output_index, item: messageItem(reply, [part], ended) }]
}
