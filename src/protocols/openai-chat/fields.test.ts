// Tests that each field of a chat request is carried or reported as lost.

import { describe, expect, test } from 'bun:test'
import type { ChatCompletionCreateParamsBase } from 'openai/resources/chat/completions/completions'
import { readChat } from '../../../test/support/chat-requests.ts'
import { arkChat } from '../ark/dialect.ts'
import type { ChatFlavour } from './flavour.ts'
import { openaiChatFlavour } from './flavour.ts'

describe('a field of a chat request is carried or reported as lost:', () => {
  const schema = { type: 'object', properties: {} }
  const tool = { type: 'function', function: { name: 'f', parameters: schema } }
  type Samples = { readonly [Name in keyof Required<ChatCompletionCreateParamsBase>]: unknown }
  const samples: Samples = {
    messages: [{ role: 'user', content: 'other' }],
    model: 'a/b',
    audio: { format: 'wav', voice: 'alloy' },
    frequency_penalty: 0.5,
    function_call: 'none',
    functions: [{ name: 'f' }],
    logit_bias: { 5: 1 },
    logprobs: true,
    max_completion_tokens: 5,
    max_tokens: 5,
    metadata: { a: 'b' },
    modalities: ['text', 'audio'],
    moderation: { model: 'm' },
    n: 2,
    parallel_tool_calls: false,
    prediction: { type: 'content', content: 'x' },
    presence_penalty: 0.5,
    prompt_cache_key: 'k',
    prompt_cache_options: { mode: 'implicit', ttl: '30m' },
    prompt_cache_retention: '24h',
    reasoning_effort: 'high',
    response_format: { type: 'json_object' },
    safety_identifier: 's',
    seed: 5,
    service_tier: 'flex',
    stop: 'x',
    store: true,
    stream: true,
    stream_options: { include_usage: true, other: 1 },
    temperature: 0.5,
    tool_choice: 'required',
    tools: [tool],
    top_logprobs: 3,
    top_p: 0.5,
    user: 'u',
    verbosity: 'low',
    web_search_options: {},
  }
  const extensions: Readonly<Record<string, unknown>> = {
    thinking: { type: 'disabled' },
    enable_thinking: false,
    thinking_budget: 500,
    reasoning: { effort: 'low', max_tokens: 5, exclude: true, other: 1 },
    top_k: 5,
    min_p: 0.5,
    repetition_penalty: 1.5,
    extra_body: { google: { thinking_config: { thinking_budget: 5 } } },
    something_new: 1,
  }
  const ark: Readonly<Record<string, unknown>> = {
    frequency_penalty: 1,
    presence_penalty: 1,
    repetition_penalty: 1.5,
    logit_bias: { 5: 1 },
    logprobs: true,
    top_logprobs: 3,
    max_tokens: 5,
    max_completion_tokens: 5,
    n: 3,
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
    stop: ['x'],
    stream: true,
    stream_options: { chunk_include_usage: true },
    temperature: 1,
    top_p: 0.5,
    tool_choice: 'none',
    tools: [tool],
    parallel_tool_calls: true,
    user: 'u',
    service_tier: 'fast',
    reasoning_effort: 'minimal',
    thinking: { type: 'auto' },
  }

  const checkField = (field: string, value: unknown, flavour: ChatFlavour): void => {
    const required = field === 'top_logprobs' ? { logprobs: true } : {}
    const [before, after] = [readChat(required, flavour), readChat({ ...required, [field]: value }, flavour)]
    const isLost = after.lostFields.some(path => path === field || path.startsWith(`${field}.`))
    const { lostFields: _lost, ...carried } = after
    const { lostFields: _lostBefore, ...carriedBefore } = before
    expect(isLost || !Bun.deepEquals(carried, carriedBefore)).toBe(field !== 'model')
  }

  test.each(Object.entries({ ...samples, ...extensions }))('%s', (field, value) =>
    checkField(field, value, openaiChatFlavour),
  )
  test.each(Object.entries(ark))('in the Ark dialect: %s', (field, value) => checkField(field, value, arkChat))

  test('in messages, parts, tool calls and tools', () => {
    const conversation = readChat({
      messages: [
        { role: 'system', content: 'x', new_of_system: 1 },
        {
          role: 'user',
          new_of_user: 1,
          content: [
            { type: 'text', text: 'a', new_of_text: 1 },
            { type: 'image_url', image_url: { url: 'http://x/', image_pixel_limit: {}, detail: 'odd' } },
            { type: 'video_url', video_url: { url: 'http://x/', fps: 2 } },
          ],
        },
        {
          role: 'assistant',
          reasoning_details: [],
          tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' }, new_of_call: 1 }],
        },
        { role: 'tool', tool_call_id: 'a', content: 'x', new_of_tool: 1 },
      ],
      tools: [
        { ...tool, new_of_tools: 1 },
        { type: 'function', function: { name: 'g', new_of_function: 1 } },
      ],
      thinking: { type: 'enabled', new_of_thinking: 1 },
    })
    expect(conversation.lostFields.toSorted()).toEqual([
      'messages.content.image_url.detail',
      'messages.content.image_url.image_pixel_limit',
      'messages.content.new_of_text',
      'messages.content.video_url.fps',
      'messages.new_of_system',
      'messages.new_of_tool',
      'messages.new_of_user',
      'messages.reasoning_details',
      'messages.tool_calls.new_of_call',
      'thinking.new_of_thinking',
      'tools.function.new_of_function',
      'tools.new_of_tools',
    ])
  })
})
