// A conversation as Google is told it.

import { describe, expect, test } from 'bun:test'
import { Refusal } from '../../base/errors.ts'
import type { Traits } from '../../base/traits.ts'
import type { Conversation, FunctionTool, Part, Turn } from '../conversation.ts'
import { Losses } from '../losses.ts'
import type { ConversationTarget } from '../protocol.ts'
import { needsInline } from './media.ts'
import { readConversation } from './read-request.ts'
import { readCall } from './request.ts'
import { writeConversation } from './write-request.ts'

type Body = Readonly<Record<string, unknown>>

const hi: Turn = { role: 'user', parts: [{ kind: 'text', text: 'hi' }] }
const talk = (more: Partial<Conversation>): Conversation => ({
  turns: [hi],
  tools: [],
  settings: { stream: false },
  unread: [],
  ...more,
})
const aim = (traits: Traits = {}, more: Partial<ConversationTarget> = {}): ConversationTarget => ({
  ...{ model: 'up', traits, outputTokensMax: undefined, cap: undefined, capField: 'max_tokens', askUsage: true },
  ...{ origin: 'here', media: new Map(), notes: { losses: new Losses(), renamed: new Map() } },
  ...more,
})

function written(more: Partial<Conversation>, target = aim()): { readonly body: Body; readonly losses: readonly string[] } {
  const body = JSON.parse(writeConversation(talk(more), target)) as Body
  return { body, losses: target.notes.losses.codes }
}
const contentsOf = (turns: readonly Turn[], target = aim()) => {
  const { body, losses } = written({ turns }, target)
  return { contents: body.contents as object[], systemInstruction: body.systemInstruction, losses }
}
const user = (...parts: readonly Part[]): Turn => ({ role: 'user', parts })
const model = (...parts: readonly Part[]): Turn => ({ role: 'assistant', parts })
const text = (said: string): Part => ({ kind: 'text', text: said })
const call = (id: string, name = 'f', more: object = {}): Part => ({ kind: 'call', id, name, arguments: '{"a":1}', ...more })
const result = (callId: string, said = 'ok', more: object = {}): Part => ({
  kind: 'result',
  callId,
  parts: [{ kind: 'text', text: said }],
  ...more,
})
const tool = (...parts: readonly Part[]): Turn => ({ role: 'tool', parts })
const skip = 'skip_thought_signature_validator'
const mine = { sealed: { form: 'thought', value: 'AbCd', origin: 'here' } } as const

