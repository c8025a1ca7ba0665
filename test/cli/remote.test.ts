// weir login, api and logout run as separate processes and know the gateway by its address alone.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Person } from '../support/people.ts'
import { goodPassword, setUpOwner } from '../support/people.ts'

const WEIR = join(import.meta.dir, '..', '..', 'bin', 'weir')

let harness: Harness
let owner: Person
let home: string

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'weir-home-'))
  harness = await startHarness()
  owner = await setUpOwner(harness)
})
afterAll(async () => {
  await harness.stop()
  rmSync(home, { recursive: true })
})

async function weir(args: readonly string[], input = ''): Promise<{ code: number; out: string; err: string }> {
  const env = { PATH: process.env.PATH, XDG_CONFIG_HOME: home }
  const child = Bun.spawn([WEIR, ...args], { env, stdin: Buffer.from(input), stdout: 'pipe', stderr: 'pipe' })
  const [code, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  return { code, out, err }
}

const file = (): string => join(home, 'weir', 'session.json')
const login = (password: string) => weir(['login', '--url', harness.url, '--email', owner.email], `${password}\n`)

describe('a remote session', () => {
  test('is not created with a wrong password', async () => {
    const { code, err } = await login('another password')
    expect([code, err]).toEqual([1, expect.stringContaining('sign_in_failed')])
    expect((await weir(['api', 'GET', '/api/web/me'])).err).toContain('not signed in at any gateway')
  })

  test('is stored in a file that only its owner can read, and sends requests as that person', async () => {
    expect(await login(goodPassword)).toMatchObject({ code: 0, err: '' })
    expect((statSync(file()).mode & 0o777).toString(8)).toBe('600')
    expect(readFileSync(file(), 'utf8')).not.toContain(goodPassword)
    expect(JSON.parse((await weir(['api', 'GET', '/api/web/me'])).out)).toMatchObject({ email: owner.email })
    const body = JSON.stringify({ name: 'remote', qpm: 5 })
    expect(JSON.parse((await weir(['api', 'POST', '/api/web/tiers', '-'], body)).out)).toMatchObject({ qpm: 5 })
    expect(await weir(['api', 'PATCH', '/api/web/tiers/remote', '{"qpm":0}'])).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('field_invalid'),
    })
  })

  test('sends requests only to the gateway of its login', async () => {
    expect((await weir(['api', 'GET', 'http://127.0.0.1:1/api/web/me'])).code).toBe(2)
    expect((await weir(['api', 'GET', '/v1/models'])).code).toBe(2)
    expect((await weir(['login', '--url', 'file:///etc/passwd', '--email', 'a@b.c'], 'x\n')).code).toBe(1)
  })

  test('ends at the gateway and locally with logout', async () => {
    expect(await weir(['logout'])).toMatchObject({ code: 0, out: `signed out at ${harness.url}\n` })
    const { err } = await weir(['api', 'GET', '/api/web/me'])
    expect(err).toContain('not signed in at any gateway')
  })
})
