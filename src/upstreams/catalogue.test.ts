// Tests how providers and the environment become channels.

import { describe, expect, test } from 'bun:test'
import { Secret } from '../base/secrets/secret.ts'
import { buildCatalogue } from './catalogue.ts'
import { channelId } from './channels.ts'
import { ProviderFileError } from './provider.ts'
import { signRequest } from './signing.ts'
import { UnusableChannel } from './stored-channels.ts'

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
  test('exists when there is a key', () => {
    expect(channelsOf({}, {})).toEqual([])
    expect(channelsOf({}, { ACME_KEY: ' ' })).toEqual([])
    expect(channelsOf({}, { ACME_KEY: 'k' })).toMatchObject([
      { id: channelId('acme', 'k'), providerId: 'acme', baseUrl: 'https://acme.example/v1' },
    ])
  })

  test('exists for each key, in order', () => {
    const channels = channelsOf({}, { ACME_KEY: ' one, two ,,three' })
    expect(channels.map(({ id, key }) => [id, key.reveal()])).toEqual([
      [channelId('acme', 'one'), 'one'],
      [channelId('acme', 'two'), 'two'],
      [channelId('acme', 'three'), 'three'],
    ])
  })

  test('uses another base URL, including loopback', () => {
    const moved = channelsOf({}, { ACME_KEY: 'k', ACME_URL: ' http://127.0.0.1:9/x// ' })
    expect(moved[0]!.baseUrl).toBe('http://127.0.0.1:9/x')
    expect(channelsOf({}, { ACME_URL: 'http://127.0.0.1:9' })).toEqual([])
  })

  test.each(['ftp://x', 'x', 'http://a b', 'http://u:p@x', 'http://x?y', 'http://x#y'])(
    'is refused with the base URL %s',
    url => {
      expect(() => channelsOf({}, { ACME_KEY: 'k', ACME_URL: url })).toThrow(ProviderFileError)
    },
  )

  test('needs only an address when the provider needs no key', () => {
    expect(channelsOf({ keyless: true }, {})).toEqual([])
    const env = { ACME_URL: 'http://127.0.0.1:9' }
    const signed = (more: object) => {
      const [channel] = channelsOf({ keyless: true }, { ...env, ...more })
      return channel!.signs['openai-chat']!({ url: 'http://127.0.0.1:9/', headers: {}, body: new Uint8Array() })
    }
    expect(signed({})).toEqual({})
    expect(signed({ ACME_KEY: 'k' })).toEqual({ authorization: 'Bearer k' })
  })

  test('of a built-in provider has the address of this process', () => {
    const builtIn = { builtIn: true, keyless: true }
    expect(channelsOf(builtIn, {}, 'http://127.0.0.1:7')).toMatchObject([{ baseUrl: 'http://127.0.0.1:7/v1' }])
    expect(channelsOf(builtIn, {})).toEqual([])
  })

  test('takes its address from variables, and does not exist without them', () => {
    const withVariables = { baseUrl: 'https://api.{ACME_PLACE}.example/{ACME_2}' }
    expect(channelsOf(withVariables, { ACME_KEY: 'k', ACME_PLACE: 'eu-1' })).toEqual([])
    const env = { ACME_KEY: 'k', ACME_PLACE: ' eu-1 ', ACME_2: 'a' }
    expect(channelsOf(withVariables, env)).toMatchObject([{ baseUrl: 'https://api.eu-1.example/a' }])
    expect(channelsOf(withVariables, { ACME_KEY: 'k', ACME_URL: 'http://127.0.0.1:9' })).toHaveLength(1)
    for (const ACME_PLACE of ['a/b', 'a@b', 'a?b', 'a b', '{x}']) {
      expect(() => channelsOf(withVariables, { ...env, ACME_PLACE })).toThrow('ACME_PLACE')
    }
  })

  test('signs each dialect with its method', async () => {
    const speaks = { one: '/1', two: '/2', three: '/3' }
    const sign = { one: 'bearer', two: 'x-goog-api-key', three: 'none' }
    const [channel] = channelsOf({ speaks, sign }, { ACME_KEY: 'k' })
    const request = { url: 'https://acme.example/v1', headers: {}, body: Buffer.alloc(0) }
    const signed = (dialect: string) => signRequest(channel!, dialect, request)
    expect(await signed('one')).toEqual({ authorization: 'Bearer k' })
    expect(await signed('two')).toEqual({ 'x-goog-api-key': 'k' })
    expect(await signed('three')).toEqual({})
    expect(() => signed('four')).toThrow(`${channel!.id} does not speak four`)
    expect(() => signed('toString')).toThrow('does not speak')
  })

  test('signs nothing without a key', async () => {
    const [channel] = channelsOf({ keyless: true }, { ACME_URL: 'http://127.0.0.1:9' })
    const request = { url: 'http://127.0.0.1:9/', headers: {}, body: Buffer.alloc(0) }
    expect(await signRequest(channel!, 'openai-chat', request)).toEqual({})
  })

  test('does not show its key when it is printed', () => {
    const channels = channelsOf({}, { ACME_KEY: 'very-secret' })
    expect(JSON.stringify(channels)).not.toContain('very-secret')
    expect(Bun.inspect(channels)).not.toContain('very-secret')
    expect(`${channels[0]!.key}`).toBe('[secret]')
  })
})

