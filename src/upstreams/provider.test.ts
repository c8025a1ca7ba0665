import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Rates } from '../base/price.ts'
import type { Provider } from './provider.ts'
import { parseProvider, ProviderFileError } from './provider.ts'
import { isSigner } from './signing.ts'

const folder = join(import.meta.dir, '..', '..', 'providers')
const files = readdirSync(folder)
const readProvider = (file: string): Provider => parseProvider(readFileSync(join(folder, file), 'utf8'), file)
const providers = files.map(readProvider)

test('every provider file parses and is named after its id', () => {
  expect(files.length).toBeGreaterThanOrEqual(24)
  for (const file of files) expect(`${readProvider(file).id}.json`).toBe(file)
})

test('at least twenty providers speak OpenAI chat', () => {
  expect(providers.filter(provider => provider.speaks['openai-chat']).length).toBeGreaterThanOrEqual(20)
})

test('no two providers share a variable', () => {
  const names = providers.flatMap(provider => [provider.keyEnv, provider.baseUrlEnv])
  expect(new Set(names).size).toBe(names.length)
  for (const name of names) expect(name).toMatch(/^[A-Z][A-Z0-9_]+$/)
})

test('every provider is signed in a way we know', () => {
  for (const provider of providers) expect([provider.id, isSigner(provider.sign)]).toEqual([provider.id, true])
})

test('only servers of one’s own are free, and only they and the built-in one go without a key', () => {
  for (const { id, baseUrl, free, keyless, builtIn } of providers) {
    const local = baseUrl.startsWith('http://127.0.0.1:')
    expect([id, free, keyless]).toEqual([id, local && !builtIn, local])
    expect(local || baseUrl.startsWith('https://')).toBe(true)
  }
})

test('nothing that has a price is given away', () => {
  for (const { id, free, models } of providers) {
    for (const { id: model, price } of free ? [] : models.values()) {
      const least = price && [price.rates, ...price.cases.map(one => one.rates)].every(isMoney)
      expect([id, model, least ?? true]).toEqual([id, model, true])
    }
  }
})

const isMoney = (rates: Rates): boolean => Object.values(rates).every(rate => rate > 0n)

test('a cached token never costs more than a fresh one', () => {
  for (const { id, models } of providers) {
    for (const { id: model, price } of models.values()) {
      const { input = 0n, cacheRead = 0n } = price?.rates ?? {}
      expect([id, model, cacheRead <= input]).toEqual([id, model, true])
    }
  }
})

test('every priced model of the large vendors says how long an answer can be', () => {
  for (const file of ['openai', 'deepseek', 'groq', 'xai', 'mistral', 'google']) {
    for (const { id, price, outputTokensMax } of readProvider(`${file}.json`).models.values()) {
      expect([file, id, !price || outputTokensMax !== undefined]).toEqual([file, id, true])
    }
  }
})

test('an answer is never longer than the context', () => {
  for (const { id, models } of providers) {
    for (const { id: model, contextTokens = Infinity, outputTokensMax = 0 } of models.values()) {
      expect([id, model, outputTokensMax <= contextTokens]).toEqual([id, model, true])
    }
  }
})

test('the limits of answers are those of the vendors', () => {
  const rows = [
    ['openai.json', 'gpt-4.1', 32_768],
    ['openai.json', 'gpt-4o-2024-05-13', 4_096],
    ['openai.json', 'gpt-5.2-chat-latest', 16_384],
    ['openai.json', 'o3-2025-04-16', 100_000],
    ['openai.json', 'gpt-6-sol', 128_000],
    ['google.json', 'gemini-2.5-pro', 65_536],
    ['groq.json', 'qwen/qwen3-32b', 40_960],
    ['mistral.json', 'codestral-latest', 256_000], // no limit but the context; the catalogue's 4,096 is its filler
    ['openrouter.json', 'openai/gpt-4.1-nano', 32_768], // its maker's, and not the catalogue's guess
    ['openrouter.json', 'openai/gpt-oss-120b', 131_072], // the most that any of its hosts allows
  ] as const
  for (const [file, model, expected] of rows) {
    const found: unknown = readProvider(file).models.get(model)?.outputTokensMax
    expect([file, model, found]).toEqual([file, model, expected])
  }
})

test('the built-in provider has its models', () => {
  const demo = readProvider('demo.json')
  expect([demo.builtIn, demo.keyless, demo.sign]).toEqual([true, true, 'none'])
  expect([...demo.models.keys()]).toEqual(['echo', 'lorem', 'slow', 'think', 'json', 'see'])
})

const good = {
  id: 'good',
  name: 'Good',
  baseUrl: 'https://api.good.test/v1',
  keyEnv: 'GOOD_API_KEY',
  baseUrlEnv: 'GOOD_BASE_URL',
  speaks: { 'openai-chat': '/chat/completions' },
  sign: 'bearer',
  models: [{ id: 'a', price: { input: '1', output: '2.50' } }],
}

const withModel = (fields: object): object => ({ models: [{ id: 'a', ...fields }] })
const withPrice = (fields: object): object => withModel({ price: { input: '1', output: '2', ...fields } })

test('a file with only the required fields is read with the documented defaults', () => {
  const provider = parseProvider(JSON.stringify(good), 'good.json')
  expect(provider).toMatchObject({ openModels: false, free: false, keyless: false, builtIn: false })
  expect(provider.can).toEqual({ streamUsage: true, outputCap: 'max_tokens', capsThought: true })
  expect(provider.models.get('a')?.price as unknown).toEqual({
    rates: { input: 1_000_000_000n, output: 2_500_000_000n },
    cases: [],
  })
})

