// Tests how a request is read into a conversation, field by field, and which fields are recorded as losses.

import { describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import fc from 'fast-check'
import { expectCheap } from '../../../test/support/cpu.ts'
import { Refusal } from '../../base/errors.ts'
import type { Conversation, ConversationPart } from '../neutral/conversation.ts'
import { packReasoningState } from '../neutral/reasoning-state.ts'
import type { RequestHead } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import { packCallState, UNSIGNED_STATE } from './packed-state.ts'
import { readConversation } from './read-conversation.ts'
import { readCall } from './request.ts'

const requestHead: RequestHead = { path: '/v1/messages', query: () => null, header: () => undefined }
const base = { model: 'a/b', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] }
const read = (fields: object): Conversation =>
  readConversation(readCall(Buffer.from(JSON.stringify({ ...base, ...fields })), requestHead))
const messagesOf = (...messages: object[]) => read({ messages }).messages
const partsOf = (role: string, ...content: object[]): readonly ConversationPart[] => {
  const [message] = read({ messages: [{ role, content }] }).messages
  return message?.parts ?? []
}

describe('messages', () => {
  test('of plain text are read', () => {
    expect(read({})).toEqual({
      messages: [{ role: 'user', parts: [{ kind: 'text', text: 'hi' }] }],
      tools: [],
      settings: { outputTokensMax: 10, stream: false },
      lostFields: [],
    })
  })

  test('system messages keep their position', () => {
    const system = [{ type: 'text', text: 's', cache_control: { type: 'ephemeral', ttl: '1h' } }]
    const messages = [...base.messages, { role: 'system', content: 'now this' }]
    expect(read({ system, messages }).messages).toEqual([
      { role: 'system', parts: [{ kind: 'text', text: 's', cache: { ttl: '1h' } }] },
      { role: 'user', parts: [{ kind: 'text', text: 'hi' }] },
      { role: 'system', parts: [{ kind: 'text', text: 'now this' }] },
    ])
    expect(read({ system: 's' }).messages[0]).toEqual({ role: 'system', parts: [{ kind: 'text', text: 's' }] })
    expect(read({ system: '' }).messages.length).toBe(1)
  })

  test('tool results are messages of their own, before the text of the user', () => {
    const content = [
      { type: 'text', text: 'and then?' },
      { type: 'tool_result', tool_use_id: 'x', content: 'y', is_error: true },
      { type: 'tool_result', tool_use_id: 'z' },
    ]
    const calls = [{ type: 'tool_use', id: 'x', name: 'f', input: { a: [1] } }]
    expect(messagesOf({ role: 'assistant', content: calls }, { role: 'user', content })).toEqual([
      { role: 'assistant', parts: [{ kind: 'call', id: 'x', name: 'f', arguments: '{"a":[1]}' }] },
      {
        role: 'tool',
        parts: [
          { kind: 'result', callId: 'x', name: 'f', parts: [{ kind: 'text', text: 'y' }], failed: true },
          { kind: 'result', callId: 'z', parts: [] },
        ],
      },
      { role: 'user', parts: [{ kind: 'text', text: 'and then?' }] },
    ])
  })
})

const png = { type: 'base64', media_type: 'image/png', data: 'AAAA' }
const text = (value: string) => ({ type: 'text', text: value })

