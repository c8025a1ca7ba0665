// Tests the request that is written for Google.

import { describe, expect, test } from 'bun:test'
import { targetOf } from '../../../test/support/translation.ts'
import type { ModelTraits } from '../../base/money/model-traits.ts'
import type { Conversation, ConversationMessage, ConversationPart, FunctionTool } from '../neutral/conversation.ts'
import type { ConversationTarget } from '../protocol.ts'
import { readConversation } from './read-conversation.ts'
import { readCall } from './request.ts'
import { writeConversation } from './write-conversation.ts'

type Body = Readonly<Record<string, unknown>>

const greeting: ConversationMessage = { role: 'user', parts: [{ kind: 'text', text: 'hi' }] }
const conversationWith = (more: Partial<Conversation>): Conversation => ({
  messages: [greeting],
  tools: [],
  settings: { stream: false },
  lostFields: [],
  ...more,
})
const targetFor = (traits: ModelTraits = {}, more: Partial<ConversationTarget> = {}): ConversationTarget =>
  targetOf({ model: 'up', origin: 'here', traits, ...more })

function writeWith(more: Partial<Conversation>, target = targetFor()): { body: Body; losses: readonly string[] } {
  const body = JSON.parse(writeConversation(conversationWith(more), target)) as Body
  return { body, losses: target.notes.losses.codes }
}
const model = (...parts: readonly ConversationPart[]): ConversationMessage => ({ role: 'assistant', parts })
const call = (id: string, name = 'f', more: object = {}): ConversationPart => ({
  kind: 'call',
  id,
  name,
  arguments: '{"a":1}',
  ...more,
})
const result = (callId: string, content = 'ok', more: object = {}): ConversationPart => ({
  kind: 'result',
  callId,
  parts: [{ kind: 'text', text: content }],
  ...more,
})
const tool = (...parts: readonly ConversationPart[]): ConversationMessage => ({ role: 'tool', parts })

describe('tools are written:', () => {
  const f: FunctionTool = { kind: 'function', name: 'f', schema: { type: 'object', properties: { a: {} } } }

  test('P27: schemas are JSON Schema, without fields that Google refuses', () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { const: { const: 'x', $comment: 'c' }, $schema: { anyOf: [{ const: 1 }] } },
      additionalProperties: false,
    }
    const empty = { ...f, name: 'g', schema: { type: 'object', properties: {} } }
    const { body } = writeWith({ tools: [{ kind: 'function', name: 'f', schema }, empty] })
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

  test('a search with its losses, a custom tool as a function, and native tools of other dialects', () => {
    const target = targetFor({ serverToolsWithFunctions: true })
    const { body, losses } = writeWith(
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
    const [functions, ...others] = body.tools as readonly object[]
    expect(functions).toMatchObject({ functionDeclarations: [{ name: 'c' }] })
    expect(others).toEqual([{ googleSearch: {} }, { codeExecution: {} }])
    expect(losses).toEqual(['web_search.domains', 'tools.grammar', 'bash'])
    expect(target.notes.wrapped).toEqual(new Set(['c']))
    const withoutSearch = writeWith({ tools: [{ kind: 'search' }] }, targetFor({ searches: false }))
    expect([withoutSearch.body.tools, withoutSearch.losses]).toEqual([undefined, ['web_search']])
  })

  describe('functions beside tools of the provider', () => {
    const search = { kind: 'search', domains: ['x.example'] } as const
    const code = { kind: 'native', dialect: 'gemini', what: 'codeExecution', value: { codeExecution: {} } } as const
    const computer = { kind: 'native', dialect: 'gemini', what: 'computerUse', value: { computerUse: {} } } as const
    const kindsOf = ({ tools }: Body) => (tools as readonly object[]).flatMap(written => Object.keys(written))

    test('are sent alone if the model cannot have both', () => {
      const { body, losses } = writeWith({ tools: [search, code, computer, f] })
      expect(kindsOf(body)).toEqual(['functionDeclarations', 'computerUse'])
      expect([body.toolConfig, losses]).toEqual([undefined, ['web_search', 'codeexecution']])
      const alone = writeWith({ tools: [search, code] })
      expect([kindsOf(alone.body), alone.losses]).toEqual([['googleSearch', 'codeExecution'], ['web_search.domains']])
    })

    test.each<readonly [Conversation['toolChoice'], string]>([
      [undefined, 'VALIDATED'],
      [{ mode: 'auto' }, 'VALIDATED'],
      [{ mode: 'required' }, 'ANY'],
      [{ mode: 'none' }, 'NONE'],
    ])('are asked for with a flag if the model can have both: %j', (toolChoice, mode) => {
      const tools = [f, code, { kind: 'search' } as const]
      const can = targetFor({ serverToolsWithFunctions: true })
      const { body, losses } = writeWith({ tools, ...(toolChoice && { toolChoice }) }, can)
      expect(kindsOf(body)).toEqual(['functionDeclarations', 'codeExecution', 'googleSearch'])
      const expected = { functionCallingConfig: { mode }, includeServerSideToolInvocations: true }
      expect([body.toolConfig, losses]).toEqual([expected, []])
    })

    test('need no flag if there is only one kind', () => {
      for (const tools of [[f], [code], [f, computer]]) {
        expect(writeWith({ tools }, targetFor({ serverToolsWithFunctions: true })).body.toolConfig).toBeUndefined()
      }
    })
  })

  test('names that Google refuses are replaced, everywhere by the same name', () => {
    const target = targetFor()
    const tools = ['1st tool', '_1st_tool', 'ok'].map(name => ({ ...f, name }))
    const messages = [greeting, model(call('x', '1st tool')), tool(result('x'))]
    const { body } = writeWith({ tools, messages, toolChoice: { mode: 'required', names: ['1st tool'] } }, target)
    expect(JSON.stringify(body)).not.toContain('1st tool')
    expect([...target.notes.renamed]).toEqual([['_1st_tool_2', '1st tool']])
    expect(body.toolConfig).toEqual({
      functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['_1st_tool_2'] },
    })
  })

  type Choice = readonly [Partial<Conversation>, ModelTraits, object | undefined, readonly string[]]
  const strict = { ...f, strict: true }
  const only = { allowedFunctionNames: ['f'] }
  const choices: readonly Choice[] = [
    [{ tools: [f] }, {}, undefined, []],
    [{ tools: [strict] }, {}, { mode: 'VALIDATED' }, []],
    [{ tools: [f], toolChoice: { mode: 'auto' } }, {}, { mode: 'AUTO' }, []],
    [{ tools: [f], toolChoice: { mode: 'none' } }, {}, { mode: 'NONE' }, []],
    [{ tools: [f], toolChoice: { mode: 'required' } }, {}, { mode: 'ANY' }, []],
    [{ tools: [f], toolChoice: { mode: 'required' } }, { forcedTool: false }, { mode: 'AUTO' }, ['tool_choice']],
    [{ tools: [f], toolChoice: { mode: 'auto', names: ['f'] } }, {}, { mode: 'VALIDATED', ...only }, []],
    [{ tools: [], toolChoice: { mode: 'required' } }, {}, undefined, ['tool_choice']],
    [{ tools: [f], parallelCalls: false }, {}, undefined, ['parallel_tool_calls']],
  ]
  test.each(choices)('choice %j', (more, traits, ...[expected, expectedLosses]) => {
    const { body, losses } = writeWith(more, targetFor(traits))
    const config = body.toolConfig as { functionCallingConfig: object } | undefined
    expect([config?.functionCallingConfig, losses]).toEqual([expected, expectedLosses])
  })
})

