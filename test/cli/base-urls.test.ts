// Base URLs as people set them. Those with one meaning work; `weir check` and `weir doctor` report the others with a
// remedy. Callers do not see any of it.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runChecks } from '../../src/cli/checks/check.ts'
import { collectFacts } from '../../src/cli/checks/doctor.ts'
import { readConfig } from '../../src/config.ts'
import { diagnose } from '../../src/management/doctor/doctor-checks.ts'
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
        const answer = await chat(harness, await harness.key(), { model: 'ollama/echo', messages: hello })
        expect(answer.status).toBe(200)
        expect(harness.upstream.requests.at(-1)!.path).toBe('/v1/chat/completions')
      } finally {
        await harness.stop()
      }
    },
  )

  test('warns in its log, and not in its answers, that a base URL may be wrong', async () => {
    const harness = await startHarness({ upstreamEnv: url => ({ OLLAMA_BASE_URL: `${url}/elsewhere` }) })
    try {
      harness.upstream.plan(pageOf(404, '404 page not found', 'text/plain'))
      const answer = await chat(harness, await harness.key(), { model: 'ollama/echo', messages: hello })
      expect(answer.status).toBe(404)
      const text = await answer.text()
      for (const word of ['base URL', 'elsewhere', 'doctor']) expect(text).not.toContain(word)
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

  /** The findings about base URLs and keys. Both commands must have the same ones. */
  async function findings() {
    const word = (about: string): boolean => /_(BASE_URL|KEY)$/.test(about)
    const checked = (await runChecks(env)).filter(({ about }) => word(about))
    const diagnosed = diagnose(await collectFacts(readConfig(env), Date.now())).filter(({ about }) => word(about))
    const without = diagnosed.map(({ check: _, ...finding }) => finding)
    expect(without).toEqual(checked.filter(({ remedy }) => remedy !== ''))
    expect(JSON.stringify(checked)).not.toContain(KEY)
    return checked
  }

  test('report nothing for a correct base URL', async () => {
    env.OLLAMA_BASE_URL = `${upstream.url}/v1/`
    expect(await findings()).toEqual([])
  })

  test('send no request if no base URL is set', async () => {
    const before = upstream.requests.length
    expect(await findings()).toEqual([])
    expect(upstream.requests.length).toBe(before)
  })

  test('note how a base URL without a path is completed', async () => {
    env.OLLAMA_BASE_URL = upstream.url
    const says = `${upstream.url} has no path, so calls to Ollama go to ${upstream.url}/v1.`
    expect(await findings()).toEqual([{ weight: 'note', about: 'OLLAMA_BASE_URL', says, remedy: '' }])
  })

  /** A server that lists its models at this path, and answers 404 elsewhere. */
  const startModelServer = (path: string) =>
    Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch({ url }) {
        const isList = new URL(url).pathname === path
        return isList ? Response.json({ data: [{ id: 'x' }] }) : new Response('404 page not found', { status: 404 })
      },
    })

  test('report a wrong path as a problem, with the right path', async () => {
    const server = startModelServer('/v1/models')
    try {
      const origin = `http://127.0.0.1:${server.port}`
      env.OPENAI_BASE_URL = `${origin}/openai`
      const [found, ...others] = await findings()
      expect(others).toEqual([])
      const remedy = `Set OPENAI_BASE_URL=${origin}/v1`
      expect(found).toMatchObject({ weight: 'problem', about: 'OPENAI_BASE_URL', remedy })
      expect(found!.says).toContain(`${origin}/openai returned status 404.`)
    } finally {
      await server.stop(true)
    }
  })

  test('suggest a provider file for a server whose interface has no path', async () => {
    const server = startModelServer('/models')
    try {
      const origin = `http://127.0.0.1:${server.port}`
      env.VLLM_BASE_URL = origin
      const [found] = await findings()
      expect(found).toMatchObject({ weight: 'problem', about: 'VLLM_BASE_URL' })
      expect(found!.remedy).toContain(`Write a provider file with "baseUrl": "${origin}"`)
    } finally {
      await server.stop(true)
    }
  })

  test.each([
    ['a server that returns a page', 200, '<html>', 'returned something that is not a list of models'],
    ['a server without a list', 404, 'no', 'returned status 404'],
    ['a server in trouble', 500, 'no', 'returned status 500'],
  ])('report %s as a note', async (_name, status, text, says) => {
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(text, { status }) })
    try {
      env.VLLM_BASE_URL = `http://127.0.0.1:${server.port}/v1`
      const [found, ...others] = await findings()
      expect([found!.weight, found!.about, others]).toEqual(['note', 'VLLM_BASE_URL', []])
      expect(found!.says).toContain(says)
    } finally {
      await server.stop(true)
    }
  })

  test('report a server that does not run as a note', async () => {
    env.OLLAMA_BASE_URL = 'http://127.0.0.1:9/v1'
    const [found] = await findings()
    expect(found).toMatchObject({ weight: 'note', about: 'OLLAMA_BASE_URL' })
    expect(found!.remedy).toBe('Start the server of Ollama, or correct OLLAMA_BASE_URL.')
  })

  test('report a refused key as a problem of the key', async () => {
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('no', { status: 401 }) })
    try {
      env.OPENAI_BASE_URL = `http://127.0.0.1:${server.port}/v1`
      const [found] = await findings()
      expect(found).toMatchObject({ weight: 'problem', about: 'OPENAI_API_KEY', remedy: 'Correct OPENAI_API_KEY.' })
    } finally {
      await server.stop(true)
    }
  })
})