describe('a block is read:', () => {
  test.each<readonly [string, object, readonly object[]]>([
    ['an empty text', text(''), []],
    [
      'an image',
      { type: 'image', source: png },
      [{ kind: 'image', source: { at: 'inline', base64: 'AAAA', mime: 'image/png' } }],
    ],
    [
      'an image at a URL',
      { type: 'image', source: { type: 'url', url: 'https://x' }, cache_control: null },
      [{ kind: 'image', source: { at: 'url', url: 'https://x' } }],
    ],
    [
      'an image at the provider',
      { type: 'image', source: { type: 'file', file_id: 'f' } },
      [{ kind: 'image', source: { at: 'provider', id: 'f' } }],
    ],
    [
      'a document',
      { type: 'document', title: 't', source: { type: 'text', media_type: 'text/plain', data: 'd' } },
      [{ kind: 'file', name: 't', source: { at: 'text', text: 'd', mime: 'text/plain' } }],
    ],
    [
      'a document of blocks',
      { type: 'document', source: { type: 'content', content: [text('a'), text('b')] } },
      [{ kind: 'file', source: { at: 'text', text: 'a\nb', mime: 'text/plain' } }],
    ],
    [
      'a search result',
      { type: 'search_result', source: 'https://x', title: 't', content: [text('a')] },
      [{ kind: 'file', name: 't', source: { at: 'text', text: 'https://x\n\na', mime: 'text/plain' } }],
    ],
    [
      'a document whose blocks have marks for the cache',
      {
        type: 'document',
        source: { type: 'content', content: [{ ...text('a'), cache_control: { type: 'ephemeral', ttl: '1h' } }] },
      },
      [{ kind: 'file', source: { at: 'text', text: 'a', mime: 'text/plain' }, cache: { ttl: '1h' } }],
    ],
    [
      'a search result whose text has a mark for the cache',
      { type: 'search_result', source: 's', content: [{ ...text('a'), cache_control: { type: 'ephemeral' } }] },
      [{ kind: 'file', source: { at: 'text', text: 's\n\na', mime: 'text/plain' }, cache: {} }],
    ],
    [
      'a tool result with an image',
      { type: 'tool_result', tool_use_id: 'x', content: [{ type: 'image', source: png }] },
      [
        {
          kind: 'result',
          callId: 'x',
          parts: [{ kind: 'image', source: { at: 'inline', base64: 'AAAA', mime: 'image/png' } }],
        },
      ],
    ],
    [
      'a tool result with a tool that was found',
      { type: 'tool_result', tool_use_id: 'x', content: [{ type: 'tool_reference', tool_name: 'f' }] },
      [{ kind: 'result', callId: 'x', parts: [{ kind: 'text', text: 'The tool f is available.' }] }],
    ],
    [
      'a block that only this dialect has',
      { type: 'container_upload', file_id: 'f' },
      [
        {
          kind: 'native',
          dialect: 'anthropic-messages',
          what: 'container_upload',
          value: { type: 'container_upload', file_id: 'f' },
        },
      ],
    ],
  ])('%s', (_name, block, parts) => {
    expect(partsOf('user', block) as readonly object[]).toEqual([...parts])
  })

  const sealed = { origin: 'o', form: 'encrypted', value: 'v' } as const
  test.each<readonly [string, object, readonly object[]]>([
    [
      'thinking',
      { type: 'thinking', thinking: 't', signature: 's' },
      [{ kind: 'reasoning', text: 't', sealed: { form: 'signature', value: 's' } }],
    ],
    [
      'redacted thinking',
      { type: 'redacted_thinking', data: 'd' },
      [{ kind: 'reasoning', text: '', sealed: { form: 'redacted', value: 'd' } }],
    ],
    [
      'thinking of another provider',
      { type: 'thinking', thinking: 't', signature: packReasoningState(sealed) },
      [{ kind: 'reasoning', text: 't', sealed }],
    ],
    [
      'redacted thinking of another provider',
      { type: 'redacted_thinking', data: packReasoningState({ ...sealed, id: 'rs' }) },
      [{ kind: 'reasoning', text: '', sealed: { ...sealed, id: 'rs' } }],
    ],
    [
      'unsigned thinking',
      { type: 'thinking', thinking: 't', signature: UNSIGNED_STATE },
      [{ kind: 'reasoning', text: 't' }],
    ],
    ['invalid reasoning state', { type: 'redacted_thinking', data: 'd2VpcjF7!!' }, []],
    ['a summary of the conversation', { type: 'compaction', content: 'so far' }, [{ kind: 'text', text: 'so far' }]],
    [
      'text with citations',
      { ...text('x'), citations: [{ type: 'web_search_result_location', url: 'u', title: null, cited_text: 'c' }] },
      [{ kind: 'text', text: 'x', citations: [{ url: 'u', citedText: 'c' }] }],
    ],
  ])('of the model: %s', (_name, block, parts) => {
    expect(partsOf('assistant', block) as readonly object[]).toEqual([...parts])
  })

  test('the reasoning state of a tool call is attached to the call', () => {
    const state = { type: 'redacted_thinking', data: packCallState({ ...sealed, form: 'thought' }, 'b') }
    const call = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} })
    expect(partsOf('assistant', call('a'), call('b'), state)).toEqual([
      { kind: 'call', id: 'a', name: 'f', arguments: '{}' },
      { kind: 'call', id: 'b', name: 'f', arguments: '{}', sealed: { ...sealed, form: 'thought' } },
    ])
  })
})

