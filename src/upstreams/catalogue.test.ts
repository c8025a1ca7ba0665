// Providers and the environment become channels.

import { describe, expect, test } from 'bun:test'
import { buildCatalogue } from './catalogue.ts'
import { ProviderFileError } from './provider.ts'
import { signers } from './signing.ts'
import { Secret } from '../base/secret.ts'

const base = {
  id: 'acme',
  name: 'Acme',
  baseUrl: 'https://acme.example/v1',
  keyEnv: 'ACME_KEY',
  baseUrlEnv: 'ACME_URL',
  speaks: { 'openai-chat': '/chat/completions' },
  sign: 'bearer',
  models: [],
}

function channelsOf(more: object, env: Record<string, string>, builtInUrl?: string) {
  const files = [{ name: 'acme.json', text: JSON.stringify({ ...base, ...more }) }]
  return buildCatalogue({ files, env, builtInUrl }).channelsOf('acme')
}

describe('a channel', () => {
  test('exists where there is a key', () => {
    expect(channelsOf({}, {})).toEqual([])
    expect(channelsOf({}, { ACME_KEY: ' ' })).toEqual([])
    expect(channelsOf({}, { ACME_KEY: 'k' })).toMatchObject([
      { id: 'acme#1', providerId: 'acme', baseUrl: 'https://acme.example/v1', sign: 'bearer' },
    ])
  })

  test('exists for each key, in order', () => {
    const channels = channelsOf({}, { ACME_KEY: ' one, two ,,three' })
    expect(channels.map(({ id, key }) => [id, key.reveal()])).toEqual([
      ['acme#1', 'one'],
      ['acme#2', 'two'],
      ['acme#3', 'three'],
    ])
  })

  test('moves with its address, loopback included', () => {
    const moved = channelsOf({}, { ACME_KEY: 'k', ACME_URL: ' http://127.0.0.1:9/x// ' })
    expect(moved[0]!.baseUrl).toBe('http://127.0.0.1:9/x')
    expect(channelsOf({}, { ACME_URL: 'http://127.0.0.1:9' })).toEqual([])
  })

  test.each(['ftp://x', 'x', 'http://a b', 'http://u:p@x', 'http://x?y', 'http://x#y'])('does not move to %s', url => {
    expect(() => channelsOf({}, { ACME_KEY: 'k', ACME_URL: url })).toThrow(ProviderFileError)
  })

  test('needs no key where the provider needs none, but an address', () => {
    expect(channelsOf({ keyless: true }, {})).toEqual([])
    const env = { ACME_URL: 'http://127.0.0.1:9' }
    expect(channelsOf({ keyless: true }, env)).toMatchObject([{ sign: 'none' }])
    expect(channelsOf({ keyless: true }, { ...env, ACME_KEY: 'k' })).toMatchObject([{ sign: 'bearer' }])
  })

  test('of a built-in provider is where this process answers', () => {
    const builtIn = { builtIn: true, keyless: true }
    expect(channelsOf(builtIn, {}, 'http://127.0.0.1:7')).toMatchObject([{ baseUrl: 'http://127.0.0.1:7/v1' }])
    expect(channelsOf(builtIn, {})).toEqual([])
  })

  test('does not show its key when it is printed', () => {
    const channels = channelsOf({}, { ACME_KEY: 'very-secret' })
    expect(JSON.stringify(channels)).not.toContain('very-secret')
    expect(Bun.inspect(channels)).not.toContain('very-secret')
    expect(`${channels[0]!.key}`).toBe('[secret]')
  })
})

test('a later file replaces a provider', () => {
  const files = [base, { ...base, name: 'Other', baseUrl: 'https://other.example' }]
    .map(json => ({ name: 'x.json', text: JSON.stringify(json) }))
  const catalogue = buildCatalogue({ files, env: { ACME_KEY: 'k' }, builtInUrl: undefined })
  expect(catalogue.providers.size).toBe(1)
  expect(catalogue.providers.get('acme')!.name).toBe('Other')
  expect(catalogue.channelsOf('acme')).toMatchObject([{ baseUrl: 'https://other.example' }])
  expect(catalogue.channelsOf('nobody')).toEqual([])
})

test('a way to sign that nobody knows is refused', () => {
  expect(() => channelsOf({ sign: 'wax' }, {})).toThrow(ProviderFileError)
  expect(() => channelsOf({ sign: 'constructor' }, {})).toThrow(ProviderFileError)
})

test('each way to sign puts the key into one header', () => {
  const headers = Object.values(signers).map(sign => sign(new Secret('k')))
  expect(headers).toEqual([
    { 'authorization': 'Bearer k' },
    { 'api-key': 'k' },
    { 'x-api-key': 'k' },
    { 'x-goog-api-key': 'k' },
    {},
  ] as never)
})
