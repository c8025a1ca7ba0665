import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Rates } from '../base/money/price.ts'
import { canBeFree } from '../base/money/price.ts'
import type { Provider } from './provider.ts'
import { ProviderFileError, parseProvider } from './provider.ts'
import { applyQuirks, streamFormat } from './quirks.ts'
import { defaultTimeouts, timeoutsOf } from './timeouts.ts'

const folder = join(import.meta.dir, '..', '..', 'providers')
const files = readdirSync(folder)
const readProvider = (file: string): Provider => parseProvider(readFileSync(join(folder, file), 'utf8'), file)
const providers = files.map(readProvider)

/** Whether a dialect is one of passthrough calls. */
const isPassthrough = (dialect: string): boolean =>
  /-(completions|embeddings|embed|images|image-edits|speech|transcription|moderations)$/.test(dialect)

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

test('only self-hosted servers are free, and only they and the built-in provider need no key', () => {
  for (const { id, baseUrl, free, keyless, builtIn } of providers) {
    const local = baseUrl.startsWith('http://127.0.0.1:')
    expect([id, free, keyless]).toEqual([id, local && !builtIn, local])
    expect(local || baseUrl.startsWith('https://')).toBe(true)
  }
})

test('no model with a price is free', () => {
  for (const { id, free, models } of providers) {
    for (const { id: model, price, speaks } of free ? [] : models.values()) {
      expect([id, model, price !== undefined && canBeFree(price)]).toEqual([id, model, false])
      if (speaks?.every(isPassthrough)) continue // it has no chat, and may be billed in other units than tokens
      const hasRates = price && [price.rates, ...price.cases.map(priceCase => priceCase.rates)].every(areAboveZero)
      expect([id, model, hasRates ?? true]).toEqual([id, model, true])
    }
  }
})

const areAboveZero = (rates: Rates): boolean => Object.values(rates).every(rate => rate > 0n)

test('a cached token never costs more than a fresh one', () => {
  for (const { id, models } of providers) {
    for (const { id: model, price } of models.values()) {
      const { input = 0n, cacheRead = 0n } = price?.rates ?? {}
      expect([id, model, cacheRead <= input]).toEqual([id, model, true])
    }
  }
})

test('every priced model of the large vendors has a maximum output', () => {
  for (const file of ['anthropic', 'bedrock', 'openai', 'deepseek', 'groq', 'xai', 'mistral', 'google', 'vertex']) {
    for (const { id, price, outputTokensMax, speaks } of readProvider(`${file}.json`).models.values()) {
      if (speaks?.every(isPassthrough)) continue // it has no chat
      expect([file, id, !price || outputTokensMax !== undefined]).toEqual([file, id, true])
    }
  }
})

test('no maximum output is larger than the context', () => {
  for (const { id, models } of providers) {
    for (const { id: model, contextTokens = Infinity, outputTokensMax = 0 } of models.values()) {
      expect([id, model, outputTokensMax <= contextTokens]).toEqual([id, model, true])
    }
  }
})

test('maximum outputs are those of the vendors', () => {
  const rows = [
    ['openai.json', 'gpt-4.1', 32_768],
    ['openai.json', 'gpt-4o-2024-05-13', 4_096],
    ['openai.json', 'gpt-5.2-chat-latest', 16_384],
    ['openai.json', 'o3-2025-04-16', 100_000],
    ['openai.json', 'gpt-6-sol', 128_000],
    ['google.json', 'gemini-2.5-pro', 65_536],
    ['anthropic.json', 'claude-opus-5-5', 128_000],
    ['anthropic.json', 'claude-sonnet-4-6', 128_000],
    ['anthropic.json', 'claude-opus-4-5-20251101', 64_000],
    ['anthropic.json', 'claude-sonnet-4-20250514', 64_000],
    ['bedrock.json', 'us.anthropic.claude-opus-4-1-20250805-v1:0', 32_000],
    ['vertex-anthropic.json', 'claude-sonnet-4-5@20250929', 64_000],
    ['groq.json', 'qwen/qwen3-32b', 40_960],
    ['mistral.json', 'codestral-latest', 256_000], // only the context limits it; 4,096 is a placeholder of the source
    ['openrouter.json', 'openai/gpt-4.1-nano', 32_768], // the maximum of its maker, not the guess of the source
    ['openrouter.json', 'openai/gpt-oss-120b', 131_072], // the highest maximum of its hosts
  ] as const
  for (const [file, model, expected] of rows) {
    const found: unknown = readProvider(file).models.get(model)?.outputTokensMax
    expect([file, model, found]).toEqual([file, model, expected])
  }
})