describe('settings are read', () => {
  test.each<readonly [string, object, object]>([
    ['a budget', { thinking: { type: 'enabled', budget_tokens: 2000 } }, { budget: 2000, show: 'auto' }],
    ['adaptive', { thinking: { type: 'adaptive', display: 'omitted' } }, { adaptive: true, show: 'none' }],
    ['an effort', { output_config: { effort: 'max' } }, { effort: 'max' }],
    [
      'adaptive with an effort',
      { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
      {
        adaptive: true,
        effort: 'low',
        show: 'auto',
      },
    ],
    ['off', { thinking: { type: 'disabled' } }, { effort: 'none' }],
    ['between tools', { thinking: { type: 'between_tools' } }, { adaptive: true, show: 'auto' }],
  ])('for thinking: %s', (_name, fields, reasoning) => {
    expect(read(fields).reasoning).toEqual(reasoning as Conversation['reasoning'] & object)
  })

  test.each<readonly [object, object]>([
    [{ type: 'auto' }, { toolChoice: { mode: 'auto' } }],
    [
      { type: 'any', disable_parallel_tool_use: true },
      { toolChoice: { mode: 'required' }, parallelCalls: false },
    ],
    [{ type: 'tool', name: 'f' }, { toolChoice: { mode: 'required', names: ['f'] } }],
    [{ type: 'none' }, { toolChoice: { mode: 'none' } }],
  ])('for the tool choice: %p', (choice, expected) => {
    const { toolChoice, parallelCalls } = read({ tool_choice: choice })
    expect({ toolChoice, ...(parallelCalls !== undefined && { parallelCalls }) }).toEqual(expected as never)
  })

  test.each<readonly [string, string, readonly string[], object | undefined, readonly string[]]>([
    ['a search that is the only tool', 'web_search', ['web_search'], { mode: 'required' }, []],
    ['a search beside a function', 'web_search', ['f', 'web_search'], undefined, ['tool_choice']],
    ['a function beside a search', 'f', ['f', 'web_search'], { mode: 'required', names: ['f'] }, []],
    ['another tool of the provider', 'bash', ['bash'], undefined, ['tool_choice']],
  ])('for a forced tool: %s', (_name, chosen, names, expected, lost) => {
    const types: Json = { web_search: 'web_search_20250305', bash: 'bash_20250124' }
    const tools = names.map(name => (name === 'f' ? { name, input_schema: {} } : { name, type: types[name] }))
    const { toolChoice, lostFields } = read({ tools, tool_choice: { type: 'tool', name: chosen } })
    expect<unknown>([toolChoice, lostFields]).toEqual([expected, lost])
  })

  test('for tools', () => {
    const schema = { type: 'object', properties: {} }
    const search = {
      type: 'web_search_20250305',
      name: 'web_search',
      allowed_domains: ['x.org'],
      max_uses: 2,
      user_location: { type: 'approximate', city: 'Paris', timezone: 'Europe/Paris' },
    }
    const bash = { type: 'bash_20250124', name: 'bash' }
    const described = { name: 'f', description: 'd', strict: true }
    const own = { ...described, input_schema: schema, cache_control: { type: 'ephemeral' } }
    expect(read({ tools: [own, search, bash] }).tools).toEqual([
      { kind: 'function', name: 'f', description: 'd', schema, strict: true, cache: {} },
      { kind: 'search', domains: ['x.org'], usesMax: 2, location: { city: 'Paris', zone: 'Europe/Paris' } },
      { kind: 'native', dialect: 'anthropic-messages', what: 'tools.bash_20250124', value: bash },
    ])
  })

  test('for format, sampling, stops, cache and service class', () => {
    const schema = { type: 'object' }
    const format = { type: 'json_schema', schema }
    expect(read({ output_config: { format } }).format).toEqual({ kind: 'schema', schema, strict: true })
    expect(read({ output_format: format }).format).toEqual({ kind: 'schema', schema, strict: true })
    const fields = { temperature: 0, top_p: 0.5, top_k: 3, stop_sequences: ['x'], metadata: { user_id: 'u' } }
    const more = { service_tier: 'standard_only', cache_control: { type: 'ephemeral' }, stream: true }
    const { settings } = read({ ...fields, ...more })
    expect(settings).toEqual({
      outputTokensMax: 10,
      temperature: 0,
      topP: 0.5,
      topK: 3,
      stop: ['x'],
      endUser: 'u',
      stream: true,
      serviceClass: 'default',
      cache: {},
    })
    expect(read({ speed: 'fast' }).settings.serviceClass).toBe('fast')
  })
})

describe('a loss', () => {
  type Create = Anthropic.MessageCreateParams
  type Beta = Anthropic.Beta.MessageCreateParams
  type Fields<T> = { readonly [Name in keyof T]-?: unknown }
  const mark = { type: 'ephemeral' }
  const schema = { type: 'object' }
  const stable: Fields<Create> = {
    model: 'c/d',
    max_tokens: 11,
    messages: [{ role: 'user', content: 'other' }],
    system: 's',
    stream: true,
    cache_control: mark,
    container: 'c',
    diagnostics: { previous_message_id: 'm' },
    inference_geo: 'us',
    metadata: { user_id: 'u' },
    output_config: { effort: 'low' },
    service_tier: 'auto',
    speed: 'fast',
    stop_sequences: ['x'],
    thinking: { type: 'adaptive' },
    tool_choice: { type: 'any' },
    tools: [{ name: 'f', input_schema: schema }],
    user_profile_id: 'p',
    workspace_id: 'w',
  }
  const beta: Fields<Beta> = {
    ...stable,
    compaction: { type: 'summarize' },
    context_management: { edits: [] },
    fallback_credit_token: 't',
    fallbacks: [],
    mcp_servers: [{ type: 'url', url: 'u', name: 'n' }],
    betas: [],
    output_format: { type: 'json_schema', schema },
    thread: { type: 'create' },
  }
  const older = { temperature: 0.5, top_p: 0.5, top_k: 5 }

  /** Fields that routing reads, or that are refused unless they are empty. They are neither carried nor lost. */
  const exemptFields: readonly string[] = ['model', 'fallbacks', 'betas', 'thread']

  test.each(Object.entries({ ...beta, ...older }))('%s is carried, or recorded as a loss', (name, value) => {
    const { lostFields, ...conversation } = read({ [name]: value })
    const { lostFields: _none, ...plain } = read({})
    const isCarried = !Bun.deepEquals(conversation, plain)
    const isLost = lostFields.includes(name)
    expect([isCarried, isLost].filter(Boolean)).toHaveLength(exemptFields.includes(name) ? 0 : 1)
  })

  test.each<readonly [string, object, string]>([
    ['an unknown field', { hologram: 1 }, 'hologram'],
    ['a field of a tool', { tools: [{ name: 'f', input_schema: schema, defer_loading: true }] }, 'tools.defer_loading'],
    [
      'examples of a tool',
      { tools: [{ name: 'f', input_schema: schema, input_examples: [{}] }] },
      'tools.input_examples',
    ],
    [
      'allowed callers of a tool',
      { tools: [{ name: 'f', input_schema: schema, allowed_callers: [] }] },
      'tools.allowed_callers',
    ],
    [
      'blocked domains of a search',
      { tools: [{ type: 'web_search_20250305', blocked_domains: ['x'] }] },
      'tools.web_search.blocked_domains',
    ],
    ['a task budget', { output_config: { task_budget: { type: 'tokens' } } }, 'output_config.task_budget'],
    ['an unknown field of metadata', { metadata: { user_id: 'u', more: 1 } }, 'metadata.more'],
    ['thinking between tools', { thinking: { type: 'between_tools' } }, 'thinking.between_tools'],
    [
      'an effort while thinking is disabled',
      { thinking: { type: 'disabled' }, output_config: { effort: 'low' } },
      'output_config.effort',
    ],
  ])('is recorded: %s', (_name, fields, path) => {
    expect(read(fields).lostFields).toEqual([path])
  })

  test.each<readonly [string, object, string]>([
    ['the context of a document', { type: 'document', source: png, context: 'c' }, 'messages.document.context'],
    [
      'the citations option of a document',
      { type: 'document', source: png, citations: {} },
      'messages.document.citations',
    ],
    [
      'the transformations of an image',
      { type: 'image', source: png, transformations: {} },
      'messages.image.transformations',
    ],
    [
      'the caller of a tool',
      { type: 'tool_use', id: 'a', name: 'f', caller: { type: 'x' } },
      'messages.tool_use.caller',
    ],
    [
      'a block in a result that no other dialect has',
      { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'browser_state', state: 'x' }] },
      'messages.browser_state',
    ],
  ])('is recorded in a block: %s', (_name, block, path) => {
    const role = (block as { type: string }).type === 'tool_use' ? 'assistant' : 'user'
    expect(read({ messages: [{ role, content: [block] }] }).lostFields).toEqual([path])
  })

  test('is not recorded for a direct caller or for null', () => {
    const call = { type: 'tool_use', id: 'a', name: 'f', input: {}, caller: { type: 'direct' }, cache_control: null }
    expect(read({ messages: [{ role: 'assistant', content: [call] }], container: null }).lostFields).toEqual([])
  })
})

