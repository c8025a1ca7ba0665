// The list of files: what one request for it may cost the upstream, and that all files can still be found.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'

const provider = {
  id: 'pond',
  name: 'Pond',
  baseUrl: 'http://127.0.0.1:9',
  keyEnv: 'POND_KEY',
  baseUrlEnv: 'POND_URL',
  speaks: { 'ark': '/chat/completions', 'ark-files': '/files' },
  sign: 'bearer',
  models: [{ id: 'echo', price: { input: '1', output: '2' } }],
}
const FILES = 45
const REQUESTS_MAX = 20

let harness: Harness
let folder: string
let key: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-pond-'))
  writeFileSync(join(folder, 'pond.json'), JSON.stringify(provider))
  harness = await startHarness({
    env: { WEIR_PROVIDERS: folder, POND_KEY: 'sk-1', WEIR_DRAIN_SECONDS: '0' },
    upstreamEnv: url => ({ POND_URL: `${url}/api/v3` }),
  })
  key = await harness.key({ qpm: 1_000 })
  for (let at = 0; at < FILES; at++) {
    const body = new FormData()
    body.set('purpose', at === 0 ? 'agent' : 'user_data')
    body.set('file', new File(['some words'], `${at}.txt`, { type: 'text/plain' }))
    const init = { method: 'POST', body, headers: { authorization: `Bearer ${key}` } }
    expect((await fetch(`${harness.url}/api/v3/files`, init)).status).toBe(200)
  }
})
afterAll(async () => {
  await harness.stop()
  rmSync(folder, { recursive: true, force: true })
})

interface Page {
  readonly data: readonly { readonly id: string; readonly filename: string }[]
  readonly has_more: boolean
  readonly last_id: string | null
}

/** One request for the list, and how many requests reached the upstream for it. */
async function list(query: Readonly<Record<string, string>>): Promise<Page & { readonly requests: number }> {
  const before = harness.upstream.requests.length
  const url = `${harness.url}/api/v3/files?${new URLSearchParams(query)}`
  const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` } })
  expect(answer.status).toBe(200)
  return { ...((await answer.json()) as Page), requests: harness.upstream.requests.length - before }
}

test.each([
  [{ limit: '100' }, REQUESTS_MAX, 20],
  [{ limit: '100', purpose: 'other' }, REQUESTS_MAX, 0],
  [{ limit: '1', purpose: 'other' }, REQUESTS_MAX, 0],
  [{}, REQUESTS_MAX, 20],
  [{ limit: '3' }, 3, 3],
])('a list %j causes %d requests and shows %d files', async (query, requests, count) => {
  const page = await list(query)
  expect([page.requests, page.data.length, page.has_more]).toEqual([requests, count, true])
})

test.each(['id', 'last_id'] as const)('all files are found page by page, continued after the %s', async cursor => {
  const names: string[] = []
  for (let after: string | undefined; ; ) {
    const page = await list({ limit: '100', ...(after !== undefined && { after }) })
    names.push(...page.data.map(file => file.filename))
    if (!page.has_more) break
    after = cursor === 'id' ? page.data.at(-1)!.id : page.last_id!
  }
  expect(names).toEqual(Array.from({ length: FILES }, (_, at) => `${FILES - 1 - at}.txt`))
})

test('a file of another purpose is found behind pages without any', async () => {
  const names: string[] = []
  for (let after: string | undefined; ; ) {
    const page = await list({ purpose: 'agent', ...(after !== undefined && { after }) })
    names.push(...page.data.map(file => file.filename))
    if (!page.has_more) break
    after = page.last_id!
  }
  expect(names).toEqual(['0.txt'])
})
