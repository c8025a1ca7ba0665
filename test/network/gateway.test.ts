// The network guard as operators and callers see it: a whole gateway, its settings and its channels.

import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../src/config.ts'
import { startGateway } from '../../src/main.ts'
import { cert, key as certKey } from '../support/certificate.ts'
import type { Harness, HarnessOptions } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { ProxyOptions, ProxyServer } from './proxy-server.ts'
import { startProxy } from './proxy-server.ts'

const PASSWORD = 'canary-proxy-password'
const model = 'openai/gpt-4o-mini'
const closing: (() => unknown)[] = []
let harness: Harness

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function open(options: HarnessOptions = {}): Promise<void> {
  harness = await startHarness(options)
  closing.push(() => harness.stop())
}

async function openProxy(options: ProxyOptions = {}): Promise<ProxyServer> {
  const proxy = await startProxy(options)
  closing.push(() => proxy.stop())
  return proxy
}

interface ChatResult {
  readonly status: number
  readonly text: string
}

async function call(asked = model): Promise<ChatResult> {
  const answer = await chat(harness, await harness.key(), { model: asked, messages: hello })
  return { status: answer.status, text: await answer.text() }
}

/** Resolves every name to loopback. */
const onLoopback = { upstreams: { resolve: async () => ['127.0.0.1'], ca: cert } }
const named = (url: string): string => `${url.replace('127.0.0.1', 'upstream.test')}/v1`

describe('a proxy', () => {
  test('for all channels leads them to public hosts, and not to hosts on this machine', async () => {
    const proxy = await openProxy({ credentials: `gate:${PASSWORD}` })
    await open({
      upstreamEnv: url => ({ OPENAI_BASE_URL: named(url), OLLAMA_BASE_URL: `${url}/v1`, WEIR_PROXY: proxy.url() }),
    })
    expect((await call()).status).toBe(200)
    expect(proxy.heads).toHaveLength(1)
    expect(proxy.heads[0]).toStartWith('POST http://upstream.test:')
    expect((await call('ollama/whatever')).status).toBe(200)
    expect((await call('demo/echo')).status).toBe(200)
    expect(proxy.heads).toHaveLength(1)
    expect(harness.upstream.requests.at(-2)!.headers.has('proxy-authorization')).toBe(false)
    expect(harness.logs.join()).not.toContain(PASSWORD)
  })

  test('of one channel applies from when it is set until it is removed, and is stored as a secret', async () => {
    const proxy = await openProxy({ credentials: `gate:${PASSWORD}` })
    const folder = mkdtempSync(join(tmpdir(), 'weir-'))
    closing.push(() => rmSync(folder, { recursive: true, force: true }))
    const options: HarnessOptions = { folder, upstreamEnv: url => ({ OPENAI_BASE_URL: named(url) }), world: onLoopback }
    harness = await startHarness(options)
    const set = (input: object) => harness.weir('channels set', input)
    const callsBy = async (): Promise<number> => {
      const before = proxy.heads.length
      expect((await call()).status).toBe(200)
      return proxy.heads.length - before
    }
    expect(await callsBy()).toBe(0)
    const answer = await set({ channel: 'openai#1', proxy: proxy.url() })
    expect(await callsBy()).toBe(1)
    await set({ channel: 'openai#1', proxy: 'none' })
    expect(await callsBy()).toBe(0)
    await set({ channel: 'openai#1', proxy: proxy.url() })
    for (const invalid of ['https://gate:1', `socks5://gate:${PASSWORD}@x:1`, 'http://169.254.169.254:3128']) {
      const setting = (async () => await set({ channel: 'openai#1', proxy: invalid }))()
      await expect(setting).rejects.toThrow(/^--proxy is not valid: (?:it )?must (?!.*canary)/)
    }
    const { logs } = harness
    await harness.stop()
    await open(options)
    expect(await callsBy()).toBe(1)
    expect(logs.join() + harness.logs.join() + JSON.stringify(answer)).not.toContain(PASSWORD)
  })

  test('that refuses the gateway is logged, and callers learn nothing of it', async () => {
    const proxy = await openProxy({ credentials: 'somebody:else' })
    await open({ upstreamEnv: url => ({ OPENAI_BASE_URL: named(url), WEIR_PROXY: proxy.url(`gate:${PASSWORD}`) }) })
    const { status, text } = await call()
    expect([status, JSON.parse(text).error.code]).toEqual([502, 'upstream_unusable'])
    expect(text).not.toMatch(/proxy|407/i)
    expect(harness.logs.join()).toContain('the proxy refuses the user name and password (407)')
    expect(harness.logs.join()).not.toContain(PASSWORD)
    expect(harness.upstream.requests).toEqual([])
    expect(harness.openHolds()).toBe(0)
  })
})