describe('an invalid request is refused:', () => {
  const withBlocks = (role: string, ...content: unknown[]) => ({ messages: [{ role, content }] })
  test.each<readonly [string, object]>([
    ['an unknown role', { messages: [{ role: 'tool', content: 'x' }] }],
    ['no content', { messages: [{ role: 'user' }] }],
    ['content that is a number', withBlocks('user', 5)],
    ['a block without a type', withBlocks('user', { text: 'x' })],
    ['a text that is not a string', withBlocks('user', { type: 'text', text: 5 })],
    ['an image without a source', withBlocks('user', { type: 'image' })],
    ['an image with an unknown source', withBlocks('user', { type: 'image', source: { type: 'x' } })],
    ['a tool result of the assistant', withBlocks('assistant', { type: 'tool_result', tool_use_id: 'x' })],
    [
      'a tool call whose input is not an object',
      withBlocks('assistant', { type: 'tool_use', id: 'x', name: 'f', input: 'x' }),
    ],
    ['an image in a system message', withBlocks('system', { type: 'image', source: png })],
    ['a cache mark of an unknown type', withBlocks('user', { ...text('x'), cache_control: { type: 'x' } })],
    ['a cache mark with an unknown TTL', { cache_control: { type: 'ephemeral', ttl: '2h' } }],
    ['tools that are not a list', { tools: {} }],
    ['a tool without a schema', { tools: [{ name: 'f' }] }],
    ['an unknown tool choice', { tool_choice: { type: 'x' } }],
    ['an unknown type of thinking', { thinking: { type: 'x' } }],
    ['thinking without a budget', { thinking: { type: 'enabled' } }],
    ['an unknown effort', { output_config: { effort: 'x' } }],
    ['an unknown format', { output_config: { format: { type: 'json_object' } } }],
    ['stop sequences that are not strings', { stop_sequences: [5] }],
    ['a conversation that the provider stores', { thread: { type: 'continue', previous_message_id: 'x' } }],
  ])('%s', (_name, fields) => {
    expect(() => read(fields)).toThrow(Refusal)
  })
})

