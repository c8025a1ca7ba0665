import { describe, expect, test } from 'bun:test'
import { credentialsOf, headerLines, readHeaders, readParameters } from './channel-values.ts'

describe('headers as lines', () => {
  test('are read and written', () => {
    const headers = { 'X-Project': 'search', 'X-Url': 'https://a.example:8443/x' }
    expect(readHeaders(headerLines(headers))).toEqual(headers)
    expect(readHeaders('  X-A :  one two \n\n')).toEqual({ 'X-A': 'one two' })
    expect(readHeaders('')).toEqual({})
  })

  test('the first line that is no header is named', () => {
    expect(readHeaders('X-A: 1\nnonsense')).toBe(2)
    expect(readHeaders('X-A:')).toBe(1)
  })
})

test('request fields are an object, or there is a fault', () => {
  expect(readParameters(' ')).toEqual({ value: {} })
  const value = { 'openai-chat': { remove: ['logprobs'] } }
  expect(readParameters(JSON.stringify(value))).toEqual({ value })
  expect(readParameters('[1]')).toEqual({ fault: null })
  expect(readParameters('{')).toEqual({ fault: { line: 1, column: 2 } })
})

test('each line is a credential, unless all are one JSON', () => {
  expect(credentialsOf(['sk-one', 'sk-two'])).toEqual(['sk-one', 'sk-two'])
  expect(credentialsOf(['{', '"type": "service_account"', '}'])).toEqual(['{"type":"service_account"}'])
  expect(credentialsOf(['{"a":1}', '{"b":2}'])).toEqual(['{"a":1}', '{"b":2}'])
  expect(credentialsOf([])).toEqual([])
})
