// The operator at the command line: connected by the socket in the data folder and by nothing else, audited as `cli`,
// and not a person.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { sendControlRequest } from '../../src/http/server/control-socket.ts'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import { askAs } from '../support/management.ts'
import { setUpOwner } from '../support/people.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const socket = (): string => join(harness.folder, 'weir.sock')
const audited = (): Record<string, unknown>[] => {
  const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
  const rows = db.query('SELECT actor, address, request, action FROM audit ORDER BY seq').all()
  db.close()
  return rows as Record<string, unknown>[]
}

test('the control socket is open to the user of the gateway alone', async () => {
  expect(statSync(socket()).mode & 0o777).toBe(0o600)
  const answer = await sendControlRequest(socket(), { method: 'GET', path: '/api/web/me' })
  expect(await answer!.json()).toMatchObject({ id: null, name: 'operator', role: 'owner' })
})

test('requests are audited as those of the command line, without an address', async () => {
  await harness.manage('POST', '/api/web/accounts', { name: 'Delta' })
  expect(audited().at(-1)).toEqual({ actor: 'cli', address: null, request: null, action: 'createAccount' })
})

describe('over TCP', () => {
  const machine = ['audit', 'backup', 'doctor', 'first-key', 'token', 'setup-token', 'setup-open', 'setup-owner']
  const paths = [...machine, 'reset-password', 'rotate'].flatMap(name => [
    `/machine/${name}`,
    `/api/web/../../machine/${name}`,
  ])

  test.each(paths)('%s is not a path', async path => {
    const before = audited().length
    for (const method of ['GET', 'POST']) {
      const body = method === 'POST' ? '{"folder":"/tmp/x","kind":"jwt","credit":"1"}' : null
      const headers = { 'content-type': 'application/json', 'authorization': 'Bearer cli' }
      const { status } = await fetch(`${harness.url}${path}`, { method, headers, body })
      expect([method, path, status]).toEqual([method, path, 404])
    }
    expect(audited()).toHaveLength(before)
  })

  test('a request in the form of the control socket does nothing', async () => {
    const before = audited().length
    const request = JSON.stringify({ method: 'POST', path: '/api/web/accounts', body: { name: 'stolen' } })
    for (const path of ['/', '/api/web', '/api/web/', '/weir', '/api/web/accounts']) {
      const headers = { 'content-type': 'application/json', 'x-forwarded-for': '127.0.0.1', 'host': 'weir' }
      const { status } = await fetch(`${harness.url}${path}`, { method: 'POST', headers, body: request })
      expect([path, status >= 400]).toEqual([path, true])
    }
    expect(audited()).toHaveLength(before)
  })

  let token: Promise<string> | undefined
  const ownerToken = (): Promise<string> => (token ??= setUpOwner(harness).then(owner => owner.token))

  test("a proxy, which may be inside the operator's network, cannot be set", async () => {
    const token = await ownerToken()
    const { data } = await harness.manage('GET', '/api/web/channels')
    const channel = encodeURIComponent((data as { id: string }[])[0]!.id)
    const proxy = { proxy: 'http://127.0.0.1:3128' }
    const refused = await askAs(harness, token)('PATCH', `web/channels/${channel}`, proxy)
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([403, expect.stringContaining('the operator')])
    expect(await harness.manage('PATCH', `/api/web/channels/${channel}`, proxy)).toMatchObject({ proxy: true })
  })

  test('a reference to a secret, which whoever applies an exported file would read, cannot be set', async () => {
    const owner = askAs(harness, await ownerToken())
    const reference = { credentialFrom: 'env:WEIR_TOKEN' }
    const { data } = await harness.manage('GET', '/api/web/channels')
    const channel = encodeURIComponent((data as { id: string }[])[0]!.id)
    const hook = { url: 'https://example.com/', events: ['balance.low'], secretFrom: 'file:/etc/passwd' }
    for (const [method, path, body] of [
      ['PATCH', `web/channels/${channel}`, reference],
      ['POST', 'web/channels', { provider: 'openai', credentials: ['sk-0123456789abcdef'], ...reference }],
      ['POST', 'web/webhooks', hook],
    ] as const) {
      const refused = await owner(method, path, body)
      expect([path, refused.status, JSON.stringify(refused.body)]).toEqual([
        path,
        403,
        expect.stringContaining('the operator'),
      ])
    }
  })

  test('the endpoints answer 401 without a token, and with an API key', async () => {
    for (const token of [undefined, 'cli', '0', await harness.key()]) {
      expect((await askAs(harness, token)('GET', 'web/accounts')).status).toBe(401)
    }
  })
})

describe('the operator is not a person:', () => {
  const personEndpoints = describedEndpoints.filter(
    ({ who, path, method }) => who === 'person' && method !== 'GET' && path.startsWith('/api/web/'),
  )

  test.each(personEndpoints.map(({ method, path }) => [method, path] as const))(
    '%s %s is refused or does nothing',
    async (method, path) => {
      await setUpOwner(harness).catch(() => undefined)
      const people = (): unknown => {
        const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
        const rows = ['person', 'session', 'totp', 'member'].map(table =>
          db.query('SELECT * FROM '.concat(table)).all(),
        )
        db.close()
        return rows
      }
      const before = people()
      const filled = path.replaceAll(
        /\{(\w+)\}/g,
        (_, name: string) => `${name === 'session' ? 'ses' : 'inv'}_00000000001`,
      )
      const bodies: Record<string, object> = {
        'PATCH /api/web/me': { name: 'Nobody' },
        'POST /api/web/me/password': { currentPassword: 'x', password: 'a river runs through it' },
        'POST /api/web/invitations': { email: 'invited@example.com' },
        'POST /api/web/invitations/accept': { token: 'x' },
      }
      const body = bodies[`${method} ${path}`] ?? { currentPassword: 'x', code: '123456' }
      const answer = await harness.gateway.manage({ method, path: filled, body })
      expect([method, path, answer.status < 500]).toEqual([method, path, true])
      expect(people()).toEqual(before)
    },
  )

  test('sign-in, set-up and registration do not work through the socket', async () => {
    for (const path of ['/api/auth/sign-in', '/api/auth/setup', '/api/auth/registration', '/api/auth/refresh']) {
      const answer = await sendControlRequest(socket(), { method: 'POST', path, body: {} })
      expect([path, answer!.status]).toEqual([path, 404])
    }
  })
})