describe('an upstream that cannot be reached', () => {
  test('because its name is unknown is a 502, and the log says why', async () => {
    const resolve = (): Promise<never> => Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' }))
    await open({ upstreamEnv: url => ({ OPENAI_BASE_URL: named(url) }), world: { upstreams: { resolve } } })
    const { status, text } = await call()
    expect([status, JSON.parse(text).error.code]).toEqual([502, 'upstream_unusable'])
    expect(harness.logs.join()).toContain('cannot connect: its host name does not resolve: ENOTFOUND')
    expect(text).not.toContain('upstream.test')
  })

  test('because its certificate is for another name is a 502, and nothing was sent to it', async () => {
    let received = 0
    const wrongServer = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      tls: { key: certKey, cert },
      socket: { data: (_socket, bytes) => void (received += bytes.length), error() {} },
    })
    closing.push(() => wrongServer.stop(true))
    await open({ env: { OPENAI_BASE_URL: `https://other.test:${wrongServer.port}` }, world: onLoopback })
    expect((await call()).status).toBe(502)
    expect(harness.logs.join()).toContain('the certificate was refused')
    expect(received).toBe(0)
  })
})

describe('an address that is not public', () => {
  const start = (env: Record<string, string>) => startGateway(readConfig({ PORT: '0', LOG_LEVEL: 'silent', ...env }))

  test.each([
    ['OPENAI_BASE_URL', 'http://169.254.169.254/v1', 'OPENAI_BASE_URL must not be a cloud metadata'],
    ['OPENAI_BASE_URL', 'http://[::ffff:a9fe:a9fe]', 'OPENAI_BASE_URL must not be a cloud metadata'],
    ['OPENAI_BASE_URL', 'https://metadata.google.internal', 'OPENAI_BASE_URL must not be a cloud metadata'],
    ['OPENAI_BASE_URL', 'https://a:canary@api.example.com', 'OPENAI_BASE_URL must not hold credentials'],
    ['OPENAI_BASE_URL', 'https://api.example.com?key=canary', 'OPENAI_BASE_URL must be an address without a query'],
    ['OPENAI_BASE_URL', 'ftp://api.example.com', 'OPENAI_BASE_URL must be an http(s) address'],
    ['WEIR_PRIVATE_HOSTS', '169.254.169.254', 'WEIR_PRIVATE_HOSTS must be hosts, addresses or ranges'],
    ['WEIR_PROXY', 'https://a:canary@gate', 'WEIR_PROXY must be a proxy as http://name:password@host:port'],
  ])('in %s as %s stops the start', async (name, value, words) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-'))
    closing.push(() => rmSync(folder, { recursive: true, force: true }))
    const starting = (async () => await start({ WEIR_DATA: folder, OPENAI_API_KEY: 'k', [name]: value }))()
    const fault = await starting.then(
      () => new Error('it started'),
      (reason: Error) => reason,
    )
    expect(fault.message).toStartWith(words)
    expect(fault.message).not.toContain('canary')
  })

  test("needs no list if an operator writes it, and one if a provider's file names it", async () => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-providers-'))
    closing.push(() => rmSync(folder, { recursive: true, force: true }))
    await open({ upstreamEnv: url => ({ OLLAMA_BASE_URL: `${url}/v1` }) })
    expect((await call('ollama/whatever')).status).toBe(200)
    const { port } = new URL(harness.upstream.url)
    const head = { id: 'inside', name: 'Inside', baseUrl: `http://inside.test:${port}/v1`, keyEnv: 'INSIDE_KEY' }
    const rest = { baseUrlEnv: 'INSIDE_URL', speaks: { 'openai-chat': '/chat/completions' }, sign: 'bearer' }
    const text = JSON.stringify({ ...head, ...rest, free: true, openModels: true, models: [] })
    writeFileSync(join(folder, 'inside.json'), text)
    const env = { WEIR_PROVIDERS: folder, INSIDE_KEY: 'k' }
    await expect(startHarness({ env })).rejects.toThrow('must be https, unless WEIR_PRIVATE_HOSTS names inside.test')
    const upstream = harness
    await open({ env: { ...env, WEIR_PRIVATE_HOSTS: 'inside.test' }, world: onLoopback })
    expect((await call('inside/whatever')).status).toBe(200)
    expect(upstream.upstream.requests).toHaveLength(2)
  })
})