describe('turns', () => {
  test('instructions that lead stand apart, later ones are said by the user', () => {
    const system = (said: string): Turn => ({ role: 'system', parts: [text(said)] })
    const { contents, systemInstruction } = contentsOf([
      system('one'),
      { role: 'developer', parts: [text('two')] },
      hi,
      model(text('yes')),
      system('three'),
    ])
    expect(systemInstruction).toEqual({ parts: [{ text: 'one' }, { text: 'two' }] })
    expect(contents).toEqual([
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'model', parts: [{ text: 'yes' }] },
      { role: 'user', parts: [{ text: 'three' }] },
    ])
  })

  test('where there is no place for instructions, or nothing else, they are the first words', () => {
    const system: Turn = { role: 'system', parts: [text('be')] }
    expect(contentsOf([system, hi], aim({ system: false }))).toMatchObject({
      contents: [{ role: 'user', parts: [{ text: 'be' }, { text: 'hi' }] }],
      systemInstruction: undefined,
    })
    expect(contentsOf([system]).contents).toEqual([{ role: 'user', parts: [{ text: 'be' }] }])
  })

  test('a conversation begins with the user, and nothing at all is none', () => {
    expect(contentsOf([model(text('yes'))]).contents).toHaveLength(2)
    expect(() => contentsOf([])).toThrow(Refusal)
    expect(() => contentsOf([user(text(''))])).toThrow(Refusal)
  })

  test('results in the order of the calls, alone, with text behind them', () => {
    const turns = [hi, model(call('x'), call('y', 'g')), user(text('well'), result('y'), result('x'))]
    const { contents, losses } = contentsOf(turns, aim({ thinking: 'budget' }))
    expect(contents.slice(1)).toEqual([
      {
        role: 'model',
        parts: [
          { functionCall: { id: 'x', name: 'f', args: { a: 1 } } },
          { functionCall: { id: 'y', name: 'g', args: { a: 1 } } },
        ],
      },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: 'x', name: 'f', response: { output: 'ok' } } },
          { functionResponse: { id: 'y', name: 'g', response: { output: 'ok' } } },
        ],
      },
      { role: 'user', parts: [{ text: 'well' }] },
    ])
    expect(losses).toEqual([])
  })

  test('a call without a result gets one, a result without a call goes, and both are said', () => {
    const unanswered = contentsOf([hi, model(call('x')), user(text('well'))], aim({ thinking: 'budget' }))
    expect(unanswered.contents[2]).toMatchObject({ parts: [{ functionResponse: { id: 'x', response: { error: expect.any(String) } } }] })
    expect(unanswered.losses).toEqual(['tool_result'])
    const orphan = contentsOf([hi, tool(result('nobody'))])
    expect(orphan).toMatchObject({ contents: [{ parts: [{ text: 'hi' }] }], losses: ['tool_result'] })
    const last = contentsOf([hi, model(call('x'))], aim({ thinking: 'budget' }))
    expect(last.contents).toHaveLength(3)
  })

  test('results are objects', () => {
    const rows: readonly (readonly [Part, object])[] = [
      [result('x', 'plain'), { output: 'plain' }],
      [result('x', ''), { output: '' }],
      [result('x', '{"a":12345678901234567890}'), { a: 12345678901234567890 }],
      [result('x', '[1]'), { output: '[1]' }],
      [result('x', 'no', { failed: true }), { error: 'no' }],
    ]
    for (const [part, response] of rows) {
      const { contents } = contentsOf([hi, model(call('x')), tool(part)])
      expect(contents[2]).toMatchObject({ parts: [{ functionResponse: { response } }] })
    }
  })

  test('numbers beyond a double keep their digits', () => {
    const turns = [hi, model(call('x', 'f', { arguments: '{"id":12345678901234567890}' })), tool(result('x'))]
    expect(writeConversation(talk({ turns }), aim())).toContain('"args":{"id":12345678901234567890}')
  })

  test('arguments that are no object are lost, those of a custom tool are its input', () => {
    const broken = contentsOf([hi, model(call('x', 'f', { arguments: '{"a":' }))])
    expect(broken.contents[1]).toMatchObject({ parts: [{ functionCall: { args: {} } }] })
    expect(broken.losses).toContain('tool_arguments')
    const custom = contentsOf([hi, model(call('x', 'f', { arguments: 'free', custom: true }))])
    expect(custom.contents[1]).toMatchObject({ parts: [{ functionCall: { args: { input: 'free' } } }] })
  })
})

describe('P25: signatures', () => {
  const partsOf = (turn: Turn, traits: Traits = {}) => {
    const { contents, losses } = contentsOf([hi, turn], aim(traits))
    return { parts: (contents[1] as { parts: object[] }).parts, losses: losses.filter(code => code !== 'tool_result') }
  }

  test('go back to the part that bore them', () => {
    const turn = model({ kind: 'reasoning', text: 'hm', ...mine }, call('x', 'f', mine), call('y'))
    expect(partsOf(turn)).toEqual({
      parts: [
        { text: 'hm', thought: true, thoughtSignature: 'AbCd' },
        { functionCall: { id: 'x', name: 'f', args: { a: 1 } }, thoughtSignature: 'AbCd' },
        { functionCall: { id: 'y', name: 'f', args: { a: 1 } } },
      ],
      losses: [],
    })
  })

  test('of another origin do not, and the first call of a step gets what stands for one', () => {
    const foreign = { sealed: { form: 'thought', value: 'AbCd', origin: 'there' } } as const
    const turn = model({ kind: 'reasoning', text: 'hm', ...foreign }, call('x', 'f', foreign), call('y', 'f', foreign))
    const { parts, losses } = partsOf(turn)
    expect(parts).toMatchObject([{ thoughtSignature: skip }, { functionCall: { id: 'y' } }])
    expect(parts[1]).not.toHaveProperty('thoughtSignature')
    expect(losses).toEqual(['reasoning_state'])
  })

  test('are not asked for by models that think by budget', () => {
    const { parts, losses } = partsOf(model(call('x')), { thinking: 'budget' })
    expect(parts[0]).not.toHaveProperty('thoughtSignature')
    expect(losses).toEqual([])
  })

  test('thoughts that nobody signed are thoughts', () => {
    expect(partsOf(model({ kind: 'reasoning', text: 'hm' })).parts).toEqual([{ text: 'hm', thought: true }])
    const shown = model({ kind: 'reasoning', text: 'hm', sealed: { form: 'shown', value: '', origin: 'there' } })
    expect(partsOf(shown)).toEqual({ parts: [{ text: 'hm', thought: true }], losses: [] })
  })
})

