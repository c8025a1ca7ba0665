// A gateway with five providers, each of which speaks one dialect only. The fake upstream serves all of them.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CHAT_FIELDS } from '../../src/base/chat-fields.ts'
import type { Harness, HarnessOptions } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'

export const dialects = ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini', 'ark'] as const
export type Dialect = (typeof dialects)[number]

interface DialectPaths {
  readonly base: string
  readonly paths: string | readonly string[]
}

export const dialectPaths: Readonly<Record<Dialect, DialectPaths>> = {
  'openai-chat': { base: '/v1', paths: '/chat/completions' },
  'openai-responses': { base: '/v1', paths: '/responses' },
  'anthropic-messages': { base: '/v1', paths: '/messages' },
  'gemini': {
    base: '/v1beta',
    paths: ['/models/{model}:generateContent', '/models/{model}:streamGenerateContent?alt=sse'],
  },
  'ark': { base: '/api/v3', paths: '/chat/completions' },
}

/** The provider of a dialect: `up-gemini`, `up-ark` and so on. */
export const providerOf = (dialect: Dialect): string => `up-${dialect}`

export const modelOf = (dialect: Dialect, model = 'echo'): string => `${providerOf(dialect)}/${model}`

/** The default models. */
export const models = ['echo', 'lorem', 'slow', 'think', 'json', 'see'].map(id => ({
  id,
  contextTokens: 32_768,
  outputTokensMax: 4_096,
  price: { input: '1', output: '2', cacheRead: '0.5' },
}))

/** The same models without thinking: when a caller disconnects, the gateway closes the upstream connection at once. */
export const modelsWithoutThinking: readonly object[] = models.map(model => ({
  ...model,
  traits: { thinking: 'none' },
}))

export interface DialectsOptions extends HarnessOptions {
  /** Replaces the default models; written as in a provider file. */
  readonly models?: readonly object[]
}

export async function startDialects(options: DialectsOptions = {}): Promise<Harness> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-dialects-'))
  const env: Record<string, string> = { WEIR_PROVIDERS: folder }
  for (const dialect of dialects) {
    const name = dialect.toUpperCase().replaceAll('-', '_')
    const provider = {
      id: providerOf(dialect),
      name: `Only ${dialect}`,
      baseUrl: 'http://127.0.0.1:9',
      keyEnv: `UP_${name}_KEY`,
      baseUrlEnv: `UP_${name}_URL`,
      speaks: { [dialect]: dialectPaths[dialect].paths },
      sign: 'bearer',
      // Like OpenAI, which has all optional parts of its dialect, and system messages anywhere.
      can: { chatFields: CHAT_FIELDS, systemAnywhere: true },
      models: options.models ?? models,
    }
    writeFileSync(join(folder, `${provider.id}.json`), JSON.stringify(provider))
    env[provider.keyEnv] = `sk-${dialect}`
  }
  const harness = await startHarness({
    ...options,
    upstreamEnv: url => Object.fromEntries(dialects.map(dialect => upstreamUrl(dialect, url))),
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

const upstreamUrl = (dialect: Dialect, url: string): [string, string] => [
  `UP_${dialect.toUpperCase().replaceAll('-', '_')}_URL`,
  url + dialectPaths[dialect].base,
]
