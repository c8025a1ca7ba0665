// Integers that a double cannot hold, in arguments and results of tools: all their digits arrive, in requests and answers,
// plain and streamed, between all dialects. The raw bytes are searched, because JSON.parse would round the integers.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { packReasoningState } from '../../src/protocols/neutral/reasoning-state.ts'
import { jsonAnswer } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { script } from '../../tools/fake-upstream/script.ts'
import { done, sends } from '../forwarding/wire.ts'
import type { Harness } from '../support/gateway.ts'
import { rawCallers } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startDialects({ env: { LOG_LEVEL: 'error' } })
})
afterAll(() => harness.stop())

const ARGUMENTS = '{"id":1234567890123456789,"more":[-12345678901234567,{"x":123456789012345678901234567890}],"y":1.0}'
const RESULT = '{"found":9223372036854775807,"list":[[18446744073709551615]],"z":2.50}'
const integersIn = (text: string): readonly string[] => text.match(/\d{16,}/g) ?? []

const quote = (text: string): string => JSON.stringify(text)

function expectIntegers(text: string, ...jsons: readonly string[]): void {
  for (const integer of jsons.flatMap(integersIn)) expect(text).toContain(integer)
}

interface Sent {
  readonly answer: string
  readonly losses: string | null
  /** The request that the upstream received. */
  readonly upstream: string
}

interface Request {
  readonly body: string
  readonly stream?: boolean
  readonly credit?: string
}

async function send(caller: Dialect, upstream: Dialect, { body, stream = false, credit = '1000' }: Request) {
  const path = rawCallers[caller].path({ model: modelOf(upstream), stream })
  const response = await fetch(harness.url + path, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${await harness.key({ credit })}`, 'content-type': 'application/json' },
    body,
  })
  const answer = await response.text()
  expect([response.status, answer]).toEqual([200, answer])
  const received = harness.upstream.requests.at(-1)!.body.toString()
  return { answer, losses: response.headers.get('x-weir-loss'), upstream: received } satisfies Sent
}

interface Turn {
  readonly model: string
  readonly text: string
  readonly result: string
}

/** A request with a call and its result, as text, because JSON.stringify would round the integers. */
const requests: Readonly<Record<Dialect, (turn: Turn) => string>> = {
  'openai-chat': chatRequest,
  'ark': chatRequest,
  'openai-responses': ({ model, text, result }) =>
    `{"model":${quote(model)},"store":false,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],` +
    `"input":[{"role":"user","content":${quote(text)}},` +
    `{"type":"function_call","call_id":"call_1","name":"f","arguments":${quote(ARGUMENTS)}},` +
    `{"type":"function_call_output","call_id":"call_1","output":${quote(result)}}]}`,
  'anthropic-messages': ({ model, text, result }) =>
    `{"model":${quote(model)},"max_tokens":20,"tools":[{"name":"f","input_schema":{"type":"object"}}],` +
    `"messages":[{"role":"user","content":${quote(text)}},` +
    `{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"f","input":${ARGUMENTS}}]},` +
    `{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":${quote(result)}}]}]}`,
  'gemini': ({ text, result }) =>
    `{"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}],` +
    `"contents":[{"role":"user","parts":[{"text":${quote(text)}}]},` +
    `{"role":"model","parts":[{"functionCall":{"name":"f","args":${ARGUMENTS}},` +
    `"thoughtSignature":"skip_thought_signature_validator"}]},` +
    `{"role":"user","parts":[{"functionResponse":{"name":"f","response":${result}}}]}]}`,
}

function chatRequest({ model, text, result }: Turn): string {
  const call = `{"id":"call_1","type":"function","function":{"name":"f","arguments":${quote(ARGUMENTS)}}}`
  return (
    `{"model":${quote(model)},"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],` +
    `"messages":[{"role":"user","content":${quote(text)}},{"role":"assistant","content":null,"tool_calls":[${call}]},` +
    `{"role":"tool","tool_call_id":"call_1","content":${quote(result)}}]}`
  )
}

describe.each(dialects)('a request of %s', caller => {
  // A large body is parsed by another thread.
  test.each(dialects.flatMap(upstream => [[upstream, 1] as const, [upstream, 100_000] as const]))(
    'to %s, with a text of %d characters',
    async (upstream, chars) => {
      const turn = { model: modelOf(upstream), text: 'x'.repeat(chars), result: RESULT }
      const { upstream: received } = await send(caller, upstream, { body: requests[caller](turn) })
      expectIntegers(received, ARGUMENTS, RESULT)
    },
  )

  test('whose result is an error of Gemini', async () => {
    const result = '{"error":9223372036854775807}'
    const body = requests.gemini({ model: modelOf(caller), text: 'Hi', result })
    const { upstream: received } = await send('gemini', caller, { body })
    expectIntegers(received, ARGUMENTS, result)
  })
})

const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 }
const event = (json: string): string => `data: ${json}\n\n`