const badFiles: readonly (readonly [name: string, change: object, field: string])[] = [
  ['an unknown field', { colour: 'red' }, '"colour"'],
  ['a capability that is a word', { can: { capsThought: 'no' } }, '"can.capsThought"'],
  ['an unknown capability', { can: { fly: true } }, '"fly"'],
  ['no id', { id: undefined }, '"id"'],
  ['an id in capitals', { id: 'Good' }, '"id"'],
  ['an id with a slash', { id: 'go/od' }, '"id"'],
  ['an id with an invisible character', { id: 'go\u200bod' }, '"id"'],
  ['no name', { name: undefined }, '"name"'],
  ['an empty name', { name: '' }, '"name"'],
  ['a website that is no text', { website: 1 }, '"website"'],
  ['no base URL', { baseUrl: undefined }, '"baseUrl"'],
  ['a base URL with a trailing slash', { baseUrl: 'https://api.good.test/v1/' }, '"baseUrl"'],
  ['a base URL with a query', { baseUrl: 'https://api.good.test/v1?x=1' }, '"baseUrl"'],
  ['a base URL with a space', { baseUrl: 'https://api.good.test/v 1' }, '"baseUrl"'],
  ['a base URL of another scheme', { baseUrl: 'ftp://api.good.test' }, '"baseUrl"'],
  ['no key variable', { keyEnv: undefined }, '"keyEnv"'],
  ['no base URL variable', { baseUrlEnv: undefined }, '"baseUrlEnv"'],
  ['no dialects', { speaks: undefined }, '"speaks"'],
  ['an empty list of dialects', { speaks: {} }, '"speaks"'],
  ['a path without a slash', { speaks: { 'openai-chat': 'chat' } }, '"speaks.openai-chat"'],
  ['a path that is no text', { speaks: { 'openai-chat': true } }, '"speaks.openai-chat"'],
  ['a path with a space', { speaks: { 'openai-chat': '/chat x' } }, '"speaks.openai-chat"'],
  ['three paths', { speaks: { gemini: ['/a', '/b', '/c'] } }, '"speaks.gemini"'],
  ['no signing', { sign: undefined }, '"sign"'],
  ['a flag that is a text', { openModels: 'true' }, '"openModels"'],
  ['a flag that is a number', { free: 1 }, '"free"'],
  ['a capability that is a text', { can: { streamUsage: 'false' } }, '"can.streamUsage"'],
  ['a cap in a field that nobody reads', { can: { outputCap: 'max_output' } }, '"can.outputCap"'],
  ['a misspelt field of a model', withModel({ prices: {} }), '"prices"'],
  ['a misspelt field of a price', withPrice({ cacheread: '1' }), '"cacheread"'],
  ['a price that is null', withModel({ price: null }), '"price"'],
  ['a model that is null', { models: [null] }, 'a model'],
  ['a name that is a number', withModel({ name: 5 }), '"name"'],
  ['a price of nothing', withPrice({ input: '0', output: '0' }), '"free"'],
  ['a case of nothing', withPrice({ cases: [{ class: 'batch', input: '0', output: '0' }] }), '"free"'],
  ['no models', { models: undefined }, '"models"'],
  ['models that are no list', { models: { a: {} } }, '"models"'],
  ['a model without an id', { models: [{ name: 'A' }] }, '"id"'],
  ['a model id that is a number', withModel({ id: 1 }), '"id"'],
  ['an empty model id', withModel({ id: '' }), '"id"'],
  ['a model id with a space', withModel({ id: 'a b' }), '"id"'],
  ['a model id with a line break', withModel({ id: 'a\nb' }), '"id"'],
  ['a model id with an invisible character', withModel({ id: 'a\u200bb' }), '"id"'],
  ['a model id that is too long', withModel({ id: 'a'.repeat(201) }), '"id"'],
  ['the same model twice', { models: [{ id: 'a' }, { id: 'a' }] }, 'model "a"'],
  ['a context of no tokens', withModel({ contextTokens: 0 }), 'model "a"'],
  ['a context of half a token', withModel({ contextTokens: 0.5 }), 'model "a"'],
  ['an output bound that is a text', withModel({ outputTokensMax: '4096' }), 'model "a"'],
  ['a price that is a number', withPrice({ input: 0.15 }), '"price.input"'],
  ['a negative price', withPrice({ output: '-1' }), '"price.output"'],
  ['a price with an exponent', withPrice({ input: '1e3' }), '"price.input"'],
  ['a price finer than a nano-dollar', withPrice({ input: '0.0000000001' }), '"price.input"'],
  ['a price without output', withPrice({ output: undefined }), '"price.output"'],
  ['a cache price that is a number', withPrice({ cacheRead: 0.5 }), '"price.cacheRead"'],
]

test.each(badFiles)('%s is refused, and the message names file and field', (_, change, field) => {
  expect(messageFor(JSON.stringify({ ...good, ...change }))).toInclude(field)
})

test('a file that is not JSON is refused', () => {
  expect(messageFor('{"id": "good",}')).toBe('bad.json: not valid JSON')
})

function messageFor(text: string): string {
  try {
    parseProvider(text, 'bad.json')
  } catch (error) {
    if (!(error instanceof ProviderFileError)) throw error
    expect(error.message).toStartWith('bad.json: ')
    return error.message
  }
  return 'not refused'
}