test('a later file replaces a provider', () => {
  const files = [base, { ...base, name: 'Other', baseUrl: 'https://other.example' }].map(json => ({
    name: 'x.json',
    text: JSON.stringify(json),
  }))
  const catalogue = buildCatalogue({ files, env: { ACME_KEY: 'k' }, builtInUrl: undefined })
  expect(catalogue.providers.size).toBe(1)
  expect(catalogue.providers.get('acme')!.name).toBe('Other')
  expect(catalogue.channelsOf('acme')).toMatchObject([{ baseUrl: 'https://other.example' }])
  expect(catalogue.channelsOf('nobody')).toEqual([])
})

test('a credential that was set for one origin is used for no other origin', () => {
  const files = [{ name: 'acme.json', text: JSON.stringify(base) }]
  const catalogue = buildCatalogue({ files, env: {}, builtInUrl: undefined })
  const fields = { name: 'a', baseUrl: null, headers: {}, parameters: {}, times: {}, fingerprint: 'aaaaaa' }
  const row = { ...fields, id: 'acme#ch_1', provider: 'acme', credential: new Secret('sk-acme') }
  expect(() => catalogue.checkChannel({ ...row, origin: 'https://acme.example' })).not.toThrow()
  for (const origin of ['https://elsewhere.example', 'http://acme.example', 'https://acme.example:444', null]) {
    expect(() => catalogue.checkChannel({ ...row, origin })).toThrow(UnusableChannel)
  }
})

describe('a local server', () => {
  const local = { baseUrl: 'http://127.0.0.1:9/v1', keyless: true, localServer: { ownedBy: 'acme' } }
  const files = [{ name: 'acme.json', text: JSON.stringify({ ...base, ...local }) }]
  const found = new Map([['acme', { baseUrl: 'http://127.0.0.1:7/v1', models: [{ id: 'river' }] }]])

  test('gets a channel where it was found, and keeps it; it is gone with the server', () => {
    const catalogue = buildCatalogue({ files, env: {}, builtInUrl: undefined })
    expect(catalogue.channelsOf('acme')).toEqual([])
    catalogue.setFound('x', found)
    const [channel] = catalogue.channelsOf('acme')
    expect(channel).toMatchObject({ id: 'acme#open', baseUrl: 'http://127.0.0.1:7/v1' })
    expect([...catalogue.providers.get('acme')!.models.keys()]).toEqual(['river'])
    catalogue.configure({ providers: [], stored: [] })
    expect(catalogue.channelsOf('acme')[0]).toBe(channel!)
    catalogue.setFound('x', new Map())
    expect(catalogue.channelsOf('acme')).toEqual([])
    expect(catalogue.providers.get('acme')!.models.size).toBe(0)
  })

  test('that is configured stays where it is', () => {
    const catalogue = buildCatalogue({ files, env: { ACME_URL: 'http://127.0.0.1:8/v1' }, builtInUrl: undefined })
    catalogue.setFound('x', found)
    expect(catalogue.channelsOf('acme')).toMatchObject([{ baseUrl: 'http://127.0.0.1:8/v1' }])
  })

  test('cannot be defined at run time, so that nobody probes the ports of this machine', () => {
    const catalogue = buildCatalogue({ files, env: {}, builtInUrl: undefined })
    const other = JSON.stringify({ ...base, ...local, id: 'other' })
    expect(() => catalogue.readDefinition(other)).toThrow('"localServer"')
    const moved = JSON.stringify({ ...base, ...local, baseUrl: 'http://127.0.0.1:22/v1' })
    catalogue.configure({ providers: [{ id: 'acme', definition: moved }] as never, stored: [] })
    expect(catalogue.localChannel('acme', 'http://127.0.0.1:22/v1')).toBeUndefined()
  })
})
