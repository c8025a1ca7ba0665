// Anthropic's SDKs.

import Anthropic from '@anthropic-ai/sdk'
import Anthropic0 from 'anthropic-0'
import type { AskOptions, Client, Reply, Session } from './client.ts'
import { apiFault, citySchema, echoSchema, namedClass } from './client.ts'

type Params = Anthropic.MessageCreateParamsNonStreaming

function paramsOf({ model, turns, tools, schema, thinking }: AskOptions): Params {
  return {
    model,
    max_tokens: 4_000,
    messages: turns as Anthropic.MessageParam[],
    ...(tools && { tools: tools.map(name => ({ name, input_schema: citySchema })) }),
    ...(schema && { output_config: { format: { type: 'json_schema', schema: echoSchema } } }),
    ...(thinking && { thinking: { type: 'enabled', budget_tokens: 1_024 } }),
  } as Params
}

function replyOf({ content, stop_reason: stop, usage }: Anthropic.Message): Reply {
  const { input_tokens: input, cache_read_input_tokens: cached, cache_creation_input_tokens: written } = usage
  return {
    text: content.map(block => (block.type === 'text' ? block.text : '')).join(''),
    thoughts: content.map(block => (block.type === 'thinking' ? block.thinking : '')).join(''),
    calls: content.flatMap(block =>
      block.type === 'tool_use' ? [{ id: block.id, name: block.name, input: block.input }] : [],
    ),
    finish: stop === 'tool_use' ? 'calls' : stop === 'end_turn' ? 'stop' : 'other',
    usage: {
      input: input + (cached ?? 0) + (written ?? 0),
      cached: cached ?? 0,
      output: usage.output_tokens,
      reasoning: usage.output_tokens_details?.thinking_tokens,
    },
    turns: [{ role: 'assistant', content }],
  }
}

type Growing = { -readonly [K in keyof Anthropic.Message]: Anthropic.Message[K] }

/** Assembles the events like a program that reads them itself and relies on their order. */
async function gather(stream: AsyncIterable<Anthropic.RawMessageStreamEvent>, ask: AskOptions): Promise<Reply> {
  let message: Growing | undefined
  let isOver = false
  const inputs: string[] = []
  for await (const event of stream) {
    if (event.type === 'message_start') message = { ...event.message, content: [] }
    else if (message === undefined) throw new Error(`${event.type} before the start`)
    else if (event.type === 'content_block_start') {
      if (event.index !== message.content.length) throw new Error(`block ${event.index} out of turn`)
      message.content = [...message.content, { ...event.content_block } as Anthropic.ContentBlock]
    } else if (event.type === 'content_block_delta') {
      growBlock(message.content[event.index], event, inputs)
      if (event.delta.type === 'text_delta') ask.onContent?.()
    } else if (event.type === 'message_delta') {
      const { usage, delta } = event
      const reported = Object.fromEntries(Object.entries(usage).filter(([, count]) => count !== null))
      message = { ...message, stop_reason: delta.stop_reason, usage: { ...message.usage, ...reported } }
    } else if (event.type === 'message_stop') isOver = true
  }
  if (message === undefined || !isOver) throw new Error('the stream ended before message_stop')
  message.content.forEach((block, at) => {
    if (block.type === 'tool_use') block.input = JSON.parse(inputs[at] || '{}')
  })
  return replyOf(message)
}

function growBlock(
  block: Anthropic.ContentBlock | undefined,
  { index, delta }: Anthropic.RawContentBlockDeltaEvent,
  inputs: string[],
): void {
  if (block?.type === 'text' && delta.type === 'text_delta') block.text += delta.text
  else if (block?.type === 'thinking' && delta.type === 'thinking_delta') block.thinking += delta.thinking
  else if (block?.type === 'thinking' && delta.type === 'signature_delta') block.signature = delta.signature
  else if (block?.type === 'tool_use' && delta.type === 'input_json_delta') {
    inputs[index] = (inputs[index] ?? '') + delta.partial_json
  } else throw new Error(`${delta.type} for block ${index}, which is ${block?.type}`)
}

function connect({ messages }: Anthropic): Session {
  return {
    user: (text, { picture, marked } = {}) => ({
      role: 'user',
      content: [
        { type: 'text', text, ...(marked && { cache_control: { type: 'ephemeral' } }) },
        ...(picture ? [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: picture } }] : []),
      ],
    }),
    results(results) {
      const blocks = results.map(({ id, text }) => ({ type: 'tool_result', tool_use_id: id, content: text }))
      return [{ role: 'user', content: blocks }]
    },
    async ask(way, ask) {
      const params = paramsOf(ask)
      const options = ask.signal ? { signal: ask.signal } : {}
      if (way === 'plain') return replyOf(await messages.create(params, options))
      if (way === 'stream') return gather(await messages.create({ ...params, stream: true }, options), ask)
      return replyOf(await messages.stream(params, options).finalMessage())
    },
    fault: error => apiFault(error as InstanceType<typeof Anthropic.APIError>),
  }
}

const client = (name: string, Sdk: typeof Anthropic, raises: Client['raises']): Client => ({
  name,
  dialect: 'anthropic-messages',
  raises,
  hasRequestId: true,
  connect: (baseURL, apiKey) => connect(new Sdk({ apiKey, baseURL, maxRetries: 0 })),
})

/** The new SDK has more error classes, which extend the named ones. */
const own: Readonly<Record<number, string>> = {
  408: 'RequestTimeoutError',
  412: 'PreconditionFailedError',
  413: 'ContentTooLargeError',
  431: 'RequestHeaderFieldsTooLargeError',
  503: 'ServiceUnavailableError',
  504: 'GatewayTimeoutError',
  529: 'OverloadedError',
}

export const anthropic = client('Anthropic 1', Anthropic, status => own[status] ?? namedClass(status))
export const anthropic0 = client('Anthropic 0', Anthropic0 as unknown as typeof Anthropic, namedClass)
