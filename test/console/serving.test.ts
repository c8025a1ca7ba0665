// How the files of the console are served: packed, cached for good by their names, under a strict policy, and without
// index.html in the place of a missing file.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { staticFilesIn } from '../../src/http/server/static-files.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'

const SCRIPT = 'document.title = "Weir"\n'.repeat(50)
const INDEX = '<!doctype html><title>Weir</title>'

function writeBuild(folder: string, build: string): void {
  mkdirSync(join(folder, 'assets'), { recursive: true })
  const files = { 'assets/main-0a1b.js': SCRIPT, 'index.html': INDEX }
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, name), text)
    writeFileSync(join(folder, `${name}.gz`), gzipSync(text))
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(text))
  }
  writeFileSync(join(folder, 'assets/inter-77aa.woff2'), 'wOF2')
  writeFileSync(join(folder, 'build.json'), JSON.stringify({ build }))
}

const folder = mkdtempSync(join(tmpdir(), 'weir-console-'))
let harness: Harness

beforeAll(async () => {
  harness = await startHarness({ world: { loadConsole: staticFilesIn(folder) } })
})
afterAll(async () => {
  await harness.stop()
  rmSync(folder, { recursive: true, force: true })
})

const get = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
  fetch(`${harness.url}${path}`, { method, redirect: 'manual', decompress: false, headers } as RequestInit)

test('before it is built, it says how to build it, and calls are served', async () => {
  const answer = await get('/console/keys')
  expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('npm run console')])
  expect((await get('/health/ready')).status).toBe(200)
})

describe('a console that was built', () => {
  beforeAll(() => writeBuild(folder, 'b1'))

  test('each page is index.html, which browsers must revalidate', async () => {
    const first = await get('/console/')
    expect([first.status, await first.text(), first.headers.get('cache-control')]).toEqual([200, INDEX, 'no-cache'])
    for (const path of ['/console/keys/key_1', '/console/models/openai/gpt-4.1', '/console/index.html?x=1']) {
      const page = await get(path)
      expect([page.status, await page.text(), page.headers.get('content-type')]).toEqual([
        200,
        INDEX,
        'text/html; charset=utf-8',
      ])
      const again = await get(path, { 'if-none-match': page.headers.get('etag')! })
      expect([again.status, await again.text()]).toEqual([304, ''])
    }
  })

  test('a file is sent as the client accepts it, and kept for good', async () => {
    const forms = {
      'gzip, deflate, br, zstd': ['br', brotliCompressSync(SCRIPT).length],
      'gzip;q=1.0, br;q=0': ['gzip', gzipSync(SCRIPT).length],
      'identity': [null, SCRIPT.length],
    } as const
    for (const [accepted, [encoding, bytes]] of Object.entries(forms)) {
      const answer = await get('/console/assets/main-0a1b.js', { 'accept-encoding': accepted })
      expect(answer.headers.get('content-encoding')).toBe(encoding)
      expect(answer.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
      expect(answer.headers.get('vary')).toBe('accept-encoding')
      expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect((await answer.arrayBuffer()).byteLength).toBe(bytes)
    }
    const font = await get('/console/assets/inter-77aa.woff2', { 'accept-encoding': 'br' })
    expect([font.headers.get('content-type'), font.headers.get('content-encoding')]).toEqual(['font/woff2', null])
    const head = await get('/console/assets/main-0a1b.js', { 'accept-encoding': 'gzip' }, 'HEAD')
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(gzipSync(SCRIPT).length)])
  })

  test('a missing file is a 404, and nothing outside the folder is reached', async () => {
    const missing = [
      'assets/main-ffff.js',
      'assets/x',
      'favicon.ico',
      'build.json',
      'assets/main-0a1b.js.br',
      '%2e%2e/weir.js',
    ]
    for (const path of missing) {
      const answer = await get(`/console/${path}`)
      expect([path, answer.status, answer.headers.get('content-type')]).toEqual([path, 404, 'application/json'])
    }
    expect((await get('/console/', {}, 'POST')).status).toBe(405)
  })

  test('every answer has the policy that the pages were written for', async () => {
    for (const path of ['/console/', '/console/assets/main-0a1b.js', '/console/assets/none.js', '/console']) {
      const { headers } = await get(path)
      const policy = headers.get('content-security-policy')
      expect(policy).toStartWith("default-src 'none'; script-src 'self'; style-src 'self';")
      expect(policy).toEndWith("frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
      expect(policy).not.toContain('unsafe')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
      expect(headers.get('permissions-policy')).toContain('camera=()')
      expect(headers.get('access-control-allow-origin')).toBeNull()
    }
  })

  test('a build that is written later waits for the next start, so that no page finds its files replaced', async () => {
    rmSync(join(folder, 'assets'), { recursive: true, force: true })
    writeBuild(folder, 'b2')
    expect((await get('/console/')).headers.get('etag')).toBe('W/"b1"')
  })
})

test('browsers are sent to the console, programs get a text', async () => {
  const browser = await get('/', { accept: 'text/html,application/xhtml+xml' })
  expect([browser.status, browser.headers.get('location'), browser.headers.get('vary')]).toEqual([
    302,
    '/console/',
    'accept',
  ])
  const program = await get('/', { accept: '*/*' })
  expect([program.status, program.headers.get('vary')]).toEqual([200, 'accept'])
  expect(await program.text()).toStartWith('Weir is running.')
  const bare = await get('/console?x=1')
  expect([bare.status, bare.headers.get('location')]).toEqual([302, '/console/?x=1'])
})

test('WEIR_CONSOLE=off serves no console', async () => {
  const without = await startHarness({ env: { WEIR_CONSOLE: 'off' }, world: { loadConsole: staticFilesIn(folder) } })
  try {
    const accept = 'text/html'
    const root = await fetch(without.url, { headers: { accept } })
    expect([root.status, await root.text()]).toEqual([200, expect.not.stringContaining('/console')])
    for (const path of ['/console', '/console/', '/console/assets/main-0a1b.js']) {
      expect((await fetch(`${without.url}${path}`, { headers: { accept } })).status).toBe(404)
    }
  } finally {
    await without.stop()
  }
})