describe('a schema of the answer is requested', () => {
  const schema = { type: 'object', properties: { a: { const: 1 } } }
  const format = { kind: 'schema', schema } as const
  const f = { kind: 'function', name: 'f' } as const

  test('by the setting of Google', () => {
    expect(writeWith({ format }).body.generationConfig).toEqual({
      responseMimeType: 'application/json',
      responseJsonSchema: { type: 'object', properties: { a: { enum: [1] } } },
    })
    const described = writeWith({ format: { ...format, description: 'a map' } })
    expect(described.body.generationConfig).toMatchObject({ responseJsonSchema: { description: 'a map' } })
    const json = writeWith({ format: { kind: 'json' } })
    expect(json.body.generationConfig).toEqual({ responseMimeType: 'application/json' })
    expect(writeWith({ format }, targetFor({ schema: false })).losses).toEqual(['response_format.schema'])
  })

  test('by a tool, if the model does not take a schema together with tools', () => {
    const target = targetFor({ schemaWithTools: false })
    const { body, losses } = writeWith({ format, tools: [f] }, target)
    expect(body.generationConfig).toBeUndefined()
    expect(body.tools).toMatchObject([{ functionDeclarations: [{ name: 'f' }, { name: 'give_answer' }] }])
    expect(body.toolConfig).toEqual({ functionCallingConfig: { mode: 'ANY' } })
    expect([target.notes.schemaTool, losses]).toEqual(['give_answer', []])
    const json = writeWith({ format: { kind: 'json' }, tools: [f] }, targetFor({ schemaWithTools: false }))
    expect(json.losses).toEqual(['response_format'])
  })
})

