// Tool calls whose arguments are cut because the upstream reached its own limit of output: no client of any dialect takes
// such a call for one to run, streamed or plain, and sees the answer as cut. A call that is complete without arguments
// stays one.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModel } from 'ai'
import { generateText, jsonSchema, streamText, tool } from 'ai'
import { sends } from '../forwarding/wire.ts'
import type { Harness } from '../support/gateway.ts'
import { citySchema } from './clients/client.ts'
import { plainJson } from './reasons.ts'
import { modelOf, startDialects } from './upstreams.ts'

type Json = Record<string, unknown>

let harness: Harness
beforeAll(async () => {
  harness = await startDialects()
})
afterAll(() => harness.stop())

/** An answer of an upstream: a text, and a call with these arguments. Ends by the limit, or because of the call. */
interface Ending {
  readonly args: string
  readonly isCut: boolean
}

interface Upstream {
  readonly stream: (ending: Ending) => string
  /** Undefined if the dialect has no plain answer with these arguments. */
  readonly plain: (ending: Ending) => Json | undefined
}

const named = (events: readonly Json[]): string =>
  events.map(event => `event: ${event.type as string}\ndata: ${JSON.stringify(event)}\n\n`).join('')
const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 }
const messagesUsage = { input_tokens: 7, output_tokens: 5 }

const upstreams = {
  'openai-chat': {
    stream: ({ args, isCut }) => {
      const chunk = (delta: object, reason: string | null = null) => ({
        ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' },
        choices: [{ index: 0, delta, finish_reason: reason }],
      })
      const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }
      const chunks = [
        ...[chunk({ role: 'assistant', content: 'Hi' }), chunk({ tool_calls: [call] })],
        ...(args === '' ? [] : [chunk({ tool_calls: [{ index: 0, function: { arguments: args } }] })]),
        ...[chunk({}, isCut ? 'length' : 'tool_calls'), { ...chunk({}), choices: [], usage }],
      ]
      return `${chunks.map(one => `data: ${JSON.stringify(one)}\n\n`).join('')}data: [DONE]\n\n`
    },
    plain: ({ args, isCut }) => {
      const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: args } }
      const message = { role: 'assistant', content: 'Hi', tool_calls: [call] }
      const choices = [{ index: 0, message, finish_reason: isCut ? 'length' : 'tool_calls' }]
      return { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }
    },
  },
  'anthropic-messages': {
    stream: ({ args, isCut }) => {
      const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage: messagesUsage }
      const block = { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} }
      const delta = { type: 'input_json_delta', partial_json: args }
      return named([
        { type: 'message_start', message },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
        { type: 'content_block_stop', index: 0 },
        { type: 'content_block_start', index: 1, content_block: block },
        { type: 'content_block_delta', index: 1, delta },
        { type: 'content_block_stop', index: 1 },
        { type: 'message_delta', delta: { stop_reason: isCut ? 'max_tokens' : 'tool_use' }, usage: messagesUsage },
        { type: 'message_stop' },
      ])
    },
    plain: ({ args, isCut }) => {
      if (args !== '' && !args.endsWith('}')) return undefined // the input is an object
      const content = [
        { type: 'text', text: 'Hi' },
        { type: 'tool_use', id: 'toolu_1', name: 'weather', input: args === '' ? {} : (JSON.parse(args) as Json) },
      ]
      const head = { id: 'm', type: 'message', role: 'assistant', model: 'm', content }
      return { ...head, stop_reason: isCut ? 'max_tokens' : 'tool_use', stop_sequence: null, usage: messagesUsage }
    },
  },
  'openai-responses': {
    stream: ending => {
      const whole = responseOf(ending)
      const [message, call] = whole.output
      const at = { item_id: 'fc_1', output_index: 1 }
      const arrived = { type: 'response.function_call_arguments.delta', ...at, delta: ending.args }
      return named([
        { type: 'response.created', response: { ...whole, status: 'in_progress', output: [] } },
        { type: 'response.output_item.done', output_index: 0, item: message },
        {
          type: 'response.output_item.added',
          output_index: 1,
          item: { ...call, arguments: '', status: 'in_progress' },
        },
        ...(ending.args === '' ? [] : [arrived]),
        { type: 'response.output_item.done', output_index: 1, item: call },
        { type: ending.isCut ? 'response.incomplete' : 'response.completed', response: whole },
      ])
    },
    plain: ending => responseOf(ending),
  },
  'gemini': {
    stream: ({ args, isCut }) => {
      const isWhole = args.endsWith('}') || !isCut
      const piece = { jsonPath: '$.city', stringValue: 'Pa', willContinue: true }
      const pieces = { name: 'weather', ...(args !== '' && { partialArgs: [piece] }), willContinue: true }
      const answers = [
        candidateOf({ text: 'Hi' }),
        candidateOf({ functionCall: isWhole ? wholeCall(args) : pieces }),
        candidateOf({ text: '', ...(args !== '' && { thoughtSignature }) }, isCut ? 'MAX_TOKENS' : 'STOP'),
      ]
      return answers.map(answer => `data: ${JSON.stringify(answer)}\n\n`).join('')
    },
    plain: ({ args, isCut }) => {
      if (isCut && !args.endsWith('}')) return undefined // the arguments are an object
      const { candidates, ...rest } = candidateOf({ text: 'Hi' }, isCut ? 'MAX_TOKENS' : 'STOP')
      candidates[0]!.content.parts.push({ functionCall: wholeCall(args) })
      return { candidates, ...rest }
    },
  },
} as const satisfies Readonly<Record<string, Upstream>>

