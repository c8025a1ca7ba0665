// OpenAI's SDKs on chat completions, at the endpoints of OpenAI and of Ark.

import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import type { Dialect } from '../upstreams.ts'
import type { AskOptions, Client, Reply, ReplyCall, Session } from './client.ts'
import { apiFault, citySchema, echoSchema, namedClass, parsed } from './client.ts'

type Params = OpenAI.Chat.ChatCompletionCreateParamsNonStreaming
/** With the fields that Ark and others add. */
type Message = OpenAI.Chat.ChatCompletionMessage & { reasoning_content?: string; encrypted_content?: string }
type Delta = OpenAI.Chat.ChatCompletionChunk.Choice.Delta & Pick<Message, 'reasoning_content' | 'encrypted_content'>

export interface Place {
  readonly dialect: Dialect
  readonly prefix: string
  readonly thinking: object
}

const openai: Place = { dialect: 'openai-chat', prefix: '/v1', thinking: { reasoning_effort: 'low' } }
const ark: Place = { dialect: 'ark', prefix: '/api/v3', thinking: { thinking: { type: 'enabled' } } }

function paramsOf({ model, turns, tools, schema, thinking }: AskOptions, place: Place): Params {
  const format = { type: 'json_schema', json_schema: { name: 'echo', schema: echoSchema, strict: true } } as const
  return {
    model,
    messages: turns as Params['messages'],
    ...(tools && { tools: tools.map(name => ({ type: 'function', function: { name, parameters: citySchema } })) }),
    ...(schema && { response_format: format }),
    ...(thinking && place.thinking),
  } as Params
}

const callOf = (call: OpenAI.Chat.ChatCompletionMessageToolCall): ReplyCall => {
  if (call.type !== 'function') throw new Error(`a call of the type ${call.type}`)
  return { id: call.id, name: call.function.name, input: parsed(call.function.arguments) }
}

function replyOf(completion: { choices: OpenAI.ChatCompletion['choices']; usage?: OpenAI.CompletionUsage }): Reply {
  const [choice] = completion.choices
  const message = choice!.message as Message
  const { usage } = completion
  const finish = choice!.finish_reason
  return {
    text: message.content ?? '',
    thoughts: message.reasoning_content ?? '',
    calls: (message.tool_calls ?? []).map(callOf),
    finish: finish === 'tool_calls' ? 'calls' : finish === 'stop' ? 'stop' : 'other',
    usage: {
      input: usage?.prompt_tokens ?? -1,
      cached: usage?.prompt_tokens_details?.cached_tokens ?? 0,
      output: usage?.completion_tokens ?? -1,
      reasoning: usage?.completion_tokens_details?.reasoning_tokens ?? 0,
    },
    turns: [message],
  }
}

/** Assembles the chunks like a program that reads them itself. */
async function gather(stream: AsyncIterable<OpenAI.Chat.ChatCompletionChunk>, ask: AskOptions): Promise<Reply> {
  const message: Message = { role: 'assistant', content: null, refusal: null }
  const calls: { id: string; type: 'function'; function: { name: string; arguments: string } }[] = []
  let finish: OpenAI.ChatCompletion.Choice['finish_reason'] | null = null
  let usage: OpenAI.CompletionUsage | undefined
  for await (const chunk of stream) {
    usage = chunk.usage ?? usage
    const [choice] = chunk.choices
    if (choice === undefined) continue
    const delta = choice.delta as Delta
    if (delta.content) message.content = (message.content ?? '') + delta.content
    if (delta.reasoning_content) message.reasoning_content = (message.reasoning_content ?? '') + delta.reasoning_content
    if (delta.encrypted_content) message.encrypted_content = delta.encrypted_content
    for (const { index, id, function: part } of delta.tool_calls ?? []) {
      calls[index] ??= { id: id!, type: 'function', function: { name: part!.name!, arguments: '' } }
      calls[index].function.arguments += part?.arguments ?? ''
    }
    finish = choice.finish_reason ?? finish
    if (delta.content) ask.onContent?.()
  }
  if (finish === null) throw new Error('the stream ended without a reason')
  if (calls.length > 0) message.tool_calls = calls
  const choice = { index: 0, message, finish_reason: finish, logprobs: null }
  return replyOf({ choices: [choice], ...(usage && { usage }) })
}

function connect(client: OpenAI, place: Place): Session {
  const completions = client.chat.completions
  return {
    user: (text, { picture, marked } = {}) => ({
      role: 'user',
      content: [
        { type: 'text', text, ...(marked && { prompt_cache_breakpoint: { mode: 'explicit' } }) },
        ...(picture ? [{ type: 'image_url', image_url: { url: `data:image/png;base64,${picture}` } }] : []),
      ],
    }),
    results: results => results.map(({ id, text }) => ({ role: 'tool', tool_call_id: id, content: text })),
    async ask(way, ask) {
      const params = paramsOf(ask, place)
      const options = ask.signal ? { signal: ask.signal } : {}
      if (way === 'plain') return replyOf((await completions.create(params, options)) as OpenAI.ChatCompletion)
      const streamed = { ...params, stream: true, stream_options: { include_usage: true } } as const
      if (way === 'stream') return gather(await completions.create(streamed, options), ask)
      return replyOf(await completions.stream(streamed, options).finalChatCompletion())
    },
    fault: error => apiFault(error as InstanceType<typeof OpenAI.APIError>),
  }
}

const client = (name: string, Sdk: typeof OpenAI, place: Place): Client => ({
  name,
  dialect: place.dialect,
  raises: namedClass,
  hasRequestId: true,
  connect: (url, apiKey) => connect(new Sdk({ apiKey, baseURL: url + place.prefix, maxRetries: 0 }), place),
})

/** The types of the two versions differ, but not in what is used here. */
const Six = OpenAI6 as unknown as typeof OpenAI

export const openaiChat = client('openai 7, chat', OpenAI, openai)
export const openaiChat6 = client('openai 6, chat', Six, openai)
export const arkChat = client('openai 7, Ark', OpenAI, ark)
export const arkChat6 = client('openai 6, Ark', Six, ark)