test('the built-in provider has its models', () => {
  const demo = readProvider('demo.json')
  expect([demo.builtIn, demo.keyless, demo.sign['openai-chat']]).toEqual([true, true, 'none'])
  expect([...demo.models.keys()]).toEqual(['echo', 'lorem', 'slow', 'think', 'json', 'see'])
})

test('the best supported dialect comes first, and each has its signing method', () => {
  const rows = [
    ['openai', { 'openai-responses': 'bearer', 'openai-chat': 'bearer' }],
    ['google', { 'gemini': 'x-goog-api-key', 'openai-chat': 'bearer' }],
    ['ark', { 'ark': 'bearer', 'ark-responses': 'bearer', 'openai-chat': 'bearer' }],
    ['anthropic', { 'anthropic-messages': 'x-api-key' }],
    ['azure', { 'openai-responses': 'api-key', 'openai-chat': 'api-key' }],
    ['deepseek', { 'openai-chat': 'bearer', 'anthropic-messages': 'x-api-key' }],
    ['bedrock', { 'anthropic-messages': 'sigv4:bedrock' }],
    ['vertex', { gemini: 'google-token' }],
  ] as const
  for (const [file, sign] of rows) {
    const provider = readProvider(`${file}.json`)
    const count = Object.keys(sign).length // after these come dialects that are not translated
    expect([file, ...Object.entries(provider.sign).slice(0, count)]).toEqual([file, ...Object.entries(sign)])
    expect(Object.keys(provider.speaks).slice(0, count)).toEqual(Object.keys(sign))
  }
})

test('a model may support only some of the dialects', () => {
  expect(readProvider('openai.json').models.get('gpt-audio')!.speaks).toEqual(['openai-chat'])
  expect(readProvider('openai.json').models.get('gpt-5')!.speaks).toBeUndefined()
})

test('Claude at another vendor has the quirks of that vendor', () => {
  const body = Buffer.from('{"model":"m","stream":true,"max_tokens":9}')
  const request = { url: 'https://x.example/model/a:0/invoke', headers: {}, body }
  const bedrock = readProvider('bedrock.json')
  const sent = applyQuirks(bedrock, request)
  expect(sent.url).toBe('https://x.example/model/a%3A0/invoke')
  expect(String(sent.body)).toBe('{"max_tokens":9,"anthropic_version":"bedrock-2023-05-31"}')
  expect(streamFormat(bedrock).contentType).toBe('application/vnd.amazon.eventstream')
  const vertex = applyQuirks(readProvider('vertex-anthropic.json'), request)
  expect(String(vertex.body)).toBe('{"stream":true,"max_tokens":9,"anthropic_version":"vertex-2023-10-16"}')
})

test('a model inherits the traits of its provider', () => {
  const models = [{ id: 'a', traits: { sampling: false } }, { id: 'b' }]
  const traits = { sampling: true, thinking: 'none' }
  const provider = parseProvider(JSON.stringify({ ...good, traits, models }), 'good.json')
  expect(provider.models.get('a')!.traits).toEqual({ sampling: false, thinking: 'none' })
  expect(provider.models.get('b')!.traits).toEqual({ sampling: true, thinking: 'none' })
  expect(provider.traits).toEqual({ sampling: true, thinking: 'none' })
})

test('a model inherits the timeouts of its provider, and a provider the defaults', () => {
  const models = [{ id: 'a', times: { firstContentSeconds: 300, totalSeconds: 900 } }, { id: 'b' }]
  const times = { connectSeconds: 2, betweenChunksSeconds: 90 }
  const provider = parseProvider(JSON.stringify({ ...good, times, models }), 'good.json')
  const own = { ...defaultTimeouts, connectMs: 2_000, betweenChunksMs: 90_000 }
  expect(provider.times).toEqual(own)
  const [a, b] = [provider.models.get('a')!, provider.models.get('b')!]
  expect(timeoutsOf(provider, a)).toEqual({ ...own, firstContentMs: 300_000, totalMs: 900_000 })
  expect(timeoutsOf(provider, b)).toEqual(own)
  expect(parseProvider(JSON.stringify(good), 'good.json').times).toEqual({
    connectMs: 5_000,
    tlsMs: 5_000,
    firstContentMs: 120_000,
    betweenChunksMs: 60_000,
    totalMs: 600_000,
  })
})

