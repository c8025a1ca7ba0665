// The arguments of a tool call reach the caller whole, whether the upstream writes them as JSON text or as an object.

import { describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { collectAnswer } from '../../src/protocols/neutral/answer-collector.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import { openTranslation, translateStream, translateWhole } from './test-translation.ts'
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

/** A call of openai-chat with these arguments, plain and in pieces, for a caller of another dialect. */
function translated(caller: Dialect, args: string) {
  const call = (piece: Json) => [{ index: 0, ...piece }]
  const head = { id: 'c1', type: 'function' }
  const whole = call({ ...head, function: { name: 'map', arguments: args } })
  const [one, two] = [openTranslation('openai-chat', caller), openTranslation('openai-chat', caller)]
  const deltas = [...args].map(letter => ({ function: { arguments: letter } }))
  const pieces = [{ ...head, function: { name: 'map', arguments: '' } }, ...deltas].map(piece => ({
    choices: [{ index: 0, delta: { tool_calls: call(piece) } }],
  }))
  const last = { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }
  const events = [...pieces, last].map(chunk => `data: ${JSON.stringify(chunk)}\n\n`)
  return {
    plain: JSON.parse(
      translateWhole(one, { choices: [{ message: { tool_calls: whole }, finish_reason: 'tool_calls' }] }),
    ) as Json,
    stream: translateStream('openai-chat', two, [Buffer.from(`${events.join('')}data: [DONE]\n\n`)]),
    losses: two.translation.target.losses.codes,
  }
}

/** Reads a stream with the official SDK. */
function collected(stream: string) {
  const answer = () => Promise.resolve(new Response(stream, { headers: { 'content-type': 'text/event-stream' } }))
  const client = new Anthropic({ apiKey: 'x', maxRetries: 0, fetch: answer })
  return client.messages.stream({ model: 'm', max_tokens: 9, messages: [] }).finalMessage()
}

const objects: readonly (readonly [args: string, input: Json])[] = [
  ...['', ' ', 'null', '[]', '[ ]', '{}'].map(args => [args, {}] as const),
  ['\n{"a":[1]}\n', { a: [1] }],
  // What is no object becomes an argument of one.
  ['5', { arguments: 5 }],
  ['[1]', { arguments: [1] }],
  ['"{}"', { arguments: '{}' }],
  ['call me', { arguments: 'call me' }],
]

test.each(objects)('a caller of Messages gets an object for %j, plain and in a stream', async (args, input) => {
  const { plain, stream } = translated('anthropic-messages', args)
  const message = await collected(stream)
  for (const { content, stop_reason: reason } of [plain, message]) {
    expect(content).toMatchObject([{ type: 'tool_use', input }])
    expect(reason).toBe('tool_use')
  }
})

test.each(['', 'null', '[]', ' [ ] '])('a caller of Gemini gets a call without arguments for %j', args => {
  const { plain, stream } = translated('gemini', args)
  const content = { parts: [{ functionCall: { name: 'map', args: {} } }] }
  expect(plain).toMatchObject({ candidates: [{ finishReason: 'STOP', content }] })
  expect(stream).toContain('"functionCall":{"id":"c1","name":"map","args":{}}')
  expect(stream).toContain('"finishReason":"STOP"')
})

test('a call of Messages whose arguments are broken in the stream cannot be run', () => {
  // The SDK repairs the first one to an object without arguments.
  for (const args of ['{"a":1', '{"a":1}{"a":1}', "{'a':1}", '{"a":NaN}']) {
    const { stream, losses } = translated('anthropic-messages', args)
    expect(stream).toContain('"stop_reason":"max_tokens"')
    expect(losses).toEqual(['tool_arguments', 'finish_reason.malformed'])
  }
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
