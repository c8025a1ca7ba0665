// Tests writing neutral conversations as requests.

import { describe, expect, test } from 'bun:test'
import type { Wire } from '../../../test/support/responses-wire.ts'
import {
  conversationOf,
  read,
  readAndWrite,
  readItems,
  refusedParam,
  target,
  write,
} from '../../../test/support/responses-wire.ts'
import type { ModelTraits } from '../../base/money/model-traits.ts'
import type { ConversationMessage, TextPart } from '../neutral/conversation.ts'
import { packReasoningState } from '../neutral/reasoning-state.ts'
import { protocols } from '../protocols.ts'

describe('a conversation is written:', () => {
  const tools = [
    { type: 'function', name: 'f', description: 'd', parameters: { type: 'object', properties: {} }, strict: true },
    { type: 'function', name: 'loose' },
    { type: 'custom', name: 'g', format: { type: 'grammar', syntax: 'lark', definition: 'x' } },
    {
      type: 'web_search',
      filters: { allowed_domains: ['a.example'] },
      search_context_size: 'low',
      user_location: { city: 'X' },
    },
    { type: 'code_interpreter', container: 'c' },
  ]

  test('a request that was read is the same, and stores nothing', () => {
    const input = [
      {
        type: 'message',
        role: 'user',
        content: [{ type: 'input_text', text: 'hi', prompt_cache_breakpoint: { mode: 'explicit' } }],
      },
      { type: 'function_call', call_id: 'a', name: 'f', arguments: '{"x":1}' },
      { type: 'custom_tool_call', call_id: 'b', name: 'g', input: 'free' },
      { type: 'function_call_output', call_id: 'a', output: 'done' },
      {
        type: 'custom_tool_call_output',
        call_id: 'b',
        output: [
          { type: 'input_text', text: 'see' },
          { type: 'input_image', image_url: 'https://a.example/i', detail: 'auto' },
        ],
      },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'ok', annotations: [] }] },
      { type: 'message', role: 'user', content: [{ type: 'input_file', file_url: 'https://a.example/f.pdf' }] },
    ]
    const fields = {
      input,
      instructions: 'be',
      tools,
      temperature: 0.5,
      top_p: 0.5,
      max_output_tokens: 99,
      service_tier: 'flex',
      metadata: { a: 'b' },
      safety_identifier: 'u',
      prompt_cache_key: 'k',
      top_logprobs: 2,
      parallel_tool_calls: false,
      text: { format: { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true }, verbosity: 'low' },
      tool_choice: {
        type: 'allowed_tools',
        mode: 'auto',
        tools: [{ type: 'function', name: 'f' }, { type: 'custom', name: 'g' }, { type: 'web_search' }],
      },
      reasoning: { effort: 'low', summary: 'auto' },
    }
    const { json, losses } = readAndWrite(fields)
    expect(losses).toEqual([])
    expect(json).toEqual({
      ...fields,
      model: 'm',
      store: false,
      stream: false,
      include: ['reasoning.encrypted_content', 'message.output_text.logprobs'],
      tools: [
        tools[0]!,
        { type: 'function', name: 'loose', parameters: { type: 'object', properties: {} }, strict: false },
        tools[2]!,
        { ...tools[3], user_location: { type: 'approximate', city: 'X' } },
        tools[4]!,
      ],
    })
  })

  test.each([
    [{ stop: ['x'] }, 'stop'],
    [{ seed: 1 }, 'seed'],
    [{ topK: 1 }, 'top_k'],
    [{ frequencyPenalty: 1 }, 'frequency_penalty'],
    [{ presencePenalty: 1 }, 'presence_penalty'],
    [{ logitBias: { 1: 1 } }, 'logit_bias'],
    [{ serviceClass: 'nobody_knows' }, 'service_tier'],
  ])('%j is a loss', (settings, code) => {
    expect(write(conversationOf({ settings: { stream: false, ...settings } })).losses).toEqual([code])
  })

  test('several choices are refused, with the field n', () => {
    expect(refusedParam(() => write(conversationOf({ settings: { stream: false, choices: 2 } })))).toBe('n')
  })

  test('the cap is the lowest one of the caller’s, the gateway’s and the model’s', () => {
    const capped = (own: number | undefined, cap: number | undefined, outputTokensMax?: number) =>
      write(conversationOf({ settings: { stream: false, ...(own !== undefined && { outputTokensMax: own }) } }), {
        cap,
        outputTokensMax,
      }).json.max_output_tokens
    expect([capped(9, 7), capped(5, 7), capped(undefined, 7), capped(9, undefined)]).toEqual([7, 5, 7, 9])
    expect([capped(9, undefined, 8), capped(9, 7, 8)]).toEqual([8, 7])
    expect(capped(undefined, undefined, 8)).toBeUndefined()
  })

  test('a long id of an end user becomes a hash', () => {
    const { safety_identifier: id } = write(
      conversationOf({ settings: { stream: false, endUser: 'u'.repeat(200) } }),
    ).json
    expect(id).toMatch(/^[0-9a-f]{64}$/)
  })

  test('a long id of a tool call becomes a hash, the same in the call and in its result', () => {
    const ids = ['x'.repeat(64), 'x'.repeat(65), 'y'.repeat(300)]
    const callsOf = (custom: boolean, parts: readonly TextPart[]): ConversationMessage[] => [
      { role: 'assistant', parts: ids.map(id => ({ kind: 'call', id, name: 'f', arguments: '{}', custom })) },
      { role: 'tool', parts: ids.map(callId => ({ kind: 'result', callId, parts, custom })) },
    ]
    const text: TextPart = { kind: 'text', text: 'done' }
    for (const messages of [callsOf(false, [text]), callsOf(true, [{ ...text, cache: {} }])]) {
      for (const flavour of ['openai-responses', 'ark-responses'] as const) {
        const items = write(conversationOf({ messages }), {}, flavour).json.input as { call_id: string }[]
        const written = items.map(item => item.call_id)
        expect(written.slice(3)).toEqual(written.slice(0, 3))
        expect([written[0], new Set(written).size]).toEqual([ids[0]!, 3])
        for (const id of written.slice(1, 3)) expect(id).toMatch(/^call_[0-9a-f]{32}$/)
      }
    }
  })

  test('the standard service class is called default', () => {
    expect(
      write(conversationOf({ settings: { stream: false, serviceClass: 'standard_only' } })).json.service_tier,
    ).toBe('default')
  })

  test('tool names that are not allowed are changed everywhere, and the change is noted', () => {
    const messages: readonly ConversationMessage[] = [
      { role: 'user', parts: [{ kind: 'text', text: 'hi' }] },
      { role: 'assistant', parts: [{ kind: 'call', id: 'c', name: 'a.b', arguments: '' }] },
    ]
    const { json, notes } = write(
      conversationOf({
        messages,
        tools: [
          { kind: 'function', name: 'a.b' },
          { kind: 'function', name: 'a_b' },
        ],
        toolChoice: { mode: 'required', names: ['a.b'] },
      }),
    )
    expect(json).toMatchObject({
      tools: [{ name: 'a_b_2' }, { name: 'a_b' }],
      tool_choice: { type: 'function', name: 'a_b_2' },
    })
    expect((json.input as Wire[])[1]).toMatchObject({ name: 'a_b_2', arguments: '{}' })
    expect([...notes.renamed]).toEqual([['a_b_2', 'a.b']])
  })

  test('P30: the text of a failed tool result says that it failed', () => {
    const result = { kind: 'result', callId: 'c', parts: [{ kind: 'text', text: 'boom' }], failed: true } as const
    const items = write(conversationOf({ messages: [{ role: 'tool', parts: [result] }] })).json.input
    expect(items).toEqual([{ type: 'function_call_output', call_id: 'c', output: 'The tool failed:\nboom' }])
  })

  test('the JSON mode adds a message about JSON, unless a message mentions it', () => {
    const plain = write(conversationOf({ format: { kind: 'json' } })).json
    expect(plain.text).toEqual({ format: { type: 'json_object' } })
    expect((plain.input as Wire[]).at(-1)).toMatchObject({ role: 'developer' })
    const messages: readonly ConversationMessage[] = [{ role: 'user', parts: [{ kind: 'text', text: 'give me json' }] }]
    expect(write(conversationOf({ messages, format: { kind: 'json' } })).json.input).toHaveLength(1)
    // Upstreams do not look into the instructions.
    const system = { role: 'system', parts: [{ kind: 'text', text: 'Answer in JSON.' }] } as const
    const user = { role: 'user', parts: [{ kind: 'text', text: 'Hi' }] } as const
    const instructed = write(conversationOf({ messages: [system, user], format: { kind: 'json' } })).json
    expect(instructed).toMatchObject({ instructions: 'Answer in JSON.', input: [{}, { role: 'developer' }] })
  })

  test('a schema that the model cannot be held to is written in a message', () => {
    const schema = { type: 'object', properties: { a: {} } }
    const messages: readonly ConversationMessage[] = [{ role: 'user', parts: [{ kind: 'text', text: 'give me json' }] }]
    const conversation = conversationOf({ messages, format: { kind: 'schema', schema } })
    for (const flavour of [undefined, 'ark-responses'] as const) {
      const { json, losses } = write(conversation, { traits: { schema: false } }, flavour)
      expect([json.text, losses]).toEqual([{ format: { type: 'json_object' } }, ['response_format.json_schema']])
      const [, told] = json.input as { content: Wire[] }[]
      expect(told!.content[0]!.text).toContain(JSON.stringify(schema))
    }
  })

  test('a prompt is cached only up to its breakpoints, which is a loss if the model has none', () => {
    const conversation = conversationOf({ settings: { stream: false, cache: 'breakpoints' } })
    const { json, losses } = write(conversation)
    expect([json.prompt_cache_options, losses]).toEqual([{ mode: 'explicit' }, []])
    const others = [write(conversation, { traits: { cacheMarks: false } }), write(conversation, {}, 'ark-responses')]
    for (const other of others)
      expect([other.json.prompt_cache_options, other.losses]).toEqual([undefined, ['prompt_cache_options']])
  })

  test('the detail of a file is written, or a loss if the flavour has none', () => {
    const source = { at: 'url', url: 'https://a.example/f.pdf' } as const
    const fileWith = (detail: 'auto' | 'low' | 'original') =>
      conversationOf({ messages: [{ role: 'user', parts: [{ kind: 'file', source, detail }] }] })
    const partOf = ({ json }: ReturnType<typeof write>) => (json.input as { content: Wire[] }[])[0]!.content[0]!
    expect(partOf(write(fileWith('low'))).detail).toBe('low')
    expect(partOf(write(fileWith('original'))).detail).toBe('high')
    expect(partOf(write(fileWith('auto')))).not.toHaveProperty('detail')
    const ark = write(fileWith('low'), {}, 'ark-responses')
    expect([partOf(ark).detail, ark.losses]).toEqual([undefined, ['file.detail']])
    expect(write(fileWith('auto'), {}, 'ark-responses').losses).toEqual([])
  })

  test('a text file is a file, or text if the flavour reads only PDF', () => {
    const source = { at: 'inline', base64: Buffer.from('a,1').toString('base64'), mime: 'text/csv' } as const
    const parts = [{ kind: 'file', source, name: 'a.csv', detail: 'low' } as const]
    const contentOf = (flavour?: 'ark-responses') => {
      const { json, losses } = write(conversationOf({ messages: [{ role: 'user', parts }] }), {}, flavour)
      return [(json.input as { content: Wire[] }[])[0]!.content, losses]
    }
    const file_data = `data:text/csv;base64,${source.base64}`
    expect(contentOf()).toEqual([[{ type: 'input_file', filename: 'a.csv', file_data, detail: 'low' }], []])
    expect(contentOf('ark-responses')).toEqual([[{ type: 'input_text', text: 'a.csv:\na,1' }], ['file.detail']])
  })

  test('audio has no cache breakpoint, which is reported', () => {
    const audio = { kind: 'audio', source: { at: 'inline', base64: 'AAAA', mime: 'audio/wav' }, cache: {} } as const
    const { json, losses } = write(conversationOf({ messages: [{ role: 'user', parts: [audio] }] }))
    expect(json.input).toEqual([
      {
        type: 'message',
        role: 'user',
        content: [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }],
      },
    ])
    expect(losses).toEqual(['cache'])
  })

  test('tool results have cache breakpoints, which are lost if the model has none', () => {
    const result = { kind: 'result', callId: 'c', parts: [{ kind: 'text', text: 'x' }], cache: { ttl: '1h' } } as const
    const conversation = conversationOf({ messages: [{ role: 'tool', parts: [result] }] })
    expect(write(conversation).json.input).toEqual([
      {
        type: 'function_call_output',
        call_id: 'c',
        output: [{ type: 'input_text', text: 'x', prompt_cache_breakpoint: { mode: 'explicit', ttl: '12h' } }],
      },
    ])
    const { json, losses } = write(conversation, { traits: { cacheMarks: false } })
    expect(json.input).toEqual([{ type: 'function_call_output', call_id: 'c', output: 'x' }])
    expect(losses).toEqual(['cache'])
  })
})

