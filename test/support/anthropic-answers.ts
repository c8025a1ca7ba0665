// Reads and writes answers of Anthropic's dialect, whole and event by event, and checks the order of its stream events.

import { expect } from 'bun:test'
import { codec } from '../../src/protocols/anthropic-messages/codec.ts'
import type { AnswerEvent } from '../../src/protocols/neutral/answer.ts'
import { Losses } from '../../src/protocols/neutral/losses.ts'
import type { TranslationNotes } from '../../src/protocols/neutral/translation-notes.ts'
import type { AnswerSource, AnswerTarget } from '../../src/protocols/protocol.ts'
import type { Json } from '../../src/protocols/request/json-type.ts'

export function sourceOf(over: Partial<TranslationNotes> = {}): AnswerSource {
  let minted = 0
  const notes = { losses: new Losses(), renamed: new Map<string, string>(), ...over }
  return { origin: 'here', notes, mintCallId: () => `minted_${minted++}` }
}

export const askOf = (): AnswerTarget => ({
  requestId: 'req_1',
  model: 'a/b',
  createdS: 1,
  wantsUsage: true,
  choices: 1,
  json: {},
  losses: new Losses(),
})

/** The data of all events of a stream. The `event:` line of each event must equal the `type` of its data. */
export function framesOf(sse: string): Json[] {
  expect(sse === '' || sse.endsWith('\n\n')).toBe(true)
  return sse
    .split('\n\n')
    .slice(0, -1)
    .map(block => {
      const [event, data, ...rest] = block.split('\n')
      const json = JSON.parse(data!.replace(/^data: /, '')) as Json
      expect([event, rest]).toEqual([`event: ${json.type as string}`, []])
      return json
    })
}

export function readAll(frames: readonly unknown[], source = sourceOf()): AnswerEvent[] {
  const reader = codec.openEventReader(source)
  return [...frames.flatMap(frame => reader.read(frame)), ...reader.end(), ...reader.end()]
}

export function writeAll(events: readonly AnswerEvent[], ask = askOf()): string {
  const writer = codec.openEventWriter(ask)
  return events.map(event => writer.write(event)).join('') + writer.end() + writer.end()
}

/** Checks that the events come in the order of this dialect; returns the message that an SDK assembles from them. */
export function assembled(frames: readonly Json[]): Json {
  const [start, ...rest] = frames
  expect(start!.type).toBe('message_start')
  expect(rest.slice(-2).map(({ type }) => type)).toEqual(['message_delta', 'message_stop'])
  const content: Json[] = []
  let open: Record<string, unknown> | undefined
  let input = ''
  for (const { type, index, content_block: block, delta } of rest.slice(0, -2)) {
    expect(index).toBe(content.length)
    if (type === 'content_block_start') {
      expect(open).toBeUndefined()
      open = { ...(block as Json) }
      input = ''
    } else if (type === 'content_block_delta') {
      const grown = delta as Record<string, string>
      if (grown.type === 'text_delta') open!.text += grown.text!
      else if (grown.type === 'thinking_delta') open!.thinking += grown.thinking!
      else if (grown.type === 'signature_delta') open!.signature = grown.signature
      else if (grown.type === 'input_json_delta') input += grown.partial_json!
      else open!.citations = [...((open!.citations as Json[] | null) ?? []), grown.citation]
    } else {
      expect(type).toBe('content_block_stop')
      if (open!.type === 'tool_use') open!.input = JSON.parse(input)
      content.push(open!)
      open = undefined
    }
  }
  expect(open).toBeUndefined()
  const { delta, usage } = rest.at(-2) as Record<string, Json>
  const message = start!.message as Json
  return { ...message, content, ...delta, usage: { ...(message.usage as Json), ...usage } }
}

/** As `assembled`, for streams whose tool arguments need not be valid JSON. */
export function assembledLoosely(sse: string): void {
  const frames = framesOf(sse).map(frame => {
    const { delta } = frame as { delta?: Json }
    return delta?.type === 'input_json_delta' ? { ...frame, delta: { ...delta, partial_json: ' ' } } : frame
  })
  const last = frames.map((frame, at) => (frame.type === 'content_block_stop' ? at : -1)).filter(at => at >= 0)
  const closed = frames.flatMap((frame, at) => {
    if (!last.includes(at)) return [frame]
    const delta = { type: 'input_json_delta', partial_json: '{}' }
    return [{ type: 'content_block_delta', index: frame.index, delta }, frame]
  })
  assembled(closed)
}