interface UpstreamAnswer {
  readonly whole: string
  readonly events: string
}

const geminiAnswer = (part: string): string =>
  `{"candidates":[{"content":{"role":"model","parts":[${part}]},"finishReason":"STOP","index":0}],` +
  `"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":5,"totalTokenCount":12},"responseId":"r","modelVersion":"m"}`

const messageHead = (content: string, reason: string): string =>
  `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[${content}],` +
  `"stop_reason":${reason},"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":5}}`

const messageEvents = (input: string, deltas: readonly string[]): string =>
  [
    `{"type":"message_start","message":${messageHead('', 'null')}}`,
    `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"f","input":${input}}}`,
    ...deltas.map(
      json =>
        `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":${quote(json)}}}`,
    ),
    '{"type":"content_block_stop","index":0}',
    '{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":5}}',
    '{"type":"message_stop"}',
  ]
    .map(event)
    .join('')

/** `args`: the JSON of the arguments, which should be a text. Some servers send an object. */
const chatAnswer = (args: string): UpstreamAnswer => {
  const call = `{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":${args}}}`
  const fields = `"created":1,"model":"m"`
  return {
    whole:
      `{"id":"c","object":"chat.completion",${fields},"choices":[{"index":0,"finish_reason":"tool_calls",` +
      `"message":{"role":"assistant","content":null,"tool_calls":[${call}]}}],"usage":${JSON.stringify(usage)}}`,
    events:
      [
        `"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[${call}]},"finish_reason":null}]`,
        `"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]`,
        `"choices":[],"usage":${JSON.stringify(usage)}`,
      ]
        .map(rest => event(`{"id":"c","object":"chat.completion.chunk",${fields},${rest}}`))
        .join('') + done,
  }
}

const responsesAnswer = (): UpstreamAnswer => {
  const item = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', status: 'completed' }
  const call = { ...item, arguments: ARGUMENTS }
  const output = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', status: 'completed', output: [call] }
  const response = { ...output, usage: { input_tokens: 7, output_tokens: 5, total_tokens: 12 } }
  const at = { item_id: 'fc_1', output_index: 0 }
  const events = [
    { type: 'response.created', response: { ...output, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, arguments: '' } },
    { type: 'response.function_call_arguments.delta', ...at, delta: ARGUMENTS },
    { type: 'response.function_call_arguments.done', ...at, arguments: ARGUMENTS },
    { type: 'response.output_item.done', output_index: 0, item: call },
    { type: 'response.completed', response },
  ]
  const texts = events.map((one, number) => event(JSON.stringify({ ...one, sequence_number: number })))
  return { whole: JSON.stringify(response), events: texts.join('') }
}

const functionCall = `{"functionCall":{"name":"f","args":${ARGUMENTS}}}`
const toolUse = `{"type":"tool_use","id":"t1","name":"f","input":${ARGUMENTS}}`