test('models with long reasoning have longer timeouts', () => {
  const timesOf = (file: string, model: string) => readProvider(file).models.get(model)!.times
  expect(timesOf('openai.json', 'gpt-5')).toMatchObject({ firstContentMs: 300_000, totalMs: 1_800_000 })
  expect(timesOf('openai.json', 'gpt-4o')).toBeUndefined()
  expect(timesOf('anthropic.json', 'claude-opus-4-8')).toMatchObject({
    firstContentMs: 300_000,
    betweenChunksMs: 60_000,
  })
  expect(readProvider('deepseek.json').times.firstContentMs).toBe(600_000)
})

test('tags are words, and there are none by default', () => {
  const tagsOf = (more: object) => parseProvider(JSON.stringify({ ...good, ...more }), 'good.json').tags
  expect([tagsOf({}), tagsOf({ tags: ['eu', 'no-training', '2026'] })]).toEqual([[], ['eu', 'no-training', '2026']])
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
  expect(provider.can).toEqual({
    streamUsage: true,
    outputCap: 'max_tokens',
    capsThought: true,
    keepsResponses: false,
    billsWhenLeft: false,
    keepsThreads: false,
    labelsSessions: false,
    chatFields: ['user'],
    missingChatFields: [],
    systemAnywhere: false,
    userAfterTool: true,
  })
  expect(provider.models.get('a')?.price as unknown).toEqual({
    rates: { input: 1_000_000_000n, output: 2_500_000_000n },
    cases: [],
  })
})