describe('media', () => {
  const url = 'https://x.example/cat.png'
  const image: Part = { kind: 'image', source: { at: 'url', url } }
  const held = aim({}, { media: new Map([[url, { mime: 'image/png', base64: 'AAAA' }]]) })
  const inline = { inlineData: { mimeType: 'image/png', data: 'AAAA' } }

  test('an address is held, or refused', () => {
    expect(contentsOf([user(image)], held).contents[0]).toMatchObject({ parts: [inline] })
    expect(() => contentsOf([user(image)])).toThrow('media_unreachable')
  })

  const asked: readonly (readonly [string, boolean])[] = [
    [url, true],
    ['http://x.example/a', true],
    ['HTTPS://generativelanguage.googleapis.com.evil.example/', true],
    ['https://generativelanguage.googleapis.com/v1beta/files/x', false],
    ['gs://bucket/x', false],
    ['https://youtu.be/x', false],
  ]
  test.each(asked)('%s must be fetched: %p', (address, wanted) => {
    expect(needsInline({ at: 'url', url: address })).toBe(wanted)
    expect(needsInline({ at: 'provider', id: address })).toBe(false)
  })

  test('files of Google by their address, of others not at all', () => {
    const file = (id: string): Turn => user({ kind: 'file', source: { at: 'provider', id, mime: 'a/b' } })
    expect(contentsOf([file('gs://b/x')]).contents[0]).toMatchObject({ parts: [{ fileData: { fileUri: 'gs://b/x' } }] })
    expect(() => contentsOf([file('file-123')])).toThrow(Refusal)
  })

  test('what the model does not read is refused', () => {
    expect(() => contentsOf([user(image)], { ...held, traits: { reads: ['text'] } })).toThrow('field_invalid')
  })

  test('in a result, or behind it where the model cannot', () => {
    const rich = result('x', 'see', { parts: [{ kind: 'text', text: 'see' }, image] })
    const inside = contentsOf([hi, model(call('x')), tool(rich)], held).contents
    expect(inside[2]).toMatchObject({ parts: [{ functionResponse: { response: { output: 'see' }, parts: [inline] } }] })
    const behind = contentsOf([hi, model(call('x')), tool(rich)], { ...held, traits: { richResults: false } }).contents
    expect(behind.slice(2)).toMatchObject([{ parts: [{ functionResponse: {} }] }, { parts: [inline] }])
  })

  test('one resolution for all', () => {
    const of = (detail: 'low' | 'high'): Part => ({ ...image, detail })
    expect(written({ turns: [user(of('low'))] }, held).body.generationConfig).toEqual({
      mediaResolution: 'MEDIA_RESOLUTION_LOW',
    })
    expect(written({ turns: [user(of('low'), of('high'))] }, held).losses).toContain('image.detail')
  })
})

