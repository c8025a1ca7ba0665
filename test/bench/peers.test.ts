// How other gateways are found, started and called by npm run bench -- --peers. Their programs are not here: one of them
// is played by a small one that understands what its row says.

import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { plainCalls, streamCalls } from '../../bench/load/calls.ts'
import { Load } from '../../bench/load/load.ts'
import { describeSubjects } from '../../bench/report.ts'
import { signInToNewApi } from '../../bench/subjects/new-api.ts'
import type { PeerStart } from '../../bench/subjects/peers.ts'
import { findPeers, noPeers, peers, startPeer } from '../../bench/subjects/peers.ts'
import { Workbench } from '../../bench/system/workbench.ts'
import { startStreamUpstream } from '../../bench/upstreams/upstream.ts'

const ROOT = join(import.meta.dir, '..', '..')
const folders: string[] = []
afterAll(() => folders.forEach(folder => rmSync(folder, { recursive: true, force: true })))

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-peers-'))
  folders.push(folder)
  return folder
}

const names = peers.map(peer => peer.name)
const upstream = 'http://127.0.0.1:2'
const start: PeerStart = { file: '/peers/program', folder: '/data', port: 1, otherPorts: [3, 4, 5], upstream }

test('the six gateways have rows, and no two rows have one name', () => {
  expect(new Set(names).size).toBe(names.length)
  for (const name of ['bifrost', 'gomodel', 'new-api', 'portkey', 'litellm', 'agentgateway'])
    expect(names).toContain(name)
})

test.each(peers.map(peer => [peer.name, peer] as const))('the row of %s tells all it needs', (_name, peer) => {
  const command = peer.command(start)
  const config = peer.config?.(start)
  expect(command).toContain(start.file)
  // The port of the gateway and the address of the upstream have to reach it somehow.
  const told = JSON.stringify([command, peer.env?.(start), config?.text, peer.headers?.(start)])
  expect(told).toContain(String(start.port))
  if (peer.key === undefined || peer.config !== undefined) expect(told).toContain(upstream)
  if (config !== undefined) {
    expect(typeof (config.name.endsWith('.json') ? JSON.parse(config.text) : parse(config.text))).toBe('object')
    expect(command.join(' ')).toContain(start.folder)
  }
  for (const path of [peer.path, peer.ready]) expect(path).toStartWith('/')
  for (const text of [peer.bills, peer.records, peer.durable]) expect(text).not.toBe('')
  expect(peer.share > 0 && peer.share <= 1).toBe(true)
})

test('programs that are not there are named and are no error; a folder that is not there is one', () => {
  const folder = temporary()
  expect(findPeers(folder)).toEqual({ found: [], missing: peers })
  expect(() => findPeers(join(folder, 'nothing'))).toThrow('--peers names a folder with programs;')
  mkdirSync(join(folder, 'litellm/bin'), { recursive: true })
  writeFileSync(join(folder, 'litellm/bin/litellm'), '')
  const { found, missing } = findPeers(folder)
  expect(found.map(({ peer, file }) => [peer.name, file])).toEqual([['litellm', join(folder, 'litellm/bin/litellm')]])
  expect(missing.map(peer => peer.name)).toEqual(names.filter(name => name !== 'litellm'))
})

test('the report says what each subject does, and which peers were not there', () => {
  expect(describeSubjects(noPeers)).toContain('No peers were measured in this run.')
  const folder = temporary()
  writeFileSync(join(folder, 'gomodel'), '')
  const text = describeSubjects(findPeers(folder))
  expect(text).toMatch(/^\| gomodel .* unknown .* no /m)
  expect(text).toMatch(/^\| weir .* every call, held before and settled after /m)
  expect(text).toContain(
    'No program was there for: bifrost; bifrost, with logs; new-api; portkey; litellm; agentgateway.',
  )
})

/** Understands the environment of GoModel's row, and writes the answer of the upstream anew. */
const PLAYER = `
Bun.serve({
  hostname: '127.0.0.1',
  port: Number(process.env.PORT),
  async fetch(request) {
    if (new URL(request.url).pathname === '/health') return new Response('well')
    const body = await request.json()
    if (body.model !== process.env.OPENAI_MODELS) return new Response('another model', { status: 404 })
    const answer = await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', { method: 'POST', body: JSON.stringify(body) })
    if (body.stream) return new Response(answer.body, { headers: { 'content-type': 'text/event-stream' } })
    const { choices, usage } = await answer.json()
    if (WRONG) choices[0].message.content = 'Something else.'
    return Response.json({ played: true, usage, choices })
  },
})`

