// weir login, api and logout, and commands with WEIR_TOKEN, run as separate processes and know the gateway by its address
// alone.

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
  rmSync(home, { recursive: true, force: true })
})

interface Finished {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function weir(args: readonly string[], input = '', more: Record<string, string> = {}): Promise<Finished> {
  const env = { PATH: process.env.PATH, XDG_CONFIG_HOME: home, ...more }
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
    const bare = await weir(['api', 'POST', '/api/web/tiers'])
    expect([bare.code, bare.err]).toEqual([2, expect.stringContaining('The body is missing: give JSON after')])
    const withBody = await weir(['api', 'GET', '/api/web/me', '{}'])
    expect([withBody.code, withBody.err]).toEqual([2, 'weir: GET takes no body: leave the JSON out.\n'])
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

describe('with WEIR_TOKEN', () => {
  const create = async (rights: object): Promise<{ id: string; token: string }> =>
    (await harness.manage('POST', '/api/web/service-tokens', { name: `t ${Math.random()}`, ...rights })) as never
  const remotely = (token: string, args: readonly string[], input = ''): Promise<Finished> =>
    weir(args, input, { WEIR_TOKEN: token, WEIR_URL: harness.url })

  test('commands and weir api use the gateway of WEIR_URL, as the service token', async () => {
    const { id, token } = await create({ role: 'admin' })
    const made = await remotely(token, ['keys', 'create', '--name', 'by ci', '--credit', '1', '--json'])
    expect(made).toMatchObject({ code: 0, err: '' })
    const { key, id: keyId, account } = JSON.parse(made.out) as { key: string; id: string; account: string }
    expect((await remotely(token, ['keys', 'list', '--account', account])).out).toContain(keyId)
    expect((await remotely(token, ['balance', key])).out).toContain('1.00')
    const channels = JSON.parse((await remotely(token, ['channels', 'list', '--json'])).out) as {
      data: { id: string }[]
    }
    const channel = channels.data.map(row => row.id).find(name => name.includes('#'))!
    expect(await remotely(token, ['channels', 'set', channel, '--weight', '3'])).toMatchObject({ code: 0, err: '' })
    expect(await remotely(token, ['records', 'export'])).toMatchObject({ code: 0, err: '' })
    const told = await remotely(token, ['api', 'GET', `/api/web/audit-log?actor=${id}`])
    const { data } = JSON.parse(told.out) as { data: { action: string }[] }
    expect(data.map(({ action }) => action)).toEqual(['setChannels', 'createKey'])
  })

  test('weir api takes the address from --url', async () => {
    const { token } = await create({ role: 'support' })
    const args = ['api', 'GET', '/api/web/tiers', '--url', harness.url]
    expect(await weir(args, '', { WEIR_TOKEN: token })).toMatchObject({ code: 0, err: '' })
    expect((await weir(args, '', { WEIR_TOKEN: token, WEIR_URL: 'http://127.0.0.1:1' })).code).toBe(0)
  })

  test('errors name the options of the command, and a role that is too low is refused', async () => {
    const { token } = await create({ role: 'support' })
    const wrong = await remotely(token, ['keys', 'list', '--limit', 'odd'])
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining('--limit')])
    const refused = await remotely(token, ['routes', 'remove', 'anything'])
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('role does not allow')])
  })

  test('a token that is not valid is refused with its reason, and the token is not printed', async () => {
    const { id, token } = await create({ role: 'admin' })
    await harness.manage('DELETE', `/api/web/service-tokens/${id}`)
    for (const args of [
      ['keys', 'list'],
      ['api', 'GET', '/api/web/keys'],
    ]) {
      const { code, out, err } = await remotely(token, args)
      expect([code, out, err]).toEqual([1, '', expect.stringContaining('This service token was revoked.')])
      expect(err).not.toContain(token)
    }
  })

  test('a URL at which no gateway listens, or that redirects, is named in words of ours', async () => {
    const moved = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => Response.redirect('https://weir.example.com'),
    })
    const at = (url: string) => weir(['keys', 'list'], '', { WEIR_TOKEN: 'wst-x', WEIR_URL: url })
    const url = moved.url.origin
    expect((await at(url)).err).toBe(
      `weir: The server at ${url} redirects to another URL, perhaps with https. Give the URL of the gateway itself.\n`,
    )
    await moved.stop(true)
    expect((await at(url)).err).toBe(
      `weir: No gateway listens at ${url}. Start it, or correct the URL (--url or WEIR_URL).\n`,
    )
  })

  test('nothing happens on this machine instead: commands of the machine, and half of the settings, are refused', async () => {
    const { token } = await create({ role: 'owner' })
    const tries: readonly (readonly [env: Record<string, string>, args: readonly string[], text: string])[] = [
      [{ WEIR_TOKEN: token, WEIR_URL: harness.url }, ['backup', join(home, 'copy')], 'only on the machine'],
      [{ WEIR_TOKEN: token, WEIR_URL: harness.url }, ['token'], 'only on the machine'],
      [{ WEIR_TOKEN: token, WEIR_URL: harness.url }, ['restore', join(home, 'copy')], 'only on the machine'],
      [{ WEIR_URL: harness.url }, ['restore', join(home, 'copy')], 'only on the machine'],
      [{ WEIR_TOKEN: token }, ['migrate'], 'only on the machine'],
      [{ WEIR_TOKEN: token }, ['migrate-to', 'sqlite'], 'only on the machine'],
      [{ WEIR_TOKEN: token }, ['providers', 'update', '-', '--sha256', 'x'], 'only on the machine'],
      [{ WEIR_TOKEN: token }, ['keys', 'list'], 'Set WEIR_URL'],
      [{ WEIR_TOKEN: token, WEIR_URL: 'weir.example.com' }, ['keys', 'list'], 'invalid'],
      [{ WEIR_TOKEN: ' ', WEIR_URL: harness.url }, ['keys', 'create'], 'WEIR_TOKEN is missing or empty'],
      [{ WEIR_URL: harness.url }, ['keys', 'create'], 'WEIR_TOKEN is missing or empty'],
    ]
    for (const [env, args, text] of tries) {
      const { code, out, err } = await weir(args, '', { WEIR_DATA: harness.folder, ...env })
      expect([args, code, out, err]).toEqual([args, 1, '', expect.stringContaining(text)])
    }
  })
})