describe('tools', () => {
  const f: FunctionTool = { kind: 'function', name: 'f', description: 'd', schema: { type: 'object', properties: { a: {} } } }

  test('P27: schemas are JSON Schema, without what Google does not take', () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { const: { const: 'x', $comment: 'c' }, $schema: { anyOf: [{ const: 1 }] } },
      additionalProperties: false,
    }
    const { body } = written({ tools: [{ kind: 'function', name: 'f', schema }, { kind: 'function', name: 'g', schema: { type: 'object', properties: {} } }] })
    expect(body.tools).toEqual([
      {
        functionDeclarations: [
          {
            name: 'f',
            parametersJsonSchema: {
              type: 'object',
              properties: { const: { enum: ['x'] }, $schema: { anyOf: [{ enum: [1] }] } },
              additionalProperties: false,
            },
          },
          { name: 'g' },
        ],
      },
    ])
  })

  test('a search with its losses, a free text as a function, and what is not ours', () => {
    const target = aim()
    const { body, losses } = written(
      {
        tools: [
          { kind: 'search', domains: ['x.example'] },
          { kind: 'custom', name: 'c', grammar: { syntax: 'lark', definition: 'start: X' } },
          { kind: 'native', dialect: 'gemini', what: 'codeExecution', value: { codeExecution: {} } },
          { kind: 'native', dialect: 'other', what: 'bash', value: {} },
        ],
      },
      target,
    )
    expect(body.tools).toMatchObject([{ functionDeclarations: [{ name: 'c' }] }, { googleSearch: {} }, { codeExecution: {} }])
    expect(losses).toEqual(['web_search.domains', 'tools.grammar', 'bash'])
    expect(target.notes.wrapped).toEqual(new Set(['c']))
  })

  test('names that Google does not take are renamed, everywhere the same', () => {
    const target = aim()
    const tools = ['1st tool', '_1st_tool', 'ok'].map(name => ({ ...f, name }))
    const turns = [hi, model(call('x', '1st tool')), tool(result('x'))]
    const { body } = written({ tools, turns, toolChoice: { mode: 'required', names: ['1st tool'] } }, target)
    expect(JSON.stringify(body)).not.toContain('1st tool')
    expect([...target.notes.renamed]).toEqual([['_1st_tool_2', '1st tool']])
    expect(body.toolConfig).toEqual({
      functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['_1st_tool_2'] },
    })
  })

  type Choice = readonly [Partial<Conversation>, Traits, object | undefined, readonly string[]]
  const strict = { ...f, strict: true }
  const choices: readonly Choice[] = [
    [{ tools: [f] }, {}, undefined, []],
    [{ tools: [strict] }, {}, { mode: 'VALIDATED' }, []],
    [{ tools: [f], toolChoice: { mode: 'auto' } }, {}, { mode: 'AUTO' }, []],
    [{ tools: [f], toolChoice: { mode: 'none' } }, {}, { mode: 'NONE' }, []],
    [{ tools: [f], toolChoice: { mode: 'required' } }, {}, { mode: 'ANY' }, []],
    [{ tools: [f], toolChoice: { mode: 'required' } }, { forcedTool: false }, { mode: 'AUTO' }, ['tool_choice']],
    [{ tools: [f], toolChoice: { mode: 'auto', names: ['f'] } }, {}, { mode: 'VALIDATED', allowedFunctionNames: ['f'] }, []],
    [{ tools: [], toolChoice: { mode: 'required' } }, {}, undefined, []],
    [{ tools: [f], parallelCalls: false }, {}, undefined, ['parallel_tool_calls']],
  ]
  test.each(choices)('%j', (more, traits, wanted, lost) => {
    const { body, losses } = written(more, aim(traits))
    const config = body.toolConfig as { functionCallingConfig: object } | undefined
    expect([config?.functionCallingConfig, losses]).toEqual([wanted, lost])
  })
})

describe('the answer is held to a schema', () => {
  const schema = { type: 'object', properties: { a: { const: 1 } } }
  const format = { kind: 'schema', schema } as const
  const f = { kind: 'function', name: 'f' } as const

  test('natively', () => {
    expect(written({ format }).body.generationConfig).toEqual({
      responseMimeType: 'application/json',
      responseJsonSchema: { type: 'object', properties: { a: { enum: [1] } } },
    })
    expect(written({ format: { kind: 'json' } }).body.generationConfig).toEqual({ responseMimeType: 'application/json' })
    expect(written({ format }, aim({ schema: false })).losses).toEqual(['response_format.schema'])
  })

  test('by a tool, where a model cannot have both', () => {
    const target = aim({ schemaWithTools: false })
    const { body, losses } = written({ format, tools: [f] }, target)
    expect(body.generationConfig).toBeUndefined()
    expect(body.tools).toMatchObject([{ functionDeclarations: [{ name: 'f' }, { name: 'give_answer' }] }])
    expect(body.toolConfig).toEqual({ functionCallingConfig: { mode: 'ANY' } })
    expect([target.notes.schemaTool, losses]).toEqual(['give_answer', []])
    expect(written({ format: { kind: 'json' }, tools: [f] }, aim({ schemaWithTools: false })).losses).toEqual(['response_format'])
  })
})

