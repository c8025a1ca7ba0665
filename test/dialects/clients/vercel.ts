// Vercel's AI SDK with four of its providers. The suite runs tool loops itself instead of the loop of the SDK.

import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModel, LanguageModelUsage, ModelMessage, ToolSet } from 'ai'
import { APICallError, generateText, jsonSchema, Output, streamText, tool } from 'ai'
import type { Dialect } from '../upstreams.ts'
import type { AskOptions, Client, Reply, Session } from './client.ts'
import { citySchema, echoSchema, messageOf } from './client.ts'

type Options = NonNullable<Parameters<typeof generateText>[0]['providerOptions']>

interface Vendor {
  readonly name: string
  readonly dialect: Dialect
  model(url: string, key: string): (id: string) => LanguageModel
  readonly always?: Options
  readonly thinking: Options
  /** The mark of a part for the prompt cache, if the provider has one. */
  readonly mark?: Options
}

const vendors: Readonly<Record<string, Vendor>> = {
  openai: {
    name: 'AI SDK, openai',
    dialect: 'openai-responses',
    model: (url, apiKey) => createOpenAI({ baseURL: `${url}/v1`, apiKey }).responses,
    always: { openai: { store: false } },
    thinking: {
      openai: { store: false, reasoningEffort: 'low', reasoningSummary: 'auto', forceReasoning: true },
    },
  },
  compatible: {
    name: 'AI SDK, openai-compatible',
    dialect: 'openai-chat',
    model: (url, apiKey) =>
      createOpenAICompatible({
        name: 'weir',
        baseURL: `${url}/v1`,
        apiKey,
        includeUsage: true,
        supportsStructuredOutputs: true,
      }),
    thinking: { weir: { reasoningEffort: 'low' } },
    mark: { openaiCompatible: { cache_control: { type: 'ephemeral' } } },
  },
  anthropic: {
    name: 'AI SDK, anthropic',
    dialect: 'anthropic-messages',
    model: (url, apiKey) => createAnthropic({ baseURL: `${url}/v1`, apiKey }),
    always: { anthropic: { structuredOutputMode: 'outputFormat' } },
    thinking: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1_024 } } },
    mark: { anthropic: { cacheControl: { type: 'ephemeral' } } },
  },
  google: {
    name: 'AI SDK, google',
    dialect: 'gemini',
    model: (url, apiKey) => createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey }),
    thinking: { google: { thinkingConfig: { includeThoughts: true, thinkingBudget: 1_024 } } },
  },
}

const toolSet = (names: readonly string[]): ToolSet =>
  Object.fromEntries(names.map(name => [name, tool({ inputSchema: jsonSchema<{ city?: string }>(citySchema) })]))

function settingsOf({ turns, tools, schema, thinking, signal }: AskOptions, vendor: Vendor) {
  return {
    messages: turns as ModelMessage[],
    maxRetries: 0,
    // By default the Anthropic provider asks for more output tokens than any model here has.
    maxOutputTokens: 2_000,
    ...(tools && { tools: toolSet(tools) }),
    ...(schema && { output: Output.object({ schema: jsonSchema<{ echo: string }>(echoSchema) }) }),
    providerOptions: thinking ? vendor.thinking : (vendor.always ?? {}),
    ...(signal && { abortSignal: signal }),
  }
}

interface SdkResult {
  readonly text: string
  readonly reasoningText: string | undefined
  readonly toolCalls: readonly { toolCallId: string; toolName: string; input: unknown }[]
  readonly finishReason: string
  readonly usage: LanguageModelUsage
  readonly response: { readonly messages: readonly unknown[] }
}

const replyOf = (result: SdkResult): Reply => ({
  text: result.text,
  thoughts: result.reasoningText ?? '',
  calls: result.toolCalls.map(call => ({ id: call.toolCallId, name: call.toolName, input: call.input })),
  finish: result.finishReason === 'tool-calls' ? 'calls' : result.finishReason === 'stop' ? 'stop' : 'other',
  usage: {
    input: result.usage.inputTokens ?? -1,
    cached: result.usage.inputTokenDetails.cacheReadTokens ?? 0,
    output: result.usage.outputTokens ?? -1,
    reasoning: result.usage.outputTokenDetails.reasoningTokens,
  },
  turns: result.response.messages,
})

async function streamed(model: LanguageModel, options: AskOptions, vendor: Vendor): Promise<Reply> {
  let fault: unknown
  const result = streamText({ model, ...settingsOf(options, vendor), onError: ({ error }) => void (fault ??= error) })
  let text = ''
  for await (const part of result.fullStream) {
    if (part.type === 'text-delta') text += part.text
    if (part.type === 'text-delta') options.onContent?.()
    if (part.type === 'abort') throw new Error('aborted')
  }
  if (fault !== undefined) throw fault
  const [reasoningText, toolCalls, finishReason] = await Promise.all([
    result.reasoningText,
    result.toolCalls,
    result.finishReason,
  ])
  const [usage, response] = [await result.usage, await result.response]
  return replyOf({ text, reasoningText, toolCalls, finishReason, usage, response })
}

async function collected(model: LanguageModel, options: AskOptions, vendor: Vendor): Promise<Reply> {
  let fault: unknown
  const result = streamText({ model, ...settingsOf(options, vendor), onError: ({ error }) => void (fault ??= error) })
  await result.consumeStream({ onError: error => void (fault ??= error) })
  if (fault !== undefined) throw fault
  const [step] = await result.steps
  return replyOf(step!)
}

const connect = (vendor: Vendor, model: (id: string) => LanguageModel): Session => ({
  user: (text, { picture, marked } = {}) => ({
    role: 'user',
    content: [
      { type: 'text', text, ...(marked && vendor.mark && { providerOptions: vendor.mark }) },
      ...(picture ? [{ type: 'image', image: picture, mediaType: 'image/png' }] : []),
    ],
  }),
  results(results) {
    const part = ({ id, name, text }: (typeof results)[number]) => ({
      type: 'tool-result',
      toolCallId: id,
      toolName: name,
      output: { type: 'text', value: text },
    })
    return [{ role: 'tool', content: results.map(part) }]
  },
  async ask(way, options) {
    if (way === 'stream') return streamed(model(options.model), options, vendor)
    if (way === 'helper') return collected(model(options.model), options, vendor)
    return replyOf(await generateText({ model: model(options.model), ...settingsOf(options, vendor) }))
  },
  fault(error) {
    const isCall = APICallError.isInstance(error)
    return {
      kind: isCall ? 'APICallError' : (error as Error).constructor.name,
      status: isCall ? error.statusCode : undefined,
      message: messageOf(error),
      requestId: isCall ? error.responseHeaders?.['x-request-id'] : undefined,
    }
  },
})

const client = (vendor: Vendor): Client => ({
  name: vendor.name,
  dialect: vendor.dialect,
  raises: () => 'APICallError',
  hasRequestId: true,
  connect: (url, key) => connect(vendor, vendor.model(url, key)),
})

export const vercelClients: readonly Client[] = Object.values(vendors).map(client)