const answers: Readonly<Record<Dialect, UpstreamAnswer>> = {
  'openai-chat': chatAnswer(quote(ARGUMENTS)),
  'ark': chatAnswer(quote(ARGUMENTS)),
  'openai-responses': responsesAnswer(),
  'anthropic-messages': {
    whole: messageHead(toolUse, '"tool_use"'),
    events: messageEvents('{}', [ARGUMENTS]),
  },
  'gemini': { whole: geminiAnswer(functionCall), events: event(geminiAnswer(functionCall)) },
}

/** Other forms in which servers send arguments. */
const partialArgs =
  `{"functionCall":{"name":"f","args":{"a":[1234567890123456789]},"willContinue":true,` +
  `"partialArgs":[{"jsonPath":"$.b.c","numberValue":-12345678901234567},` +
  `{"jsonPath":"$.d[0]","numberValue":123456789012345678901234567890}]}},{"functionCall":{}}`
const rareAnswers: readonly (readonly [Dialect, string, UpstreamAnswer])[] = [
  ['openai-chat', 'arguments that are an object', chatAnswer(ARGUMENTS)],
  [
    'anthropic-messages',
    'the whole input in the first event',
    { whole: messageHead(toolUse, '"tool_use"'), events: messageEvents(ARGUMENTS, []) },
  ],
  ['gemini', 'arguments in pieces', { whole: geminiAnswer(partialArgs), events: event(geminiAnswer(partialArgs)) }],
]

const allAnswers = [...dialects.map(upstream => [upstream, 'a call', answers[upstream]] as const), ...rareAnswers]

const bodyOf = (caller: Dialect, upstream: Dialect, stream: boolean): string =>
  JSON.stringify(rawCallers[caller].body({ model: modelOf(upstream), stream, outputTokensMax: 4_000 }))

const sendsWhole = ({ whole }: UpstreamAnswer): Script => script(...jsonAnswer(200, whole))

describe.each(dialects)('an answer for a caller of %s', caller => {
  test.each(allAnswers)('from %s with %s', async (upstream, _what, answer) => {
    // An upstream may also answer in the other form than it was asked for.
    const cases = [false, true].flatMap(stream =>
      [sendsWhole(answer), sends(answer.events)].map(plan => ({ stream, plan })),
    )
    for (const { stream, plan } of cases) {
      harness.upstream.plan(plan)
      const sent = await send(caller, upstream, { body: bodyOf(caller, upstream, stream), stream })
      expectIntegers(sent.answer, ARGUMENTS)
    }
  })

  // With little money the upstream is asked for a stream, which is collected.
  test.each(allAnswers)('that is collected from a stream of %s with %s', async (upstream, _what, answer) => {
    harness.upstream.plan(sends(answer.events))
    const sent = await send(caller, upstream, { body: bodyOf(caller, upstream, false), credit: '0.05' })
    expectIntegers(sent.answer, ARGUMENTS)
  })
})

/** State of another upstream, which is removed from a native request. */
const FOREIGN = packReasoningState({ origin: 'elsewhere', form: 'encrypted', value: 'secret' })

