// The end of a stream whose further events were not stored: a response can have more of them than may be stored with it.
// It is made from the response that is over. Those who follow the stream have the beginning of some items already; an SDK
// fails when an event names an item that has not begun, or begins an item twice.

import { bounds } from '../../base/bounds.ts'
import { frameData, SseSplitter } from '../../http/sse.ts'
import { replayEvents } from '../../protocols/openai-responses/event-replay.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import { sequenceNumber } from './event-frames.ts'

const OF_ITEM = Buffer.from('response.output_item.')
const ITEM_ADDED = 'response.output_item.added'
const ITEM_DONE = 'response.output_item.done'
const streamBeginnings: readonly unknown[] = ['response.created', 'response.in_progress']

/**
 * The events after those that are known: whole items that have not begun, the items that have begun and are not done, and
 * the last event, which has the whole response. The pieces between are not sent.
 */
export function restOfEvents(response: Json, known: readonly Buffer[]): Buffer[] {
  // Most events are pieces of text. They are not parsed.
  const ofItems = known.filter(frame => frame.includes(OF_ITEM)).map(eventOf)
  const itemsNamedBy = (type: string) =>
    new Set(ofItems.filter(event => event?.type === type).map(event => event!.output_index))
  const [begun, done] = [itemsNamedBy(ITEM_ADDED), itemsNamedBy(ITEM_DONE)]
  const isMissing = ({ type, output_index: item }: Json): boolean => {
    if (item === undefined) return !streamBeginnings.includes(type)
    return !begun.has(item) || (type === ITEM_DONE && !done.has(item))
  }
  let number = lastNumberOf(known)
  return new SseSplitter(bounds.answerBytesMax).push(Buffer.from(replayEvents(response, -1))).flatMap(frame => {
    const event = eventOf(frame)
    if (event === undefined) return [frame] // the marker at the end of the stream
    return isMissing(event) ? [write({ ...event, sequence_number: ++number })] : []
  })
}

const write = (event: Json): Buffer => Buffer.from(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)

function lastNumberOf(frames: readonly Buffer[]): number {
  const last = frames.findLast(frame => Number.isFinite(sequenceNumber(frame)))
  return last === undefined ? -1 : sequenceNumber(last)
}

function eventOf(frame: Buffer): Json | undefined {
  try {
    return JSON.parse(frameData(frame)!) as Json
  } catch {
    return undefined
  }
}
