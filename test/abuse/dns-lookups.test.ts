// A caller names media on hosts whose name server never answers. Such calls fail and are free, so they must not delay
// the work of others, nor leave lookups behind that pile up.

import { afterAll, afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { startDialects } from '../dialects/upstreams.ts'
import type { Harness } from '../support/gateway.ts'
import { mediaCall } from './media-calls.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function send(harness: Harness, key: string, urls: readonly string[]): Promise<[number, string]> {
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  const answer = await fetch(`${harness.url}/v1/chat/completions`, { method: 'POST', headers, body: mediaCall(urls) })
  return [answer.status, await answer.text()]
}

test('lookups that nobody waits for count for the account until they end', async () => {
  const lookups: string[] = []
  const resolve = (name: string): Promise<never> => {
    lookups.push(name)
    return new Promise(() => {})
  }
  // The call stops waiting long before the lookup ends.
  const harness = await startDialects({ world: { media: { resolve, msMax: 50 } } })
  closing.push(() => harness.stop())
  const [attacker, other] = [await harness.key(), await harness.key()]
  for (let round = 0; round < 10; round++) {
    const [status, text] = await send(
      harness,
      attacker,
      [1, 2, 3, 4].map(file => `http://r${round}-${file}.test/a.png`),
    )
    expect([status, text]).toEqual([400, expect.stringContaining('could not be fetched')])
  }
  expect(lookups).toHaveLength(bounds.dnsLookupsOfAccountMax)
  await send(harness, other, ['http://of-another.test/a.png'])
  expect(lookups.at(-1)).toBe('of-another.test')
})

/** A network of its own for a process, in which only its own DNS server exists. Not every system allows it. */
const inOwnNetwork = (resolvConf: string): readonly string[] => [
  ...['unshare', '--map-root-user', '--net', '--mount', 'sh', '-c'],
  `ip link set lo up && mount --bind ${resolvConf} /etc/resolv.conf && exec "$@"`,
  'sh',
]

const folder = mkdtempSync(join(tmpdir(), 'weir-'))
const resolvConf = join(folder, 'resolv.conf')
writeFileSync(resolvConf, 'nameserver 127.0.0.1\n')
const runs = (command: readonly string[]): boolean => {
  try {
    return Bun.spawnSync([...command]).exitCode === 0
  } catch {
    return false
  }
}
const canRun = runs([...inOwnNetwork(resolvConf), 'true'])
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test.skipIf(!canRun)('compressed requests of others are answered while names are looked up', async () => {
  const command = [...inOwnNetwork(resolvConf), process.execPath, join(import.meta.dir, 'dns-silence.ts')]
  const child = Bun.spawn(command, { stdout: 'pipe', stderr: 'inherit' })
  closing.push(() => child.kill())
  expect(JSON.parse(await new Response(child.stdout).text())).toEqual({ before: 200, during: 200 })
})