function playGoModel(wrong: boolean): string {
  const folder = temporary()
  const script = join(folder, 'player.ts')
  writeFileSync(script, PLAYER.replace('WRONG', String(wrong)))
  writeFileSync(join(folder, 'gomodel'), `#!/bin/sh\nexec "${join(ROOT, 'bin/weir-bun')}" "${script}"\n`, {
    mode: 0o755,
  })
  return folder
}

const canRun = process.platform === 'linux' && availableParallelism() > 1

/** Starts the played peer, makes one plain call and one stream, and ends it. */
async function callPlayed(folder: string): Promise<number> {
  const bench = new Workbench()
  folders.push(bench.folder)
  try {
    const [found] = findPeers(folder).found
    const chunks = 5
    const behind = await startStreamUpstream(bench, { chunks, gapMs: 1 })
    const subject = await startPeer(found!, { bench, upstream: behind, home: undefined as never })
    const { keys, manner } = subject
    const load = await Load.open(subject.port, 1, [...plainCalls(keys, manner), ...streamCalls(keys, chunks, manner)])
    const { calls } = await load.run(2, 60)
    load.close()
    return calls
  } finally {
    bench.close()
  }
}

test.skipIf(!canRun)('a peer is started as its row says; its text is compared, and its bytes may differ', async () => {
  expect(await callPlayed(playGoModel(false))).toBe(2)
  await expect(callPlayed(playGoModel(true))).rejects.toThrow('not the text of the upstream')
})

test.skipIf(!canRun)('a program that ends at once is an error with its last words, and leaves nothing', async () => {
  const folder = temporary()
  writeFileSync(join(folder, 'gomodel'), '#!/bin/sh\necho "no licence" >&2\nexit 3\n', { mode: 0o755 })
  await expect(callPlayed(folder)).rejects.toThrow('gomodel has ended: no licence')
})

/** The interface of new-api's console, as far as it is used: with a token in the newer form, with a cookie in the older. */
function playNewApi(isNew: boolean) {
  const asked: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const signed = isNew
        ? request.headers.get('authorization') === 'Bearer token'
        : request.headers.get('cookie') === 'session=cookie' && request.headers.get('new-api-user') === '7'
      asked.push(`${request.method} ${pathname}`)
      if (pathname === '/api/setup') return Response.json({ success: true })
      if (pathname === '/api/user/login') {
        const data = isNew ? { access_token: 'token', user: { id: 7 } } : { id: 7 }
        return Response.json({ success: true, data }, { headers: { 'set-cookie': 'session=cookie; Path=/' } })
      }
      if (!signed) return Response.json({ success: false, message: 'not signed in' })
      if (request.method === 'GET') {
        return Response.json({ success: true, data: { items: [{ id: 3, key: isNew ? 'ab**yz' : 'abc' }] } })
      }
      return Response.json({ success: true, data: pathname.endsWith('/key') ? { key: 'abc' } : undefined })
    },
  })
  return { server, asked }
}

test.each([true, false])('new-api gives its key after a sign-in, also when it shows it with stars: %p', async isNew => {
  const { server, asked } = playNewApi(isNew)
  try {
    expect(await signInToNewApi({ port: server.port!, upstream, model: 'gpt-4o-mini' })).toBe('sk-abc')
    const each = [
      'POST /api/setup',
      'POST /api/user/login',
      'POST /api/channel/',
      'POST /api/token/',
      'GET /api/token/',
    ]
    expect(asked).toEqual(isNew ? [...each, 'POST /api/token/3/key'] : each)
  } finally {
    server.stop(true)
  }
})

test('docs/how-it-works/speed.md has a row for each peer, with the version that was tried', () => {
  const page = readFileSync(join(ROOT, 'docs/how-it-works/speed.md'), 'utf8')
  expect(existsSync(join(ROOT, 'docs/how-it-works/speed.svg'))).toBe(true)
  for (const { name, files, tried } of peers) {
    expect(page).toContain(`| ${name} | ${files.map(file => `\`${file}\``).join(' or ')} | ${tried ?? 'no'} |`)
  }
})
