// A gateway that unrelated accounts share. Its provider "river" lists two models, accepts unlisted ones, and has a channel
// for each key that a test passes.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { channelId } from '../../src/upstreams/channels.ts'
import type { ReceivedRequest } from '../../tools/fake-upstream/request.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { scripted } from '../../tools/fake-upstream/script.ts'
import type { Harness, HarnessOptions } from '../support/gateway.ts'
import { chat, startHarness } from '../support/gateway.ts'

export interface Tenants extends Harness {
  /** Milliseconds for which calls would have waited for a channel; the pauses themselves are skipped. */
  readonly pauses: readonly number[]
  operate(command: string, input: object): Promise<Record<string, unknown>>
  ask(key: string, content: string, more?: object): Promise<Response>
}

export const channelOf = (key: string): string => channelId('river', key)
export const credentialOf = ({ headers }: ReceivedRequest): string | undefined => headers.get('authorization')?.slice(7)

const price = { input: '1', output: '2' }
const model = (id: string): object => ({ id, contextTokens: 32_768, outputTokensMax: 1_000, price })

const river = {
  id: 'river',
  name: 'River',
  baseUrl: 'https://nowhere.example',
  keyEnv: 'RIVER_KEY',
  baseUrlEnv: 'RIVER_URL',
  speaks: { 'openai-chat': '/chat/completions', 'anthropic-messages': '/messages' },
  counts: { 'anthropic-messages': '/messages/count_tokens' },
  sign: 'bearer',
  openModels: true,
  free: true,
  models: [model('small'), model('large')],
}

export async function startTenants(riverKeys: string, options: HarnessOptions = {}): Promise<Tenants> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-tenants-'))
  writeFileSync(join(folder, 'river.json'), JSON.stringify(river))
  const pauses: number[] = []
  const harness = await startHarness({
    ...options,
    upstreamEnv: url => ({ RIVER_URL: `${url}/v1` }),
    env: {
      WEIR_PROVIDERS: folder,
      RIVER_KEY: riverKeys,
      WEIR_ATTEMPTS: '3',
      WEIR_DRAIN_SECONDS: '0',
      ...options.env,
    },
    world: { pause: async (ms: number) => void pauses.push(ms), ...options.world },
  })
  return {
    ...harness,
    pauses,
    operate: (command, input) => harness.weir(command, input as never) as Promise<Record<string, unknown>>,
    ask: (key, content, more) =>
      chat(harness, key, { model: 'river/small', messages: [{ role: 'user', content }], ...more }),
    async stop() {
      await harness.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Answers with `script` if the body of the request contains the word, else with `usual`. */
export function poisoned(word: string, script: Script, usual: Script): Script {
  return scripted(request => (request.body.toString().includes(word) ? script : usual).steps(request))
}