/** The messages before and after the foreign state is removed. */
const native: readonly (readonly [Dialect, before: string, after: string])[] = [
  [
    'anthropic-messages',
    `[ {"role":"user", "content":"Gr\\u00fc\\u00dfe"}, {"role":"assistant","content":[` +
      `{"type":"thinking","thinking":"x","signature":"${FOREIGN}"},` +
      `{"type":"tool_use", "id":"call_1","name":"f","input": ${ARGUMENTS}}]},` +
      `{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":[ ],"n":[1.0, 1e2]}]}]`,
    `[{"role":"user", "content":"Gr\\u00fc\\u00dfe"},{"role":"assistant","content":[` +
      `{"type":"tool_use", "id":"call_1","name":"f","input": ${ARGUMENTS}}]},` +
      `{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":[ ],"n":[1.0, 1e2]}]}]`,
  ],
  [
    'gemini',
    `[ {"role":"user","parts":[ {"text":"Gr\\u00fc\\u00dfe"}]},` +
      `{"role":"model","parts":[{"text":"x","thought":true,"thoughtSignature":"${FOREIGN}"},` +
      `{"functionCall": {"name":"f","args": ${ARGUMENTS}},"thought_signature":"${FOREIGN}"}]},` +
      `{"role":"user","parts":[{"functionResponse":{"name":"f","response": ${RESULT}}}]}]`,
    `[{"role":"user","parts":[ {"text":"Gr\\u00fc\\u00dfe"}]},` +
      `{"role":"model","parts":[{"text":"x","thought":true},` +
      `{"functionCall":{"name":"f","args": ${ARGUMENTS}},"thoughtSignature":"skip_thought_signature_validator"}]},` +
      `{"role":"user","parts":[{"functionResponse":{"name":"f","response": ${RESULT}}}]}]`,
  ],
  [
    'openai-chat',
    `[ {"role":"user","content":"Gr\\u00fc\\u00dfe","n":[ 1.0]}, {"role":"assistant","content":[ ],` +
      `"encrypted_content":"${FOREIGN}","n":{"x":1.0}}]`,
    `[{"role":"user","content":"Gr\\u00fc\\u00dfe","n":[ 1.0]},{"role":"assistant","content":[ ],"n":{"x":1.0}}]`,
  ],
  [
    'openai-responses',
    `[{"role":"user","content":"Gr\\u00fc\\u00dfe","n":[ 1.0]}, {"type":"reasoning","summary":[],"id":"rs_1",` +
      `"encrypted_content":"${FOREIGN}"},{"role":"user","content":"Hi","n": ${ARGUMENTS}}]`,
    `[{"role":"user","content":"Gr\\u00fc\\u00dfe","n":[ 1.0]},{"role":"user","content":"Hi","n": ${ARGUMENTS}}]`,
  ],
]

/** A native request around its messages; a text that makes it large comes before them. */
const nativeRequests: Partial<Record<Dialect, (messages: string, text: string) => string>> = {
  'anthropic-messages': (messages, text) => `{"system":"${text}","max_tokens": 20, "messages":${messages},"top_k":1.0}`,
  'gemini': (messages, text) =>
    `{"system_instruction":{"parts":[{"text":"${text}"}]},"contents":${messages},"generation_config":{"top_k": 1.0}}`,
  'openai-chat': (messages, text) => `{"user":"u","metadata":{"x":"${text}"}, "messages":${messages},"n":1}`,
  'openai-responses': (messages, text) => `{"instructions":"${text}","store":false, "input":${messages},"top_p":1.0}`,
}

describe.each(native)('a native request of %s', (dialect, before, after) => {
  test.each([1, 100_000])('changes only the messages with foreign state (%d characters)', async chars => {
    const text = 'x'.repeat(dialect === 'openai-chat' ? 1 : chars)
    const build = (messages: string, model: string): string => {
      const body = nativeRequests[dialect]!(messages, text)
      return dialect === 'gemini' ? body : `{"model":"${model}",${body.slice(1)}`
    }
    const sent = await send(dialect, dialect, { body: build(before, modelOf(dialect)) })
    expect(sent.upstream).toBe(build(after, 'echo'))
    expect(sent.losses).toBe('reasoning_state')
  })
})

test('the result null of a tool is a text for Gemini', async () => {
  for (const caller of dialects.filter(dialect => dialect !== 'gemini')) {
    for (const [result, response] of [
      ['null', '{"output":"null"}'],
      [' null\n', '{"output":" null\\n"}'],
      ['', '{"output":""}'],
      ['{}', '{}'],
      ['[9223372036854775807]', '{"output":"[9223372036854775807]"}'],
    ] as const) {
      const body = requests[caller]({ model: modelOf('gemini'), text: 'Hi', result })
      const { upstream: received } = await send(caller, 'gemini', { body })
      expect(received).toContain(`"response":${response}`)
    }
  }
})
