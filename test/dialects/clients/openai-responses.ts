// OpenAI's SDKs on responses. The program carries the state, like agents that store nothing at the provider.

import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import type { AskOptions, Client, Reply, Session } from './client.ts'
import { apiFault, citySchema, echoSchema, namedClass, parsed } from './client.ts'

type Params = OpenAI.Responses.ResponseCreateParamsNonStreaming
type Response = OpenAI.Responses.Response

function paramsOf({ model, turns, tools, schema, thinking }: AskOptions): Params {
  const format = { type: 'json_schema', name: 'echo', schema: echoSchema, strict: true } as const
  const tool = (name: string) => ({ type: 'function', name, parameters: citySchema, strict: false }) as const
  return {
    model,
    input: turns as OpenAI.Responses.ResponseInput,
    store: false,
    ...(tools && { tools: tools.map(tool) }),
    ...(schema && { text: { format } }),
    ...(thinking && { reasoning: { effort: 'low', summary: 'auto' }, include: ['reasoning.encrypted_content'] }),
  }
}

/** Removes fields that the SDK's stream helper adds; they are not part of the wire format. */
function withoutParsed(item: object): object {
  const keep = (key: string, value: unknown): unknown =>
    key === 'parsed' || key === 'parsed_arguments' ? undefined : value
  return JSON.parse(JSON.stringify(item, keep)) as object
}

function replyOf(response: Response): Reply {
  const { output, usage, status } = response
  const calls = output.filter(item => item.type === 'function_call')
  const thoughts = output.flatMap(item => (item.type === 'reasoning' ? item.summary.map(part => part.text) : []))
  return {
    text: response.output_text,
    thoughts: thoughts.join(''),
    calls: calls.map(item => ({ id: item.call_id, name: item.name, input: parsed(item.arguments) })),
    finish: status !== 'completed' ? 'other' : calls.length > 0 ? 'calls' : 'stop',
    usage: {
      input: usage?.input_tokens ?? -1,
      cached: usage?.input_tokens_details.cached_tokens ?? 0,
      output: usage?.output_tokens ?? -1,
      reasoning: usage?.output_tokens_details.reasoning_tokens ?? 0,
    },
    turns: output.map(withoutParsed),
  }
}

/** Assembles the stream like a program that shows the deltas and takes the response of the last event. */
async function gather(stream: AsyncIterable<OpenAI.Responses.ResponseStreamEvent>, ask: AskOptions): Promise<Reply> {
  let text = ''
  let last: Response | undefined
  for await (const event of stream) {
    if (event.type === 'response.output_text.delta') text += event.delta
    if (event.type === 'response.completed' || event.type === 'response.incomplete') last = event.response
    if (event.type === 'response.output_text.delta') ask.onContent?.()
  }
  if (last === undefined) throw new Error('the stream ended without its last event')
  const content = last.output.flatMap(item => (item.type === 'message' ? item.content : []))
  const whole = content.map(part => (part.type === 'output_text' ? part.text : '')).join('')
  if (whole !== text) throw new Error(`the pieces ${JSON.stringify(text)} are not the whole ${JSON.stringify(whole)}`)
  return replyOf({ ...last, output_text: whole })
}

function connect({ responses }: OpenAI): Session {
  return {
    user: (text, { picture, marked } = {}) => ({
      role: 'user',
      content: [
        { type: 'input_text', text, ...(marked && { prompt_cache_breakpoint: { mode: 'explicit' } }) },
        ...(picture ? [{ type: 'input_image', detail: 'auto', image_url: `data:image/png;base64,${picture}` }] : []),
      ],
    }),
    results: results => results.map(({ id, text }) => ({ type: 'function_call_output', call_id: id, output: text })),
    async ask(way, ask) {
      const params = paramsOf(ask)
      const options = ask.signal ? { signal: ask.signal } : {}
      if (way === 'plain') return replyOf(await responses.create(params, options))
      if (way === 'stream') return gather(await responses.create({ ...params, stream: true }, options), ask)
      return replyOf(await responses.stream({ ...params, stream: true }, options).finalResponse())
    },
    fault: error => apiFault(error as InstanceType<typeof OpenAI.APIError>),
  }
}

const client = (name: string, Sdk: typeof OpenAI): Client => ({
  name,
  dialect: 'openai-responses',
  raises: namedClass,
  hasRequestId: true,
  connect: (url, apiKey) => connect(new Sdk({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 })),
})

export const openaiResponses = client('openai 7, responses', OpenAI)
export const openaiResponses6 = client('openai 6, responses', OpenAI6 as unknown as typeof OpenAI)