describe('thinking', () => {
  test.each([
    [undefined, {}, undefined, false],
    [undefined, { thinking: 'effort' }, undefined, true],
    [{ effort: 'high', show: 'auto' }, {}, { effort: 'high', summary: 'auto' }, true],
    [{ effort: 'none', show: 'auto' }, {}, { effort: 'none' }, false],
    [{ effort: 'high', show: 'none' }, {}, { effort: 'high' }, true],
    [{ budget: 0 }, {}, { effort: 'none' }, false],
    [{ budget: 1_024 }, {}, { effort: 'low' }, true],
    [{ budget: 30_000 }, {}, { effort: 'xhigh' }, true],
    [{ adaptive: true, show: 'detailed' }, {}, { summary: 'detailed' }, true],
    [{ effort: 'max' }, { efforts: ['low', 'high'] }, { effort: 'high' }, true],
    [{ effort: 'none' }, { efforts: ['low', 'high'], stopsThinking: false }, { effort: 'low' }, true],
    [{ effort: 'high' }, { efforts: [] }, undefined, true],
    [{ effort: 'high' }, { thinking: 'none' }, undefined, false],
  ] as const)('%j for a model with %j is %j', (...[reasoning, traits, expected, hasState]) => {
    const { json } = write(conversationOf(reasoning === undefined ? {} : { reasoning }), { traits })
    expect(json.reasoning as unknown).toEqual(expected)
    expect(json.include !== undefined).toBe(hasState)
  })

  test('that the model does not support is a loss', () => {
    const lossesFor = (traits: ModelTraits) =>
      write(conversationOf({ reasoning: { effort: 'max' } }), { traits }).losses
    expect(lossesFor({})).toEqual([])
    expect(lossesFor({ efforts: ['low'] })).toEqual(['reasoning.effort'])
    expect(lossesFor({ thinking: 'none' })).toEqual(['reasoning'])
  })

  test('leaves out sampling settings that the model does not allow', () => {
    const settings = { stream: false, temperature: 0.5 }
    expect(write(conversationOf({ settings }), { traits: { sampling: false } }).losses).toEqual(['temperature'])
    const atDefault = conversationOf({ settings: { ...settings, temperature: 1 } })
    const { json, losses } = write(atDefault, { traits: { sampling: false } })
    expect([json.temperature, losses]).toEqual([undefined, []])
    const traits = { thinking: 'effort', samplingWithoutThinking: true } as const
    expect(write(conversationOf({ settings }), { traits }).json.temperature).toBeUndefined()
    expect(write(conversationOf({ settings, reasoning: { effort: 'none' } }), { traits }).json.temperature).toBe(0.5)
  })

  const sealed = (origin: string, form: 'encrypted' | 'signature' = 'encrypted') =>
    ({ origin, form, value: 'gA+/=', id: 'rs_1' }) as const

  test('P33: has only state of the same origin, byte for byte', () => {
    const reasoningItems = (state: string): readonly Wire[] => {
      const item = {
        id: 'rs_ours',
        type: 'reasoning',
        summary: [{ type: 'summary_text', text: 'hm' }],
        encrypted_content: state,
      }
      const { json, losses } = readAndWrite({ input: [{ role: 'user', content: 'hi' }, item] })
      expect(losses).toEqual((json.input as Wire[]).length > 1 ? [] : ['reasoning_state'])
      return (json.input as Wire[]).slice(1)
    }
    expect(reasoningItems(packReasoningState(sealed('here')))).toEqual([
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'gA+/=' },
    ])
    expect(reasoningItems(packReasoningState(sealed('there')))).toEqual([])
    expect(reasoningItems(packReasoningState(sealed('here', 'signature')))).toEqual([])
    expect(reasoningItems('gRaw')).toEqual([])
  })

  test('has the signature of a tool call, which is read back with the call', () => {
    const callState = { origin: 'o', form: 'thought', value: 'sig' } as const
    const answer = {
      choices: [{ parts: [{ kind: 'call', id: 'c', name: 'f', arguments: '{}', sealed: callState }], finish: 'calls' }],
    } as const
    const body = protocols['openai-responses'].codec.writeWholeAnswer(answer, {
      requestId: 'req_1',
      model: 'p/m',
      createdS: 1,
      wantsUsage: true,
      choices: 1,
      json: {},
      losses: target().notes.losses,
    })
    const { output } = JSON.parse(body) as { output: Wire[] }
    expect(readItems(...output)).toEqual([
      {
        role: 'assistant',
        parts: [{ kind: 'call', id: 'c', name: 'f', arguments: '{}', sealed: { ...callState, id: 'c' } }],
      },
    ])
  })
})

