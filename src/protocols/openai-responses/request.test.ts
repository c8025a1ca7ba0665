// Tests which fields of a request are read, and which bytes change for an upstream of the same dialect.

import { describe, expect, test } from 'bun:test'
import { Refusal } from '../../base/errors.ts'
import type { CallTarget } from '../neutral/call.ts'
import { packReasoningState } from '../neutral/reasoning-state.ts'
import { arkFlavour, openaiFlavour } from './flavour.ts'
import { readCall, writeCall } from './request.ts'

const read = (json: unknown) => readCall(Buffer.from(JSON.stringify(json)), openaiFlavour)
const readText = (text: string) => readCall(Buffer.from(text), openaiFlavour)
const base = { model: 'p/m', input: 'hi' }
const target: CallTarget = { model: 'm', askUsage: true, capField: 'max_tokens' }
const writeBody = (text: string, overrides: Partial<CallTarget> = {}) =>
  Buffer.from(writeCall(readText(text), { ...target, ...overrides })).toString()

function refusalOf(run: () => unknown): readonly [string, string | undefined] {
  try {
    run()
  } catch (error) {
    if (error instanceof Refusal) return [error.code, error.extras.param]
    throw error
  }
  throw new Error('not refused')
}

describe('a call', () => {
  test('is read as far as routing, limits and billing need it', () => {
    const call = read({
      ...base,
      stream: true,
      max_output_tokens: 9,
      service_tier: 'flex',
      user: 'u',
      safety_identifier: 's',
      metadata: { team: 'a' },
      store: false,
      background: true,
      previous_response_id: 'resp_1',
    })
    expect(call).toMatchObject({
      dialect: 'openai-responses',
      model: 'p/m',
      stream: true,
      choices: 1,
      outputTokensMax: 9,
      serviceClass: 'flex',
      endUser: 's',
      tags: { team: 'a' },
      textOnly: false,
      searchesMax: 0,
      state: { previous: 'resp_1', store: false, background: true },
    })
    expect(read(base)).toMatchObject({ stream: false, textOnly: true, state: { store: true, background: false } })
    expect(readCall(Buffer.from(JSON.stringify(base)), arkFlavour).dialect).toBe('ark-responses')
    expect(read({ ...base, conversation: { id: 'conv_1' } }).state).toMatchObject({ conversation: 'conv_1' })
  })

  test.each([
    [{ input: 'x' }, 'field_missing', 'model'],
    [{ model: 'p/m' }, 'field_missing', 'input'],
    [{ model: 'p/m', input: null }, 'field_missing', 'input'],
    [{ model: 5, input: 'x' }, 'field_invalid', 'model'],
    [{ ...base, input: 5 }, 'field_invalid', 'input'],
    [{ ...base, input: [5] }, 'field_invalid', 'input[0]'],
    [{ ...base, input: [{ role: 'user' }, {}] }, 'field_invalid', 'input[1]'],
    [{ ...base, stream: 'true' }, 'field_invalid', 'stream'],
    [{ ...base, max_output_tokens: 0 }, 'field_invalid', 'max_output_tokens'],
    [{ ...base, max_output_tokens: 1.5 }, 'field_invalid', 'max_output_tokens'],
    [{ ...base, service_tier: {} }, 'field_invalid', 'service_tier'],
    [{ ...base, previous_response_id: 5 }, 'field_invalid', 'previous_response_id'],
    [{ ...base, conversation: { id: 5 } }, 'field_invalid', 'conversation'],
    [{ ...base, conversation: 'c', previous_response_id: 'r' }, 'field_invalid', 'conversation'],
    [{ ...base, store: 'no' }, 'field_invalid', 'store'],
    [{ ...base, background: 1 }, 'field_invalid', 'background'],
    [{ ...base, tools: {} }, 'field_invalid', 'tools'],
    [{ ...base, models: ['dearer'] }, 'field_invalid', 'models'],
  ])('is refused: %j', (json, code, param) => {
    expect(refusalOf(() => read(json))).toEqual([code, param])
  })

  test.each([
    ['{"model":"p/m","input":"a","input":"b"}', 'input'],
    ['{"model":"p/m","input":"a","Model":"dearer"}', 'model'],
    ['{"model":"p/m","input":"a","max_output_tokens":1,"max_output_tokens":900}', 'max_output_tokens'],
    ['{"model":"p/m","input":"a","previous_response_id":"a","previous_response_id":"b"}', 'previous_response_id'],
    ['{"model":"p/m","input":"a","background":true,"Background":false}', 'background'],
  ])('is refused with a field twice: %s', (text, param) => {
    expect(refusalOf(() => readText(text))).toEqual(['field_duplicate', param])
  })

  test.each([{ prompt: { id: 'pmpt_1' } }, { previous_response_id: 'resp_1' }, { conversation: 'conv_1' }])(
    'may have no input if other input is stored: %j',
    stored => {
      expect(read({ model: 'p/m', ...stored }).textOnly).toBe(false)
    },
  )
})