describe('settings', () => {
  test('all of them', () => {
    const settings = {
      ...{ outputTokensMax: 100, temperature: 0.5, topP: 0.9, topK: 40, stop: ['x'], seed: 7, choices: 2, logprobs: 3 },
      ...{ frequencyPenalty: 0.1, presencePenalty: 0.2, serviceClass: 'default', stream: true },
    }
    const { body, losses } = written({ settings })
    expect(body.generationConfig).toEqual({
      ...{ maxOutputTokens: 100, temperature: 0.5, topP: 0.9, topK: 40, stopSequences: ['x'], seed: 7 },
      ...{ candidateCount: 2, responseLogprobs: true, logprobs: 3, frequencyPenalty: 0.1, presencePenalty: 0.2 },
    })
    expect([body.serviceTier, losses]).toEqual(['standard', []])
  })

  test('what there is no place for is said', () => {
    const settings = {
      verbosity: 'low',
      ...{ logitBias: { 1: 1 }, endUser: 'u', metadata: { a: 'b' }, cacheKey: 'k', cache: {} },
      ...{ serviceClass: 'ultrafast', temperature: 1, stop: ['1', '2', '3', '4', '5', '6'], stream: false },
    } as const
    const { losses } = written({ settings, turns: [{ ...hi, name: 'bob' }] }, aim({ sampling: false }))
    expect([...losses].sort()).toEqual([
      ...['cache_control', 'logit_bias', 'metadata', 'name', 'prompt_cache_key', 'service_tier', 'stop'],
      ...['temperature', 'user', 'verbosity'],
    ])
  })

  const caps: readonly (readonly [number | undefined, number | undefined, number | undefined, number | undefined])[] = [
    [undefined, undefined, 50, undefined],
    [100, undefined, 50, 50],
    [100, 20, 50, 20],
    [10, 20, 50, 10],
    [undefined, 20, 50, 20],
  ]
  test.each(caps)('asked for %p, funds for %p, model writes %p: %p', (own, cap, most, wanted) => {
    const settings = own === undefined ? { stream: false } : { stream: false, outputTokensMax: own }
    const { body } = written({ settings }, aim({}, { cap, outputTokensMax: most }))
    expect((body.generationConfig as Body | undefined)?.maxOutputTokens).toBe(wanted as number)
  })

  type Thought = readonly [NonNullable<Conversation['reasoning']>, Traits, object | undefined]
  const budget: Traits = { thinking: 'budget', budgetMin: 128, budgetMax: 32_768 }
  const thoughts: readonly Thought[] = [
    [{ effort: 'none' }, { thinking: 'level' }, { thinkingLevel: 'MINIMAL' }],
    [{ effort: 'minimal' }, { thinking: 'level', efforts: ['low', 'high'] }, { thinkingLevel: 'LOW' }],
    [{ effort: 'max', show: 'auto' }, { thinking: 'level' }, { thinkingLevel: 'HIGH', includeThoughts: true }],
    [{ budget: 4_000 }, { thinking: 'level' }, { thinkingLevel: 'MEDIUM' }],
    [{ adaptive: true }, { thinking: 'level' }, undefined],
    [{ effort: 'low' }, budget, { thinkingBudget: 6_553 }],
    [{ effort: 'max' }, budget, { thinkingBudget: 32_768 }],
    [{ budget: 1 }, budget, { thinkingBudget: 128 }],
    [{ effort: 'none' }, budget, { thinkingBudget: 0 }],
    [{ budget: 0 }, { ...budget, stopsThinking: false }, { thinkingBudget: 128 }],
    [{ adaptive: true, show: 'none' }, budget, { thinkingBudget: -1 }],
    [{ effort: 'high' }, { thinking: 'none' }, undefined],
    [{ effort: 'high' }, {}, { thinkingLevel: 'HIGH' }],
    [{ budget: 99 }, {}, { thinkingBudget: 99 }],
  ]
  test.each(thoughts)('thinking %j %j', (reasoning, traits, wanted) => {
    const { body } = written({ reasoning }, aim(traits))
    expect((body.generationConfig as Body | undefined)?.thinkingConfig as object | undefined).toEqual(wanted)
  })
})

test('what is written means what was meant', () => {
  const asked = { path: '/v1beta/models/a/b:generateContent', query: () => null, header: () => undefined }
  const body = {
    systemInstruction: { parts: [{ text: 'be kind' }] },
    contents: [
      { role: 'user', parts: [{ text: 'hi' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }] },
      {
        role: 'model',
        parts: [
          { text: 'hm', thought: true, thoughtSignature: 'AbCd' },
          { text: 'yes' },
          { functionCall: { id: 'c', name: 'f', args: { a: 1 } }, thoughtSignature: 'EfGh' },
        ],
      },
      { role: 'user', parts: [{ functionResponse: { id: 'c', name: 'f', response: { output: 'ok' } } }] },
    ],
    tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: { type: 'object', properties: { a: {} } } }] }],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f'] } },
    generationConfig: { temperature: 1, thinkingConfig: { thinkingLevel: 'LOW', includeThoughts: true } },
    serviceTier: 'flex',
  }
  const meant = readConversation(readCall(Buffer.from(JSON.stringify(body)), asked))
  expect(JSON.parse(writeConversation(meant, aim()))).toEqual(body)
})
