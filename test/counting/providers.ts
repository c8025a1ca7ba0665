// A gateway whose providers each speak one dialect: those named lake count tokens in it, those named pond do not, those
// named spring make embeddings.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Harness, HarnessOptions } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'

const geminiPaths = ['/models/{model}:generateContent', '/models/{model}:streamGenerateContent?alt=sse']

interface TestProvider {
  readonly base: string
  readonly speaks: Readonly<Record<string, string | readonly string[]>>
  readonly counts?: Readonly<Record<string, string>>
}

const providers: Readonly<Record<string, TestProvider>> = {
  'lake-anthropic': {
    base: '/v1',
    speaks: { 'anthropic-messages': '/messages' },
    counts: { 'anthropic-messages': '/messages/count_tokens' },
  },
  'lake-responses': {
    base: '/v1',
    speaks: { 'openai-responses': '/responses' },
    counts: { 'openai-responses': '/responses/input_tokens' },
  },
  'lake-gemini': {
    base: '/v1beta',
    speaks: { gemini: geminiPaths },
    counts: { gemini: '/models/{model}:countTokens' },
  },
  'lake-ark': { base: '/api/v3', speaks: { 'ark': '/chat/completions', 'ark-tokenization': '/tokenization' } },
  'pond-chat': { base: '/v1', speaks: { 'openai-chat': '/chat/completions' } },
  'pond-anthropic': { base: '/v1', speaks: { 'anthropic-messages': '/messages' } },
  'spring-openai': { base: '/v1', speaks: { 'openai-embeddings': '/embeddings' } },
  'spring-ark': { base: '/api/v3', speaks: { 'ark-embeddings': '/embeddings' } },
  'spring-gemini': {
    base: '/v1beta',
    speaks: {
      'gemini-batch-embed': '/models/{model}:batchEmbedContents',
      'gemini-embed': '/models/{model}:embedContent',
    },
  },
}

const price = { input: '1', output: '2', cacheRead: '0.5' }
const models = [
  { id: 'echo', name: 'Echo', contextTokens: 32_768, outputTokensMax: 4_096, price },
  { id: 'blind', contextTokens: 32_768, outputTokensMax: 4_096, price, traits: { reads: ['text'], thinking: 'none' } },
]

export async function startProviders(options: HarnessOptions = {}): Promise<Harness> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-lakes-'))
  const env: Record<string, string> = { WEIR_PROVIDERS: folder }
  const nameOf = (id: string): string => id.toUpperCase().replaceAll('-', '_')
  const withNames = Object.entries(providers).map(([id, provider]) => ({ id, provider, name: nameOf(id) }))
  for (const { id, name, provider } of withNames) {
    const { base: _base, ...paths } = provider
    const at = { baseUrl: 'http://127.0.0.1:9', keyEnv: `${name}_KEY`, baseUrlEnv: `${name}_URL` }
    writeFileSync(join(folder, `${id}.json`), JSON.stringify({ id, name: id, ...at, ...paths, sign: 'bearer', models }))
    env[`${name}_KEY`] = `sk-${id}`
  }
  const harness = await startHarness({
    ...options,
    upstreamEnv: url => Object.fromEntries(withNames.map(({ name, provider }) => [`${name}_URL`, url + provider.base])),
    env: { ...env, ...options.env },
  })
  return {
    ...harness,
    async stop() {
      await harness.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