describe('the estimate of the input', () => {
  const image = { type: 'input_image', image_url: `data:image/png;base64,${'A'.repeat(100_000)}` }

  test.each([
    [{ input: [{ role: 'user', content: 'text' }] }, true],
    [{ input: [{ role: 'user', content: [{ type: 'input_text', text: 'text' }] }] }, true],
    [{ input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }] }, true],
    [{ input: [{ type: 'function_call_output', call_id: 'c', output: 'text' }] }, true],
    [{ input: [{ type: 'function_call_output', call_id: 'c', output: [image] }] }, false],
    [{ input: [{ role: 'user', content: [image] }] }, false],
    [{ input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] }, false],
    [{ input: [{ type: 'item_reference', id: 'msg_1' }] }, false],
    [{ input: [{ type: 'reasoning', encrypted_content: 'x' }] }, false],
    [
      {
        tools: [
          { type: 'function', name: 'f' },
          { type: 'custom', name: 'g' },
        ],
      },
      true,
    ],
    ...['web_search', 'file_search', 'code_interpreter', 'mcp', 'image_generation', 'shell', 'new_tool'].map(
      type => [{ tools: [{ type }] }, false] as const,
    ),
  ] as const)('%j is only text: %p', (fields, textOnly) => {
    const call = read({ ...base, ...fields })
    expect(call.textOnly).toBe(textOnly)
    const [tool] = 'tools' in fields && !textOnly ? fields.tools : []
    expect(call.searchesMax).toBe(tool?.type === 'web_search' ? 10 : 0)
    const isService = tool !== undefined && tool.type !== 'web_search'
    expect(call.services?.map(({ name }) => name.split(':')[0]!)).toEqual(isService ? [tool.type] : undefined)
  })

  test('counts an image as a fixed amount of text', () => {
    expect(read({ ...base, input: [{ role: 'user', content: [image] }] }).inputBytes).toBeLessThan(5_000)
  })

  test('limits searches to the tool calls that the caller allows', () => {
    expect(read({ ...base, tools: [{ type: 'web_search' }], max_tool_calls: 3 }).searchesMax).toBe(3)
    expect(read({ ...base, tools: [{ type: 'web_search' }], max_tool_calls: 0 }).searchesMax).toBe(1)
    expect(read({ ...base, tools: [{ type: 'web_search' }], max_tool_calls: 99 }).searchesMax).toBe(99)
    expect(read({ ...base, tools: [{ type: 'web_search' }], max_tool_calls: 5_000 }).searchesMax).toBe(1_000)
    expect(read({ ...base, tools: [{ type: 'web_search' }] }).searchesMax).toBe(10)
  })
})

describe('the bytes for an upstream', () => {
  test('are the caller’s, except for the model', () => {
    const text = '{ "input" : "\\u00e9", "model":"p/m","seed":12345678901234567890, "x":{"model":1}}'
    expect(writeBody(text)).toBe(text.replace('"p/m"', '"m"'))
  })

  test.each([
    ['{"model":"p/m","input":"a"}', '{"max_output_tokens":7,"model":"m","input":"a"}'],
    ['{"model":"p/m","input":"a","max_output_tokens":9}', '{"model":"m","input":"a","max_output_tokens":7}'],
    ['{"model":"p/m","input":"a","max_output_tokens":5}', '{"model":"m","input":"a","max_output_tokens":5}'],
    ['{"model":"p/m","input":"a","max_output_tokens":null}', '{"model":"m","input":"a","max_output_tokens":7}'],
  ])('have the cap of the gateway: %s', (text, expected) => {
    expect(writeBody(text, { cap: 7 })).toBe(expected)
  })

  test('have the upstream’s id of the previous response', () => {
    const text = '{"previous_response_id":"resp_ours","model":"p/m"}'
    expect(writeBody(text, { previous: 'resp_theirs' })).toBe('{"previous_response_id":"resp_theirs","model":"m"}')
    expect(writeBody(text)).toBe('{"previous_response_id":"resp_ours","model":"m"}')
  })

  test('P33: have no reasoning state of another origin, and their own state unchanged', () => {
    const own = packReasoningState({ origin: 'here', form: 'encrypted', value: 'gAAA+/=', id: 'rs_theirs' })
    const foreign = packReasoningState({ origin: 'there', form: 'encrypted', value: 'gBBB' })
    const signature = packReasoningState({ origin: 'here', form: 'signature', value: 'Er' })
    const item = (state: string) => ({ id: 'rs_ours', type: 'reasoning', summary: [], encrypted_content: state })
    const userItem = { role: 'user', content: 'hi' }
    const input = [userItem, item(own), item(foreign), item(signature), item('gCCC')]
    const text = JSON.stringify({ seed: 1, model: 'p/m', input }).replace(':1,', ':12345678901234567890,')
    expect(JSON.parse(writeBody(text, { origin: 'here' })).input).toEqual([
      userItem,
      { id: 'rs_theirs', type: 'reasoning', summary: [], encrypted_content: 'gAAA+/=' },
      item('gCCC'),
    ])
    expect(writeBody(text)).toContain('12345678901234567890')
    expect(JSON.parse(writeBody(text)).input).toEqual([userItem, item('gCCC')])
  })
})
