// Tests the names of tools in namespaces.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { expectCheap } from '../../../test/support/cpu.ts'
import type { Wire } from '../../../test/support/responses-wire.ts'
import { answerTargetOf, read, readItems, refusedParam } from '../../../test/support/responses-wire.ts'
import { collectAnswer, toEvents } from '../neutral/answer-collector.ts'
import { protocols } from '../protocols.ts'
import { NamespaceNames } from './namespaces.ts'

const group = (name: string, ...names: readonly string[]): Wire => ({
  type: 'namespace',
  name,
  tools: names.map(each => ({ type: 'function', name: each, parameters: null })),
})

const plainTool = (name: string): Wire => ({ type: 'function', name, parameters: null })

const namesOf = (...tools: readonly Wire[]): readonly string[] =>
  read({ tools }).tools.map(tool => ('name' in tool ? tool.name : tool.kind))

describe('names', () => {
  test('have the namespace, in characters and a length that each dialect allows', () => {
    expect(namesOf(group('mcp__a', 'f'), group('mcp__b__', 'f'), group('a.b', 'c d'))).toEqual([
      'mcp__a__f',
      'mcp__b__f',
      'a_b__c_d',
    ])
    const [long] = namesOf(group('n'.repeat(80), 'find_the_way'))
    expect(long).toMatch(/^n{24}_n{16}__find_the_way_[0-9a-f]{8}$/)
    expect(long!.length).toBe(64)
  })

  test('that collide get a hash of the tool, and tools outside of namespaces keep theirs', () => {
    const names = namesOf(group('a', 'b', 'b__c'), group('a__b', 'c'), group('a.', 'b'), plainTool('a__b'))
    expect(names[4]).toBe('a__b')
    expect(names[0]).toMatch(/^a__b_[0-9a-f]{8}$/)
    expect([names[1], names[3]]).toEqual(['a__b__c', 'a___b'])
    expect(names[2]).toMatch(/^a__b__c_[0-9a-f]{8}$/)
    expect(namesOf(plainTool('a__b'), group('z', 'y'), group('a', 'b'))[2]).toBe(names[0]!)
  })

  test('are unique and valid, lead back to their tools, and do not depend on calls', () => {
    const text = fc.oneof(fc.constantFrom('a', 'a__', 'a__b', 'b', '_b', 'a.b', '', 'x'.repeat(70)), fc.string())
    fc.assert(
      fc.property(
        fc.array(fc.tuple(text, text), { maxLength: 12 }),
        fc.array(text, { maxLength: 4 }),
        (pairs, plain) => {
          const tools = [...pairs.map(([namespace, name]) => group(namespace, name)), ...plain.map(plainTool)]
          const [names, again] = [new NamespaceNames(tools), new NamespaceNames(tools)]
          again.write({ namespace: 'never', name: 'offered' })
          const written = new Map(
            pairs.map(([namespace, name]) => [JSON.stringify([namespace, name]), names.write({ namespace, name })]),
          )
          expect(new Set([...written.values(), ...plain]).size).toBe(written.size + new Set(plain).size)
          for (const [namespace, name] of pairs) {
            const flat = names.write({ namespace, name })
            expect(flat).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
            expect(names.find(flat)).toEqual({ namespace, name })
            expect(again.write({ namespace, name })).toBe(flat)
          }
        },
      ),
    )
  })

  test('of calls and results are those of the tools, also without the tools', () => {
    const call = { type: 'function_call', call_id: 'c', namespace: 'a.b', name: 'f', arguments: '{}' }
    const custom = { type: 'custom_tool_call', call_id: 'd', namespace: 'n', name: 'f', input: 'x' }
    const messages = readItems(
      call,
      custom,
      { type: 'function_call_output', call_id: 'c', output: '1', namespace: 'a.b', name: 'f' },
      { type: 'custom_tool_call_output', call_id: 'd', output: '2' },
    )
    expect(messages).toMatchObject([
      { role: 'assistant', parts: [{ name: 'a_b__f' }, { name: 'n__f', custom: true }] },
      { role: 'tool', parts: [{ name: 'a_b__f' }, { name: 'n__f', custom: true }] },
    ])
    expect(read({ input: [call] }).lostFields).toEqual([])
    expect(refusedParam(() => readItems({ ...call, namespace: 1 }))).toBe('input[0].namespace')
  })

  test('cost little for many tools, calls and choices', async () => {
    const many = Array.from({ length: 20_000 }, (_, at) => `t${at}`)
    const input = many.map(name => ({ type: 'function_call', call_id: name, namespace: 'old', name, arguments: '{}' }))
    const tools = [group('n', ...many), group('n.', ...many), ...many.map(name => plainTool(`n__${name}`))]
    const groups = many.map(() => ({ type: 'namespace', name: 'n' }))
    const choice = { type: 'allowed_tools', mode: 'auto', tools: [...groups, ...many.map(plainTool)] }
    const readAll = () => expect(read({ input, tools, tool_choice: choice }).tools.length).toBe(60_000)
    await expectCheap(10_000, readAll)
  })
})

