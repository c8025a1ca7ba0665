// Tests the lookup of names that callers choose, with DNS servers on real sockets.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip, gzipSync } from 'node:zlib'
import type { DnsServer } from '../../../test/network/dns-server.ts'
import { startDnsServer } from '../../../test/network/dns-server.ts'
import { AddressGuard, ForbiddenHost } from './guard.ts'
import { buildEventLoopLookup, lookUpBySystem } from './name-lookup.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-'))
const hostsFile = join(folder, 'hosts')
let dns: DnsServer

beforeAll(async () => {
  dns = await startDnsServer()
})
afterAll(async () => {
  await dns.stop()
  rmSync(folder, { recursive: true, force: true })
})

const open = () => buildEventLoopLookup({ servers: [dns.address], hostsFile })

test('a name has the addresses of the name server', async () => {
  dns.answers.set('a.test', [['192.0.2.1', '192.0.2.2']])
  expect(await open()('a.test')).toEqual(['192.0.2.1', '192.0.2.2'])
  dns.answers.set('b.test', [['2001:db8::1']])
  expect(await open()('b.test')).toEqual(['2001:db8::1'])
  dns.answers.set('c.test', [['192.0.2.1', '2001:db8::1']])
  expect(await open()('c.test')).toEqual(['192.0.2.1', '2001:db8::1'])
})

test('the guard checks the addresses of both families', async () => {
  const guard = new AddressGuard({ resolve: open() })
  dns.answers.set('public.test', [['1.1.1.1', '2606:4700::1111']])
  expect(await guard.addressesOf('public.test', false)).toEqual(['1.1.1.1', '2606:4700::1111'])
  for (const inner of ['fd00::1', '::1', '::ffff:10.0.0.1', '10.0.0.1']) {
    dns.answers.set('mixed.test', [['1.1.1.1', inner]])
    const asked = Promise.resolve(new AddressGuard({ resolve: open() }).addressesOf('mixed.test', false))
    expect([inner, await asked.catch((fault: unknown) => fault)]).toEqual([inner, expect.any(ForbiddenHost)])
  }
})

test.each([['missing.test'], ['a..test'], [`${'a'.repeat(64)}.test`], ['a test']])(
  '%j does not resolve',
  async name => {
    expect(await open()(name).catch(({ code }) => code as unknown)).toMatch(/^E[A-Z]+$/)
  },
)

test.each(['localhost', 'LocalHost.', 'a.localhost'])('%s is this machine, whatever a name server says', async name => {
  dns.answers.set('localhost', [['192.0.2.9']])
  dns.answers.set('a.localhost', [['192.0.2.9']])
  expect(await open()(name)).toEqual(['127.0.0.1', '::1'])
})

test('names of the hosts file come first, as soon as they are in it', async () => {
  dns.answers.set('files.test', [['192.0.2.1']])
  const lookUp = open()
  expect(await lookUp('files.test')).toEqual(['192.0.2.1'])
  writeFileSync(
    hostsFile,
    '# files.test\n10.1.2.3\tFiles.test  files # the store\n\nfd00::3 files.test\nnone files.test\n',
  )
  expect(await lookUp('files.test')).toEqual(['10.1.2.3', 'fd00::3'])
  expect(await lookUp('FILES.test.')).toEqual(['10.1.2.3', 'fd00::3'])
  expect(await lookUp('files')).toEqual(['10.1.2.3'])
  rmSync(hostsFile)
  expect(await lookUp('files.test')).toEqual(['192.0.2.1'])
})

describe('a name server that never answers', () => {
  const MANY = 40

  test('delays no work of the threads, and the lookups end', async () => {
    const queries: Buffer[] = []
    const silent = createSocket('udp4')
    silent.on('message', query => void queries.push(query))
    await new Promise<void>(resolve => silent.bind(0, '127.0.0.1', () => resolve()))
    const lookUp = buildEventLoopLookup({ servers: [`127.0.0.1:${silent.address().port}`], hostsFile, msMax: 2_000 })

    /** How many lookups have ended when the work of the threads is done. */
    async function countEndedBeforeWork(): Promise<number> {
      let endedCount = 0
      const lookups = Array.from({ length: MANY }, (_, index) =>
        lookUp(`s${index}.slow.test`).catch(({ code }: { code: string }) => {
          endedCount++
          return code
        }),
      )
      await Promise.all([
        promisify(gunzip)(gzipSync('x')),
        Bun.password.hash('x', 'argon2id'),
        lookUpBySystem('localhost'),
      ])
      const endedBeforeWork = endedCount
      expect(new Set(await Promise.all(lookups))).toEqual(new Set(['ECANCELLED']))
      return endedBeforeWork
    }

    // On a busy machine the work itself can take longer than the lookups may. If it waited for them, it would do so each time.
    const counts: number[] = []
    while (counts.at(-1) !== 0 && counts.length < 5) counts.push(await countEndedBeforeWork())
    expect(counts.at(-1)).toBe(0)
    expect(queries.length).toBeGreaterThanOrEqual(MANY)
    silent.close()
  }, 60_000)
})
