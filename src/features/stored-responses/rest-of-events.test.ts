// The end of a stream whose further events were not stored, wherever the known ones end. The official SDKs read it.

import { describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { SseSplitter } from '../../http/sse.ts'
import { replayEvents } from '../../protocols/openai-responses/event-replay.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import { restOfEvents } from './rest-of-events.ts'

const output = [
  { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'think about it' }] },
  {
    type: 'message',
    id: 'msg_1',
    role: 'assistant',
    status: 'completed',
    content: [
      { type: 'output_text', text: 'one two three', annotations: [] },
      { type: 'output_text', text: 'more', annotations: [] },
    ],
  },
  { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', arguments: '{"a":1}', status: 'completed' },
]
const response = { id: 'resp_1', object: 'response', status: 'completed', output } as const

const framesOf = (text: string): Buffer[] => new SseSplitter(1e6).push(Buffer.from(text))
const dataOf = (frame: Buffer): string => frame.toString().split('data: ')[1]!.trim()
const eventsOf = (frames: readonly Buffer[]): Json[] =>
  frames.filter(frame => dataOf(frame) !== '[DONE]').map(frame => JSON.parse(dataOf(frame)) as Json)

/** The events as they came: each text in pieces of one character. */
function madeEvents(): Buffer[] {
  const events = eventsOf(framesOf(replayEvents(response, -1))).flatMap(event =>
    typeof event.delta === 'string' ? Array.from(event.delta, delta => ({ ...event, delta })) : [event],
  )
  return events.map((event, number) => {
    const data = JSON.stringify({ ...event, sequence_number: number })
    return Buffer.from(`event: ${event.type}\ndata: ${data}\n\n`)
  })
}

const made = madeEvents()
/** All positions before the last event. */
const positions = made.map((_, at) => at + 1).slice(0, -1)

test('its numbers go on, and its last event has the whole response', () => {
  for (const count of positions) {
    const rest = restOfEvents(response, made.slice(0, count))
    const events = eventsOf(rest)
    expect(events.map(event => event.sequence_number)).toEqual(events.map((_, at) => count + at))
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response })
    expect(dataOf(rest.at(-1)!)).toBe('[DONE]')
  }
})

test('each item begins once and is done once', () => {
  for (const count of positions) {
    const events = eventsOf([...made.slice(0, count), ...restOfEvents(response, made.slice(0, count))])
    const indexesOf = (type: string): unknown[] =>
      events.filter(event => event.type === type).map(event => event.output_index)
    expect(indexesOf('response.output_item.added')).toEqual([0, 1, 2])
    expect(indexesOf('response.output_item.done')).toEqual([0, 1, 2])
    expect(events.filter(({ type }) => type === 'response.created')).toHaveLength(1)
  }
})

test('a text about events is not taken for one', () => {
  const data = {
    type: 'response.output_text.delta',
    sequence_number: 9,
    output_index: 0,
    delta: 'response.output_item.added',
  }
  const rest = restOfEvents(response, [Buffer.from(`data: ${JSON.stringify(data)}\n\n`)])
  expect(eventsOf(rest)[0]).toMatchObject({ type: 'response.output_item.added', sequence_number: 10, output_index: 0 })
})

test('a response that has failed ends with that, also after events without numbers', () => {
  const failed = { ...response, status: 'failed', output: [] }
  const known = [Buffer.from('event: x\ndata: {"type":"x"}\n\n'), Buffer.from('data: none\n\n')]
  const last = [{ type: 'response.failed', sequence_number: 0, response: failed }]
  expect(eventsOf(restOfEvents(failed, known))).toEqual(last)
})

describe.each([OpenAI, OpenAI6 as unknown as typeof OpenAI])('the OpenAI SDK', Sdk => {
  test('builds the whole response from it', async () => {
    for (const count of positions) {
      const frames = [...made.slice(0, count), ...restOfEvents(response, made.slice(0, count))]
      const answer = () => new Response(Buffer.concat(frames), { headers: { 'content-type': 'text/event-stream' } })
      const openai = new Sdk({ apiKey: 'sk', baseURL: 'http://127.0.0.1/v1', fetch: async () => answer() })
      const final = await openai.responses.stream({ response_id: 'resp_1' }).finalResponse()
      expect(final).toMatchObject({ status: 'completed', output_text: 'one two threemore' })
      expect(final.output.map(({ id }) => id)).toEqual(['rs_1', 'msg_1', 'fc_1'])
    }
  })
})