describe('the tools of a namespace', () => {
  test('are read like others, and the first one describes the namespace', () => {
    const schema = { type: 'object', properties: {} }
    const { tools, lostFields } = read({
      tools: [
        {
          type: 'namespace',
          name: 'n',
          description: 'About n.',
          tools: [
            { type: 'function', name: 'f', parameters: schema, strict: true },
            { type: 'custom', name: 'c', description: 'C.', format: { type: 'text' } },
          ],
        },
      ],
    })
    expect(tools).toEqual([
      { kind: 'function', name: 'n__f', description: 'All tools of n: About n.', schema, strict: true },
      { kind: 'custom', name: 'n__c', description: 'C.' },
    ])
    expect(lostFields).toEqual([])
  })

  test.each([
    ['a tool that is loaded later', { tools: [{ ...plainTool('f'), defer_loading: true }] }, 'defer_loading'],
    ['a tool of the provider', { tools: [{ type: 'web_search' }] }, 'web_search'],
    ['a description that is too long', { ...group('n', 'f'), description: 'x'.repeat(1024) }, 'description'],
    ['an unknown field', { ...group('n', 'f'), novel: 1 }, 'novel'],
  ])('are a loss: %s', (_what, fields, code) => {
    const { tools, lostFields } = read({ tools: [{ type: 'namespace', name: 'n', ...fields }] })
    expect(lostFields).toEqual([`tools.namespace.${code}`])
    expect(tools).toEqual('name' in fields ? [{ kind: 'function', name: 'n__f' }] : [])
  })

  test.each([
    [{ tools: [] }, 'tools[0].name'],
    [{ name: 'n' }, 'tools[0].tools'],
    [{ name: 'n', tools: [{ type: 'function' }] }, 'tools[0].tools[0].name'],
    [{ name: 'n', tools: [{ type: 'function', name: 'f', parameters: 1 }] }, 'tools[0].tools[0].parameters'],
  ])('are refused if they are malformed: %j', (fields, param) => {
    expect(refusedParam(() => read({ tools: [{ type: 'namespace', ...fields }] }))).toBe(param)
  })
})

describe('a choice of tools', () => {
  const tools = [plainTool('own'), group('a', 'f', 'g', 'own'), group('b', 'f')]
  const chosen = (choice: Wire) => {
    const { toolChoice, lostFields } = read({ tools, tool_choice: choice })
    return [toolChoice?.mode, toolChoice?.names, lostFields]
  }

  test.each([
    [{ type: 'function', namespace: 'b', name: 'f' }, ['b__f'], []],
    [{ type: 'custom', namespace: 'a', name: 'own' }, ['a__own'], []],
    [{ type: 'function', name: 'g' }, ['a__g'], []],
    [{ type: 'function', name: 'f' }, ['a__f', 'b__f'], []],
    [{ type: 'function', name: 'own' }, ['own'], []],
    [{ type: 'function', name: 'unknown' }, ['unknown'], []],
    [{ type: 'namespace', name: 'a' }, ['a__f', 'a__g', 'a__own'], []],
  ])('of one tool: %j', (choice, names, lost) => {
    expect(chosen(choice)).toEqual(['required', names, lost])
    const allowed = { type: 'allowed_tools', mode: 'auto', tools: [choice, choice] }
    expect(chosen(allowed)).toEqual(['auto', names, lost])
  })

  test('of something unknown is a loss', () => {
    expect(chosen({ type: 'namespace', name: 'z' })).toEqual([undefined, undefined, ['tool_choice']])
    const allowed = [{ type: 'namespace', name: 'z' }, { type: 'mcp' }, plainTool('own')]
    expect(chosen({ type: 'allowed_tools', mode: 'auto', tools: allowed })).toEqual([
      'auto',
      ['own'],
      ['tool_choice.tools'],
    ])
  })
})

test('an answer names the namespace, and a tool that has the name of another one in a namespace does not', () => {
  const tools = [plainTool('f'), group('a', 'f'), group('b', 'f')]
  const target = answerTargetOf({ json: { model: 'p/m', input: 'hi', tools } })
  const parts = ['f', 'a__f', 'b__f', 'c__f'].map((name, at) => ({
    kind: 'call' as const,
    id: `c${at}`,
    name,
    arguments: '{}',
  }))
  const answer = { choices: [{ parts, finish: 'calls' as const }] }
  const { output } = JSON.parse(protocols['openai-responses'].codec.writeWholeAnswer(answer, target)) as {
    output: Wire[]
  }
  expect(output.map(({ namespace, name }) => [namespace, name])).toEqual([
    [undefined, 'f'],
    ['a', 'f'],
    ['b', 'f'],
    [undefined, 'c__f'],
  ])
  const native = { ...answer, choices: [{ parts: [{ ...parts[0]!, namespace: 'x' }], finish: 'calls' as const }] }
  expect(collectAnswer(toEvents(native))).toEqual(native)
})
