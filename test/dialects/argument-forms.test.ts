// The arguments of a tool call reach the caller whole, whether the upstream writes them as JSON text or as an object.

import { describe, expect, test } from 'bun:test'
import { collectAnswer } from '../../src/protocols/neutral/answer-collector.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import { openTranslation } from './test-translation.ts'
import type { Dialect } from './upstreams.ts'

type Json = Record<string, unknown>

const text = '{"city":"Paris","days":[1,2]}'
const forms: Readonly<Record<string, unknown>> = { 'JSON text': text, 'an object': JSON.parse(text) }

/** A whole answer with one call, and the same as the events of a stream. */
const answers: Readonly<Record<Dialect, { whole(args: unknown): Json; events(args: unknown): readonly Json[] }>> = {
  'openai-chat': chatOf(),
  'ark': chatOf(),
  'openai-responses': {
    whole: args => ({ status: 'completed', output: [functionCall(args)] }),
    events: args => [
      { type: 'response.output_item.added', output_index: 0, item: functionCall('') },
      { type: 'response.output_item.done', output_index: 0, item: functionCall(args) },
      { type: 'response.completed', response: { status: 'completed', output: [functionCall(args)] } },
    ],
  },
  'anthropic-messages': {
    whole: input => ({ content: [toolUse(input)], stop_reason: 'tool_use' }),
    events: input => [
      { type: 'message_start', message: { content: [] } },
      { type: 'content_block_start', index: 0, content_block: toolUse(input) },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
      { type: 'message_stop' },
    ],
  },
  'gemini': {
    whole: args => candidateOf(args),
    events: args => [candidateOf(args)],
  },
}

function chatOf() {
  const call = (args: unknown) => ({ index: 0, id: 'c1', type: 'function', function: { name: 'map', arguments: args } })
  return {
    whole: (args: unknown) => ({ choices: [{ message: { tool_calls: [call(args)] }, finish_reason: 'tool_calls' }] }),
    events: (args: unknown) => [{ choices: [{ delta: { tool_calls: [call(args)] }, finish_reason: 'tool_calls' }] }],
  }
}

const functionCall = (args: unknown): Json => ({ type: 'function_call', call_id: 'c1', name: 'map', arguments: args })
const toolUse = (input: unknown): Json => ({ type: 'tool_use', id: 'c1', name: 'map', input })
const candidateOf = (args: unknown): Json => ({
  candidates: [{ content: { parts: [{ functionCall: { id: 'c1', name: 'map', args } }] }, finishReason: 'STOP' }],
})

const expected = { kind: 'call', id: 'c1', name: 'map', arguments: text }

describe.each(Object.keys(answers) as Dialect[])('the arguments of a call from %s', dialect => {
  const { codec } = protocols[dialect]
  const open = () => openTranslation(dialect, dialect).translation.source

  test.each(Object.keys(forms))('that are %s arrive whole', form => {
    const { whole, events } = answers[dialect]
    expect(codec.readWholeAnswer(whole(forms[form]), open()).choices[0]?.parts).toEqual([expected as never])
    const reader = codec.openEventReader(open())
    const read = [...events(forms[form]).flatMap(event => reader.read(event)), ...reader.end()]
    expect(collectAnswer(read).choices[0]?.parts).toEqual([expected as never])
  })

  const hasObjects = dialect === 'anthropic-messages' || dialect === 'gemini'
  const empties: readonly (readonly [unknown])[] = [[''], [null], ...(hasObjects ? [[[]] as const] : [])]

  test.each(empties)('that are empty are an empty object: %j', empty => {
    const { translation } = openTranslation(dialect, 'openai-chat')
    const answer = codec.readWholeAnswer(answers[dialect].whole(empty), translation.source)
    const written = JSON.parse(translation.callerCodec.writeWholeAnswer(answer, translation.target)) as {
      choices: { message: { tool_calls: { function: { arguments: string } }[] } }[]
    }
    const { arguments: args } = written.choices[0]!.message.tool_calls[0]!.function
    expect(args).toBe('{}')
  })
})

test('the pieces of a call of Gemini are joined, and are no loss', () => {
  const { source } = openTranslation('gemini', 'openai-chat').translation
  const reader = protocols.gemini.codec.openEventReader(source)
  const piece = (functionCall: Json): Json => ({ candidates: [{ content: { parts: [{ functionCall }] } }] })
  const events = [
    piece({ id: 'c1', name: 'map', willContinue: true }),
    piece({ partialArgs: [{ jsonPath: '$.city', stringValue: 'Pa', willContinue: true }], willContinue: true }),
    piece({ partialArgs: [{ jsonPath: '$.city', stringValue: 'ris' }] }),
  ].flatMap(event => reader.read(event))
  expect(collectAnswer([...events, ...reader.end()]).choices[0]?.parts).toMatchObject([
    { arguments: '{"city":"Paris"}' },
  ])
  expect(source.notes.losses.codes).toEqual([])
})