const badFiles: readonly (readonly [name: string, change: object, field: string])[] = [
  ['an unknown field', { colour: 'red' }, '"colour"'],
  ['makers that are a list', { makers: ['a'] }, '"makers"'],
  ['a maker without a name', { makers: { '*': 'openai' } }, '"makers"'],
  ['a maker with too many stars', { makers: { '*/*/*': 'openai/*' } }, '"makers"'],
  ['a star for the name from nowhere', { makers: { x: 'openai/*' } }, '"makers"'],
  ['a maker that is a number', { makers: { x: 7 } }, '"makers"'],
  ['a former name of no model', { formerNames: { old: 'none' } }, '"formerNames"'],
  ['a local server elsewhere', { localServer: { ownedBy: 'x' }, keyless: true }, '"localServer"'],
  ['a local server with a key', { localServer: { ownedBy: 'x' }, baseUrl: 'http://127.0.0.1:9/v1' }, '"localServer"'],
  ['an owner that is a number', { localServer: { ownedBy: 7 } }, '"localServer.ownedBy"'],
  ['a local server that any program may be', { localServer: {} }, 'must say how the server is recognised'],
  ['answers without fields', { localServer: { answers: { '/version': [] } } }, '"localServer.answers"'],
  ['answers at another address', { localServer: { answers: { 'http://x/': ['a'] } } }, '"localServer.answers"'],
  ['a list of models without prices', { modelList: { perTokens: 1 } }, '"modelList"'],
  ['prices for 7 tokens', { modelList: { perTokens: 7, price: { input: 'a', output: 'b' } } }, '"perTokens"'],
  ['a path of a price with a blank', { modelList: { perTokens: 1, price: { input: 'a b', output: 'b' } } }, '"price"'],
  ['a field of a list that is not there', { modelList: { perTokens: 1, price: {}, colour: 'red' } }, '"colour"'],
  ['a capability that is a number', { can: { keepsResponses: 1 } }, '"can.keepsResponses"'],
  ['a capability that is text', { can: { billsWhenLeft: 'yes' } }, '"can.billsWhenLeft"'],
  ['a flag of a model that is a number', withModel({ billsWhenLeft: 1 }), '"billsWhenLeft"'],
  ['a capability that is a string', { can: { capsThought: 'no' } }, '"can.capsThought"'],
  ['an unknown capability', { can: { fly: true } }, '"fly"'],
  ['no id', { id: undefined }, '"id"'],
  ['an id in capitals', { id: 'Good' }, '"id"'],
  ['an id with a slash', { id: 'go/od' }, '"id"'],
  ['an id with an invisible character', { id: 'go\u200bod' }, '"id"'],
  ['no name', { name: undefined }, '"name"'],
  ['an empty name', { name: '' }, '"name"'],
  ['a website that is not a string', { website: 1 }, '"website"'],
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
  ['a path that is not a string', { speaks: { 'openai-chat': true } }, '"speaks.openai-chat"'],
  ['a path with a space', { speaks: { 'openai-chat': '/chat x' } }, '"speaks.openai-chat"'],
  ['the path /../admin (0)', { speaks: { 'openai-chat': '/../admin' } }, '"speaks.openai-chat"'],
  ['the path /a/../../admin (1)', { speaks: { 'openai-chat': '/a/../../admin' } }, '"speaks.openai-chat"'],
  ['the path /a/.. (2)', { speaks: { 'openai-chat': '/a/..' } }, '"speaks.openai-chat"'],
  ['the path /a/./b (3)', { speaks: { 'openai-chat': '/a/./b' } }, '"speaks.openai-chat"'],
  ['the path //evil.example/x (4)', { speaks: { 'openai-chat': '//evil.example/x' } }, '"speaks.openai-chat"'],
  ['the path /a//b (5)', { speaks: { 'openai-chat': '/a//b' } }, '"speaks.openai-chat"'],
  ['the path /%2e%2e/x (6)', { speaks: { 'openai-chat': '/%2e%2e/x' } }, '"speaks.openai-chat"'],
  ['the path /a/../b (7)', { speaks: { 'openai-chat': '/a\\..\\b' } }, '"speaks.openai-chat"'],
  ['path https://evil.example/x (8)', { speaks: { 'openai-chat': 'https://evil.example/x' } }, '"speaks.openai-chat"'],
  ['the path /a#b (9)', { speaks: { 'openai-chat': '/a#b' } }, '"speaks.openai-chat"'],
  ['the path /a/?x=1 (10)', { speaks: { 'openai-chat': '/a/?x=1' } }, '"speaks.openai-chat"'],
  ['the path /{other}/x (11)', { speaks: { 'openai-chat': '/{other}/x' } }, '"speaks.openai-chat"'],
  ['the path /{model}/{model} (12)', { speaks: { 'openai-chat': '/{model}/{model}' } }, '"speaks.openai-chat"'],
  ['a count path that goes up', { counts: { 'openai-chat': '/../x' } }, '"counts.openai-chat"'],
  ['three paths', { speaks: { gemini: ['/a', '/b', '/c'] } }, '"speaks.gemini"'],
  ['no signing', { sign: undefined }, '"sign"'],
  ['an unknown signing method', { sign: 'wax' }, '"sign"'],
  ['the name of an object property as a signing method', { sign: 'constructor' }, '"sign"'],
  ['a signing method without its argument', { sign: 'sigv4' }, '"sign"'],
  ['a signing method with an argument too many', { sign: 'bearer:x' }, '"sign"'],
  ['a dialect that is not signed', { speaks: { a: '/a', b: '/b' }, sign: { a: 'bearer' } }, '"sign"'],
  ['signing of a dialect that is not spoken', { sign: { 'openai-chat': 'bearer', 'b': 'bearer' } }, '"b"'],
  ['a list of signing methods', { sign: ['bearer'] }, '"sign"'],
  ['a model of a dialect that is not spoken', withModel({ speaks: ['gemini'] }), 'model "a": "speaks"'],
  ['a model of no dialect', withModel({ speaks: [] }), 'model "a": "speaks"'],
  ['an unknown quirk', { quirks: ['limps'] }, 'limps'],
  ['the name of an object property as a quirk', { quirks: ['toString'] }, 'toString'],
  ['a quirk without its argument', { quirks: ['anthropicVersionInBody'] }, 'anthropicVersionInBody'],
  ['a quirk with an argument too many', { quirks: ['bodyWithoutModel:x'] }, 'bodyWithoutModel:x'],
  ['quirks that are not a list', { quirks: 'bodyWithoutModel' }, '"quirks"'],
  ['timeouts that are not an object', { times: 5 }, '"times"'],
  ['an unknown timeout', { times: { napSeconds: 5 } }, '"napSeconds"'],
  ['a timeout of zero', { times: { connectSeconds: 0 } }, '"times.connectSeconds"'],
  ['a negative timeout', { times: { tlsSeconds: -1 } }, '"times.tlsSeconds"'],
  ['a timeout of half a second', { times: { firstContentSeconds: 0.5 } }, '"times.firstContentSeconds"'],
  ['a timeout that is a string', { times: { betweenChunksSeconds: '5' } }, '"times.betweenChunksSeconds"'],
  ['a timeout above the maximum', { times: { totalSeconds: 3_601 } }, 'from 1 to 3600'],
  ['a connect timeout above the maximum', { times: { connectSeconds: 61 } }, 'from 1 to 60'],
  ['a timeout of the first content above the total', { times: { firstContentSeconds: 601 } }, '"times.totalSeconds"'],
  [
    'a total timeout of a model below that of the first content',
    withModel({ times: { totalSeconds: 30 } }),
    'model "a": "times.firstContentSeconds"',
  ],
  ['a connect timeout of a model', withModel({ times: { connectSeconds: 5 } }), 'model "a": "times.connectSeconds"'],
  ['tags that are not a list', { tags: 'eu' }, '"tags" must be a list'],
  ['a tag that is not a word', { tags: ['eu', 'No Training'] }, '"tags" must be a list of words'],
  ['an empty tag', { tags: [''] }, '"tags"'],
  ['a tag that is too long', { tags: ['x'.repeat(41)] }, '"tags"'],
  ['an unknown trait', { traits: { clever: true } }, '"clever"'],
  ['an unknown trait of a model', withModel({ traits: { clever: true } }), 'model "a": "traits"'],
  ['a base URL with an empty brace', { baseUrl: 'https://{}.good.test' }, '"baseUrl"'],
  ['a base URL with an open brace', { baseUrl: 'https://{GOOD.test' }, '"baseUrl"'],
  ['a count in a dialect that is not spoken', { counts: { gemini: '/count' } }, '"gemini"'],
  ['a count path without a slash', { counts: { 'openai-chat': 'count' } }, '"counts.openai-chat"'],
  ['a flag that is a string', { openModels: 'true' }, '"openModels"'],
  ['a flag that is a number', { free: 1 }, '"free"'],
  ['another capability that is a string', { can: { streamUsage: 'false' } }, '"can.streamUsage"'],
  ['a chat field that does not exist', { can: { chatFields: ['seeds'] } }, '"can.chatFields"'],
  ['a usual chat field twice', { can: { missingChatFields: ['seed', 'seed'] } }, '"can.missingChatFields"'],
  ['a missing chat field that is not usual', { can: { missingChatFields: ['verbosity'] } }, '"can.missingChatFields"'],
  ['ids of calls that are too short', { can: { callIdChars: 7 } }, '"can.callIdChars"'],
  ['ids of calls that are a pattern', { can: { callIdChars: '[a-z]{9}' } }, '"can.callIdChars"'],
  ['a cap in an unknown field', { can: { outputCap: 'max_output' } }, '"can.outputCap"'],
  ['a misspelt field of a model', withModel({ prices: {} }), '"prices"'],
  ['a misspelt field of a price', withPrice({ cacheread: '1' }), '"cacheread"'],
  ['a price that is null', withModel({ price: null }), '"price"'],
  ['a model that is null', { models: [null] }, 'a model'],
  ['a name that is a number', withModel({ name: 5 }), '"name"'],
  ['a price of zero', withPrice({ input: '0', output: '0' }), '"free"'],
  ['a case with a price of zero', withPrice({ cases: [{ class: 'batch', input: '0', output: '0' }] }), '"free"'],
  ['no models', { models: undefined }, '"models"'],
  ['models that are not a list', { models: { a: {} } }, '"models"'],
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
  ['a maximum output that is a string', withModel({ outputTokensMax: '4096' }), 'model "a"'],
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