describe('settings are written:', () => {
  test('each setting', () => {
    const settings = {
      outputTokensMax: 100,
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      stop: ['x'],
      seed: 7,
      choices: 2,
      logprobs: 3,
      frequencyPenalty: 0.1,
      presencePenalty: 0.2,
      serviceClass: 'default',
      stream: true,
    }
    const { body, losses } = writeWith({ settings })
    expect(body.generationConfig).toEqual({
      maxOutputTokens: 100,
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      stopSequences: ['x'],
      seed: 7,
      candidateCount: 2,
      responseLogprobs: true,
      logprobs: 3,
      frequencyPenalty: 0.1,
      presencePenalty: 0.2,
    })
    expect([body.serviceTier, losses]).toEqual(['standard', []])
  })

  test.each([
    [2 ** 31 - 1, 2 ** 31 - 1],
    [-5, -5],
    [2 ** 32 - 1, -1],
    [2 ** 40 + 7, 7],
  ])('the seed %d as 32 bits: %d', (seed, written) => {
    const { body, losses } = writeWith({ settings: { seed, stream: false } })
    expect([body.generationConfig, losses]).toEqual([{ seed: written }, []])
  })

  test('settings that Google does not have are losses', () => {
    const settings = {
      verbosity: 'low',
      logitBias: { 1: 1 },
      endUser: 'u',
      metadata: { a: 'b' },
      cacheKey: 'k',
      cache: {},
      serviceClass: 'ultrafast',
      temperature: 0.5,
      stop: ['1', '2', '3', '4', '5', '6'],
      stream: false,
    } as const
    const { losses } = writeWith({ settings, messages: [{ ...greeting, name: 'bob' }] }, targetFor({ sampling: false }))
    expect([...losses].sort()).toEqual([
      'cache_control',
      'logit_bias',
      'metadata',
      'name',
      'prompt_cache_key',
      'service_tier',
      'stop',
      'temperature',
      'user',
      'verbosity',
    ])
  })

  test('caching only up to breakpoints is a loss', () => {
    expect(writeWith({ settings: { stream: false, cache: 'breakpoints' } }).losses).toEqual(['prompt_cache_options'])
  })

  test('the name of instructions is a loss', () => {
    for (const role of ['system', 'developer'] as const) {
      const named: ConversationMessage = { role, name: 'bob', parts: [{ kind: 'text', text: 'be brief' }] }
      expect(writeWith({ messages: [named, greeting] }).losses).toEqual(['name'])
    }
  })

  const caps: readonly (readonly [number | undefined, number | undefined, number | undefined, number | undefined])[] = [
    [undefined, undefined, 50, undefined],
    [100, undefined, 50, 50],
    [100, 20, 50, 20],
    [10, 20, 50, 10],
    [undefined, 20, 50, 20],
  ]
  test.each(caps)(
    'the cap, with %p requested, %p covered by funds and %p as the maximum of the model: %p',
    (own, cap, ...[modelMax, expected]) => {
      const settings = own === undefined ? { stream: false } : { stream: false, outputTokensMax: own }
      const { body } = writeWith({ settings }, targetFor({}, { cap, outputTokensMax: modelMax }))
      expect((body.generationConfig as Body | undefined)?.maxOutputTokens).toBe(expected as number)
    },
  )

  type ThinkingCase = readonly [NonNullable<Conversation['reasoning']>, ModelTraits, object | undefined]
  const budget: ModelTraits = { thinking: 'budget', budgetMin: 128, budgetMax: 32_768 }
  const thinkingCases: readonly ThinkingCase[] = [
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
  test.each(thinkingCases)('thinking %j %j', (reasoning, traits, expected) => {
    const { body } = writeWith({ reasoning }, targetFor(traits))
    expect((body.generationConfig as Body | undefined)?.thinkingConfig as object | undefined).toEqual(expected)
  })

  const always: ModelTraits = { stopsThinking: false }
  const alwaysCases: readonly ThinkingCase[] = [
    [{ effort: 'none' }, { ...always, thinking: 'level', efforts: ['low', 'high'] }, { thinkingLevel: 'LOW' }],
    [{ effort: 'none' }, { ...always, thinking: 'level', efforts: ['minimal'] }, { thinkingLevel: 'MINIMAL' }],
    [{ effort: 'none' }, { ...always, ...budget }, { thinkingBudget: 128 }],
    [{ budget: 0 }, { ...always, ...budget }, { thinkingBudget: 128 }],
  ]
  test.each(alwaysCases)('%j is a loss if the model cannot stop thinking: %j', (reasoning, traits, expected) => {
    const { body, losses } = writeWith({ reasoning }, targetFor(traits))
    expect([(body.generationConfig as Body).thinkingConfig, losses]).toEqual([expected, ['reasoning']])
    const { stopsThinking: _never, ...others } = traits
    expect(writeWith({ reasoning }, targetFor(others)).losses).toEqual([])
    expect(writeWith({ reasoning: { effort: 'low' } }, targetFor(traits)).losses).toEqual([])
  })
})

test('a written request is read back as the same conversation', () => {
  const head = { path: '/v1beta/models/a/b:generateContent', query: () => null, header: () => undefined }
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
  const conversation = readConversation(readCall(Buffer.from(JSON.stringify(body)), head))
  expect(JSON.parse(writeConversation(conversation, targetFor()))).toEqual(body)
})