describe('the Ark dialect', () => {
  test('declares all tools if one of them is forced', () => {
    const tools = ['f', 'g'].map(name => ({ kind: 'function', name }) as const)
    const forced = conversationOf({ tools, toolChoice: { mode: 'required', names: ['g'] } })
    const { json } = write(forced, {}, 'ark-responses')
    expect(json).toMatchObject({ tools: [{ name: 'f' }, { name: 'g' }], tool_choice: { type: 'function', name: 'g' } })
  })

  test('has its own fields and values', () => {
    const { json, losses, notes } = write(
      conversationOf({
        messages: [
          { role: 'developer', parts: [{ kind: 'text', text: 'rules' }] },
          { role: 'user', parts: [{ kind: 'video', source: { at: 'url', url: 'https://a.example/v' } }] },
        ],
        tools: [
          { kind: 'custom', name: 'shell' },
          { kind: 'function', name: 'f' },
          { kind: 'search', domains: ['x'] },
        ],
        toolChoice: { mode: 'auto', names: ['shell'] },
        reasoning: { effort: 'none' },
        settings: { stream: true, metadata: { a: 'b' }, endUser: 'u' },
      }),
      {},
      'ark-responses',
    )
    expect(json).toEqual({
      model: 'm',
      input: [
        { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'rules' }] },
        { type: 'message', role: 'user', content: [{ type: 'input_video', video_url: 'https://a.example/v' }] },
      ],
      tools: [
        {
          type: 'function',
          name: 'shell',
          strict: false,
          parameters: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
        },
        { type: 'web_search' },
      ],
      tool_choice: 'auto',
      thinking: { type: 'disabled' },
      safety_identifier: 'u',
      store: false,
      stream: true,
    })
    expect([...losses].sort()).toEqual(['metadata', 'tools.search.domains'])
    expect([...notes.wrapped!]).toEqual(['shell'])
  })

  test('has its own fields for thinking', () => {
    expect(read({ thinking: { type: 'disabled' } }, 'ark-responses').reasoning).toEqual({ effort: 'none' })
    expect(read({ thinking: { type: 'auto' } }, 'ark-responses').reasoning).toEqual({ adaptive: true, show: 'auto' })
    expect(read({ reasoning: { effort: 'low' } }, 'ark-responses').reasoning).toEqual({ effort: 'low', show: 'auto' })
  })
})