test('any request is read or refused', () => {
  const keys = [
    'type',
    'text',
    'thinking',
    'signature',
    'data',
    'id',
    'name',
    'input',
    'tool_use_id',
    'content',
    'source',
    'cache_control',
    'citations',
    'role',
    'effort',
    'format',
    'schema',
    'input_schema',
    'budget_tokens',
  ]
  const names = [
    'text',
    'image',
    'document',
    'tool_use',
    'tool_result',
    'thinking',
    'redacted_thinking',
    'search_result',
    'base64',
    'content',
    'user',
    'assistant',
    'system',
    'ephemeral',
    'json_schema',
    'enabled',
    'tool',
  ]
  const { tree } = fc.letrec<{ tree: unknown }>(tie => ({
    tree: fc.oneof(
      { depthSize: 'medium', withCrossShrink: true },
      fc.constantFrom(...names),
      fc.constantFrom<unknown>(null, 5, '', true, UNSIGNED_STATE),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...keys), tie('tree'), { maxKeys: 5 }),
    ),
  }))
  const field = fc.constantFrom('messages', 'system', 'tools', 'tool_choice', 'thinking', 'output_config', 'metadata')
  fc.assert(
    fc.property(fc.dictionary(field, tree, { maxKeys: 4 }), fields => {
      try {
        read(fields)
      } catch (fault) {
        expect(fault).toBeInstanceOf(Refusal)
      }
    }),
    { numRuns: 5_000 },
  )
})

test('a long conversation is read quickly', async () => {
  const messages = Array.from({ length: 5_000 }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: [text('x'), { type: 'tool_use', id: `c${index}`, name: 'f', input: {} }],
  }))
  const call = readCall(Buffer.from(JSON.stringify({ ...base, messages })), requestHead)
  await expectCheap(1_000, () => expect(readConversation(call).messages.length).toBe(5_000))
})