const thoughtSignature = Buffer.from('a signature').toString('base64')
const wholeCall = (args: string): Json => ({ name: 'weather', args: JSON.parse(args || '{}') as Json })

function candidateOf(part: Json, finishReason?: string) {
  const candidates = [{ index: 0, content: { role: 'model', parts: [part] }, ...(finishReason && { finishReason }) }]
  return { candidates, usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 5, totalTokenCount: 12 } }
}

function responseOf({ args, isCut }: Ending) {
  const status = isCut ? 'incomplete' : 'completed'
  const content = [{ type: 'output_text', text: 'Hi', annotations: [] }]
  return {
    ...{ id: 'r', object: 'response', created_at: 1, model: 'm', status, error: null },
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    output: [
      { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content },
      { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'weather', arguments: args, status },
    ],
    usage: { ...messagesUsage, total_tokens: 12 },
  }
}

const callers: Readonly<Record<string, (key: string, model: string) => LanguageModel>> = {
  'openai-chat': (apiKey, model) =>
    createOpenAICompatible({ baseURL: `${harness.url}/v1`, name: 'weir', apiKey })(model),
  'openai-responses': (apiKey, model) => createOpenAI({ baseURL: `${harness.url}/v1`, apiKey }).responses(model),
  'anthropic-messages': (apiKey, model) => createAnthropic({ baseURL: `${harness.url}/v1`, apiKey })(model),
  'gemini': (apiKey, model) => createGoogleGenerativeAI({ baseURL: `${harness.url}/v1beta`, apiKey })(model),
}

/** With little money the upstream is asked for a stream, and a plain answer is collected from it. */
const [LITTLE, MUCH] = ['0.05', '1000']

interface Seen {
  /** The input of the calls that the client takes for valid. */
  readonly inputs: readonly unknown[]
  readonly reason: string
}

type Form = 'streamed' | 'plain' | 'collected'
type Name = keyof typeof upstreams

const inputSchema = jsonSchema<{ city?: string }>({ ...citySchema, required: [] })
const tools = { weather: tool({ inputSchema, execute: () => 'warm' }) }

async function ask(caller: string, upstream: Name, { form, ending }: { form: Form; ending: Ending }): Promise<Seen> {
  const plain = form === 'plain' ? upstreams[upstream].plain(ending) : undefined
  const script = plain === undefined ? sends(upstreams[upstream].stream(ending)) : plainJson(plain)
  harness.upstream.plan(script)
  const model = callers[caller]!(await harness.key({ credit: form === 'collected' ? LITTLE : MUCH }), modelOf(upstream))
  const call = { model, prompt: 'Weather?', tools, maxRetries: 0, maxOutputTokens: 4_000 }
  const answer = form === 'streamed' ? streamText({ ...call, onError: () => {} }) : await generateText(call)
  const calls = (await answer.toolCalls).filter(one => one.invalid !== true)
  const reason = await answer.finishReason
  expect(await answer.text).toBe('Hi')
  await harness.idle()
  return { inputs: calls.map(({ input }) => input), reason }
}

const names = Object.keys(upstreams) as Name[]
const pairs = names.flatMap(upstream =>
  Object.keys(callers).flatMap(caller =>
    (['streamed', 'plain', 'collected'] as const)
      // Other answers for a caller of the same dialect pass unchanged. Items of Responses have their own status.
      .filter(form => caller !== upstream || (form === 'collected' && caller !== 'openai-responses'))
      .map(form => [upstream, caller, form] as const),
  ),
)

describe.each(pairs)('a call of %s for a client of %s, %s', (upstream, caller, form) => {
  const endings = ['', '{"city":"Pa'].filter(
    args => form !== 'plain' || upstreams[upstream].plain({ args, isCut: true }) !== undefined,
  )

  test.each(endings)('that is cut after the arguments %p is not valid', async args => {
    const { inputs, reason } = await ask(caller, upstream, { form, ending: { args, isCut: true } })
    expect({ inputs, reason }).toEqual({ inputs: [], reason: 'length' })
  })

  test('that is complete before the limit is valid', async () => {
    const { inputs } = await ask(caller, upstream, { form, ending: { args: '{"city":"Paris"}', isCut: true } })
    expect(inputs).toEqual([{ city: 'Paris' }])
  })

  test('that is complete without arguments has empty ones', async () => {
    const { inputs, reason } = await ask(caller, upstream, { form, ending: { args: '', isCut: false } })
    expect({ inputs, reason }).toEqual({ inputs: [{}], reason: 'tool-calls' })
  })
})
