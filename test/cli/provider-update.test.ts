// Newer provider data: it is installed only with its checksum, and it cannot move a key to another address.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import packageJson from '../../package.json'
import { providerData } from '../../scripts/write-provider-data.ts'
import { cliCommands } from '../../src/cli/commands/commands.ts'
import { plain } from '../../tools/fake-upstream/answers.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'

let folder: string
const before = process.env.WEIR_DATA
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-update-'))
  process.env.WEIR_DATA = folder
})
afterEach(() => {
  if (before === undefined) delete process.env.WEIR_DATA
  else process.env.WEIR_DATA = before
  rmSync(folder, { recursive: true, force: true })
})

interface Definition {
  id: string
  models: { id: string; price?: object }[]
  [field: string]: unknown
}

const shipped = (): { format: number; providers: Definition[] } => JSON.parse(providerData())
const sumOf = (text: string): string => createHash('sha256').update(text).digest('hex')

async function install(data: unknown, sha256?: string): Promise<string> {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  const file = join(folder, 'data.json')
  writeFileSync(file, text)
  const write = process.stdout.write
  process.stdout.write = (() => true) as typeof write
  try {
    await cliCommands['providers update']!.run([file, '--sha256', sha256 ?? sumOf(text)])
    return 'installed'
  } catch (fault) {
    return (fault as Error).message
  } finally {
    process.stdout.write = write
  }
}

/** The shipped data with one provider changed. */
function changed(id: string, change: object): unknown {
  const { format, providers } = shipped()
  return { format, providers: providers.map(provider => (provider.id === id ? { ...provider, ...change } : provider)) }
}

const usage = { input: 7, output: 5 }

test('new models and prices are used from the next start on, by this version only', async () => {
  const openai = shipped().providers.find(({ id }) => id === 'openai')!
  const models = openai.models.map(model =>
    model.id === 'gpt-4o-mini' ? { ...model, price: { input: '1', output: '2' } } : model,
  )
  const added = { id: 'gpt-99', price: { input: '3', output: '4' }, contextTokens: 1_000, outputTokensMax: 100 }
  expect(await install(changed('openai', { models: [...models, added] }))).toBe('installed')
  const costs = async (): Promise<readonly unknown[]> => {
    const harness = await startHarness({ folder })
    const key = await harness.key()
    const results: unknown[] = []
    for (const model of ['gpt-99', 'openai/gpt-4o-mini']) {
      harness.upstream.plan(plain('hi', { usage }))
      const { status } = await chat(harness, key, { model, messages: hello, max_tokens: 10 })
      await harness.idle()
      results.push(status === 200 ? harness.lastRecord()!.cost : status)
    }
    await harness.stop()
    return results
  }
  expect(await costs()).toEqual([7 * 3_000 + 5 * 4_000, 7 * 1_000 + 5 * 2_000])
  const updates = join(folder, 'providers')
  renameSync(join(updates, packageJson.version), join(updates, '0.0.1'))
  expect(await costs()).toEqual([404, 7 * 150 + 5 * 600])
})

test.each([
  ['another checksum', () => install(shipped(), 'a'.repeat(64)), /The checksum of the file is [0-9a-f]{64}/],
  ['no checksum', () => install(shipped(), ''), /The value of --sha256 is empty/],
  ['half a checksum', () => install(shipped(), 'a'.repeat(32)), /--sha256 must be 64 hexadecimal digits/],
  ['no JSON', () => install('{'), /not valid JSON/],
  ['another format', () => install({ format: 2, providers: [] }), /must have "format": 1/],
  [
    'a provider twice',
    () => install({ format: 1, providers: [...shipped().providers, shipped().providers[0]] }),
    /twice/,
  ],
  ['an unknown field', () => install(changed('openai', { colour: 'red' })), /unknown field "colour"/],
  [
    'a free model',
    () => install(changed('openai', { models: [{ id: 'x', price: { input: '0', output: '0' } }] })),
    /0/,
  ],
  [
    'another address',
    () => install(changed('openai', { baseUrl: 'https://evil.example/v1' })),
    /openai has another address/,
  ],
  ['another key', () => install(changed('groq', { keyEnv: 'OPENAI_API_KEY' })), /groq has another address/],
  ['a probe', () => install(changed('groq', { localServer: {} })), /localServer/],
])('%s is refused, and nothing is changed', async (_, run, text) => {
  expect(await run()).toMatch(text)
  expect(existsSync(join(folder, 'providers'))).toBe(false)
})

test('a provider that this version does not have is left out', async () => {
  const { format, providers } = shipped()
  const thief = { ...providers.find(({ id }) => id === 'groq')!, id: 'thief', keyEnv: 'OPENAI_API_KEY' }
  expect(await install({ format, providers: [thief, providers[0]] })).toBe('installed')
  expect(readdirSync(join(folder, 'providers', packageJson.version))).toEqual(['anthropic.json'])
})

test('an update replaces the one before, also what a broken one left', async () => {
  const updates = join(folder, 'providers')
  mkdirSync(join(updates, `${packageJson.version}.new`), { recursive: true })
  writeFileSync(join(updates, `${packageJson.version}.new`, 'half.json'), '{')
  const { format, providers } = shipped()
  expect(await install({ format, providers: providers.slice(0, 3) })).toBe('installed')
  expect(await install({ format, providers: providers.slice(0, 1) })).toBe('installed')
  expect(readdirSync(updates)).toEqual([packageJson.version])
  expect(readdirSync(join(updates, packageJson.version))).toEqual(['anthropic.json'])
})
