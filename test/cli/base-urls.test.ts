// Base URLs as people set them: those with one meaning work, and `weir check` and `weir doctor` tell the others with
// what to do. Callers learn nothing of it.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runChecks } from '../../src/cli/checks/check.ts'
import { collectFacts } from '../../src/cli/checks/doctor.ts'
import { diagnose } from '../../src/cli/checks/doctor-checks.ts'
import { readConfig } from '../../src/config.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { bytes, end, head, script } from '../../tools/fake-upstream/script.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'

const KEY = 'sk-canary-base-url-0123456789'

describe('a gateway', () => {
  test.each(['', '/', '/v1', '/v1/', '/v1/chat/completions', '/api', '/api/chat'])(
    'reaches a local server whose address ends in "%s"',
    async path => {
      const harness = await startHarness({ upstreamEnv: url => ({ OLLAMA_BASE_URL: url + path }) })
      try {
        const told = await chat(harness, await harness.key(), { model: 'ollama/echo', messages: hello })
        expect(told.status).toBe(200)
        expect(harness.upstream.requests.at(-1)!.path).toBe('/v1/chat/completions')
      } finally {
        await harness.stop()
      }
    },
  )

  test('says in its log, and to no caller, that an address may be wrong', async () => {
    const harness = await startHarness({ upstreamEnv: url => ({ OLLAMA_BASE_URL: `${url}/elsewhere` }) })
    try {
      harness.upstream.plan(pageOf(404, '404 page not found', 'text/plain'))
      const told = await chat(harness, await harness.key(), { model: 'ollama/echo', messages: hello })
      expect(told.status).toBe(404)
      const text = await told.text()
      for (const ours of ['base URL', 'elsewhere', 'doctor']) expect(text).not.toContain(ours)
      await harness.idle()
      const warned = harness.logs.filter(line => line.includes('attempt failed')).join('\n')
      expect(warned).toContain(`answers below ${harness.upstream.url}/elsewhere: check the base URL`)
    } finally {
      await harness.stop()
    }
  })
})

function pageOf(status: number, text: string, type: string): Script {
  return script(head(status, { 'content-type': type, 'content-length': String(text.length) }), bytes(text), end)
}

describe('weir check and weir doctor', () => {
  let upstream: FakeUpstream
  let home: string
  let env: Record<string, string>

  beforeAll(async () => {
    upstream = await startFakeUpstream()
  })
  afterAll(() => upstream.stop())
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'weir-base-'))
    const data = { WEIR_DATA: join(home, 'data'), WEIR_CALLS_MAX: '100', BUN_CONFIG_MAX_HTTP_REQUESTS: '20000' }
    env = { PORT: '0', ...data, OPENAI_API_KEY: KEY }
  })
  afterEach(() => rmSync(home, { recursive: true, force: true }))

  /** Of base URLs and keys alone, from both commands, which must agree. */
  async function troubles() {
    const ours = (about: string): boolean => /_(BASE_URL|KEY)$/.test(about)
    const checked = (await runChecks(env)).filter(({ about }) => ours(about))
    const looked = diagnose(await collectFacts(readConfig(env), Date.now())).filter(({ about }) => ours(about))
    expect(looked).toEqual(checked.filter(({ remedy }) => remedy !== ''))
    expect(JSON.stringify(checked)).not.toContain(KEY)
    return checked
  }

  test('nothing is said of an address that is right', async () => {
    env.OLLAMA_BASE_URL = `${upstream.url}/v1/`
    expect(await troubles()).toEqual([])
  })

  test('nothing is asked where no address is set', async () => {
    const before = upstream.requests.length
    expect(await troubles()).toEqual([])
    expect(upstream.requests.length).toBe(before)
  })

  test('it is said what an address is taken for', async () => {
    env.OLLAMA_BASE_URL = upstream.url
    const says = `${upstream.url} has no path, so calls to Ollama go to ${upstream.url}/v1.`
    expect(await troubles()).toEqual([{ weight: 'note', about: 'OLLAMA_BASE_URL', says, remedy: '' }])
  })

  /** Tells its models at this path, and knows nothing else. */
  const listing = (path: string) =>
    Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch({ url }) {
        const isList = new URL(url).pathname === path
        return isList ? Response.json({ data: [{ id: 'x' }] }) : new Response('404 page not found', { status: 404 })
      },
    })

  test('a wrong path is a problem, with the right one', async () => {
    const server = listing('/v1/models')
    try {
      const origin = `http://127.0.0.1:${server.port}`
      env.OPENAI_BASE_URL = `${origin}/openai`
      const [found, ...others] = await troubles()
      expect(others).toEqual([])
      const remedy = `Set OPENAI_BASE_URL=${origin}/v1`
      expect(found).toMatchObject({ weight: 'problem', about: 'OPENAI_BASE_URL', remedy })
      expect(found!.says).toContain(`${origin}/openai returned status 404.`)
    } finally {
      await server.stop(true)
    }
  })

  test('a server whose interface has no path needs a provider file', async () => {
    const server = listing('/models')
    try {
      const origin = `http://127.0.0.1:${server.port}`
      env.VLLM_BASE_URL = origin
      const [found] = await troubles()
      expect(found).toMatchObject({ weight: 'problem', about: 'VLLM_BASE_URL' })
      expect(found!.remedy).toContain(`Write a provider file with "baseUrl": "${origin}"`)
    } finally {
      await server.stop(true)
    }
  })

  test.each([
    ['a page', 200, '<html>', 'returned something that is not a list of models'],
    ['a server without a list', 404, 'no', 'returned status 404'],
    ['a server in trouble', 500, 'no', 'returned status 500'],
  ])('%s is a note', async (_name, status, text, says) => {
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(text, { status }) })
    try {
      env.VLLM_BASE_URL = `http://127.0.0.1:${server.port}/v1`
      const [found, ...others] = await troubles()
      expect([found!.weight, found!.about, others]).toEqual(['note', 'VLLM_BASE_URL', []])
      expect(found!.says).toContain(says)
    } finally {
      await server.stop(true)
    }
  })

  test('a server that does not run is a note', async () => {
    env.OLLAMA_BASE_URL = 'http://127.0.0.1:9/v1'
    const [found] = await troubles()
    expect(found).toMatchObject({ weight: 'note', about: 'OLLAMA_BASE_URL' })
    expect(found!.remedy).toBe('Start the server of Ollama, or correct OLLAMA_BASE_URL.')
  })

  test('a key that is refused is a problem of the key', async () => {
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('no', { status: 401 }) })
    try {
      env.OPENAI_BASE_URL = `http://127.0.0.1:${server.port}/v1`
      const [found] = await troubles()
      expect(found).toMatchObject({ weight: 'problem', about: 'OPENAI_API_KEY', remedy: 'Correct OPENAI_API_KEY.' })
    } finally {
      await server.stop(true)
    }
  })
})
