// A gateway with two upstreams: `near` speaks openai-chat and is cheap, `far` speaks anthropic-messages and costs ten
// times as much. Each has as many keys as a test wants.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import type { Harness, HarnessOptions } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'

export interface TwoUpstreams extends Harness {
  readonly near: FakeUpstream
  readonly far: FakeUpstream
  /** Sets a route as an operator does. */
  setRoute(setRoute: string, members: string, policy?: string): Promise<unknown>
  call(key: string, model: string, more?: object): Promise<Response>
}

export interface TwoUpstreamsOptions extends HarnessOptions {
  readonly nearKeys?: string
  readonly farKeys?: string
  /** Fields that are added to, or replaced in, each provider file. */
  readonly nearFile?: object
  readonly farFile?: object
}

const model = (input: string, output: string): object => ({
  id: 'echo',
  contextTokens: 32_768,
  outputTokensMax: 1_000,
  price: { input, output },
})

const file = (id: string, own: object, more: object = {}): string =>
  JSON.stringify({
    id,
    name: id,
    baseUrl: 'https://nowhere.example',
    sign: 'bearer',
    keyEnv: `${id.toUpperCase()}_KEY`,
    baseUrlEnv: `${id.toUpperCase()}_URL`,
    ...own,
    ...more,
  })

/** For a provider that speaks openai-chat. */
export const chatPath = { 'openai-chat': '/chat/completions' }

export async function startTwoUpstreams(options: TwoUpstreamsOptions = {}): Promise<TwoUpstreams> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-shores-'))
  const cheap = { speaks: chatPath, models: [model('1', '2')] }
  const dear = { speaks: { 'anthropic-messages': '/messages' }, models: [model('10', '20')] }
  writeFileSync(join(folder, 'near.json'), file('near', cheap, options.nearFile))
  writeFileSync(join(folder, 'far.json'), file('far', dear, options.farFile))
  const [near, far] = [await startFakeUpstream(), await startFakeUpstream({ account: 1 })]
  const harness = await startHarness({
    ...options,
    env: {
      WEIR_PROVIDERS: folder,
      NEAR_URL: `${near.url}/v1`,
      FAR_URL: `${far.url}/v1`,
      WEIR_DRAIN_SECONDS: '0',
      NEAR_KEY: options.nearKeys ?? 'near-1',
      FAR_KEY: options.farKeys ?? 'far-1',
      WEIR_ATTEMPTS: '3',
      ...options.env,
    },
  })
  return {
    ...harness,
    near,
    far,
    setRoute(name, members, policy) {
      return harness.weir('routes set', { name, members: members.split(' '), policy })
    },
    call: (key, asked, more) => chat(harness, key, { model: asked, messages: hello, ...more }),
    async stop() {
      await harness.stop()
      await near.stop()
      await far.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The credentials that an upstream has received since then, in order. */
export const keysSince = ({ requests }: FakeUpstream, before: number): readonly (string | undefined)[] =>
  requests.slice(before).map(({ headers }) => headers.get('authorization')?.slice(7))
