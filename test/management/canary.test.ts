// Every secret there is has a value that is found nowhere else, everything is exercised, and then they are looked for:
// in logs, answers, metrics, databases, the audit log, backups. Each may stand in the one answer that shows it once.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Secret } from '../../src/base/secrets/secret.ts'
import { cliCommands } from '../../src/cli/commands/commands.ts'
import { totpCodeOf, totpStepAt } from '../../src/identity/totp.ts'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import { fail, jsonAnswer } from '../../tools/fake-upstream/answers.ts'
import { scripted } from '../../tools/fake-upstream/script.ts'
import type { Told } from '../support/management.ts'
import { askAs } from '../support/management.ts'
import { Canaries, filesBelow, valuesIn } from './canaries.ts'
import type { Everybody } from './matrix/everybody.ts'
import { fromElsewhere, startEverybody } from './matrix/everybody.ts'
import type { Things } from './matrix/things.ts'
import { buildThings, MODEL } from './matrix/things.ts'
import type { Somebody } from './matrix/verdicts.ts'
import { everybody } from './matrix/verdicts.ts'

const random = (name: string): string => `canary-${name}-${crypto.randomUUID()}`

const canaries = new Canaries()
const folder = mkdtempSync(join(tmpdir(), 'weir-canary-'))
let all: Everybody
let things: Things

const env = {
  WEIR_PEPPER: canaries.plant('pepper', random('pepper')),
  WEIR_JWT_SECRET: canaries.plant('jwt secret', random('jwt')),
  WEIR_ENCRYPTION_KEY: canaries.plant('encryption key', random('encryption')),
  OPENAI_API_KEY: canaries.plant('credential of the environment', random('env')),
  METRICS_PORT: '0',
  WEIR_ACCESS_LOG: 'on',
}

beforeAll(async () => {
  all = await startEverybody(env)
  things = buildThings(all)
  canaries.plant('API key', all.key)
  for (const [name, { token, cookie, password }] of Object.entries(all.people)) {
    canaries.plant(`token of the ${name}`, token)
    canaries.plant(`cookie of the ${name}`, cookie.split('=')[1]!)
    canaries.plant(`password of the ${name}`, password)
  }
})
afterAll(async () => {
  await all.stop()
  rmSync(folder, { recursive: true })
})

type Asked = [method: string, path: string, body?: unknown]

async function ask(somebody: Somebody, ...[method, path, body]: Asked): Promise<Told & { readonly at: number }> {
  const told = await all.ask[somebody](method, path, body, fromElsewhere())
  return { ...told, at: canaries.heard(`${method} ${path} ${JSON.stringify([...told.headers])} ${told.text}`) }
}

async function call(path: string, headers: Record<string, string>, body: unknown): Promise<number> {
  const response = await fetch(`${all.harness.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  canaries.heard(`${path.split('?')[0]} ${JSON.stringify([...response.headers])} ${await response.text()}`)
  return response.status
}

test('what is shown once is shown once', async () => {
  const { account } = all
  const made = await ask('owner', 'POST', 'web/keys', { account, name: 'canary' })
  canaries.plant('key made over the web', String(made.body.key), [made.at])
  const renewed = await ask('owner', 'POST', `web/keys/${String(made.body.id)}/rotate`, { overlapSeconds: 60 })
  canaries.plant('key that was renewed', String(renewed.body.key), [renewed.at])
  const token = await ask('owner', 'POST', 'web/service-tokens', { name: 'canary', role: 'support' })
  canaries.plant('service token', String(token.body.token), [token.at])
  const rotated = await ask('owner', 'POST', `web/service-tokens/${String(token.body.id)}/rotate`, {})
  canaries.plant('service token that was rotated', String(rotated.body.token), [rotated.at])
  const invited = await ask('owner', 'POST', 'web/invitations', { email: 'canary@example.com', role: 'member' })
  canaries.plant('invitation', String(invited.body.token), [invited.at])
  const reset = await ask('owner', 'POST', `web/users/${all.people.viewer.id}/password-reset`, {})
  canaries.plant('token to choose a password', String(reset.body.token), [reset.at])
  const codes = await ask('owner', 'POST', 'web/codes', { count: 2, amount: '1' })
  for (const code of codes.body.codes as string[]) canaries.plant('redemption code', code, [codes.at])
  const hook = { url: 'https://hooks.invalid/x', events: ['balance.low'] }
  const told = await ask('owner', 'POST', `web/accounts/${account}/webhooks`, hook)
  canaries.plant('webhook secret', String(told.body.secret), [told.at])
  const other = await ask('owner', 'POST', `web/webhooks/${String(told.body.id)}/secret`, {})
  canaries.plant('webhook secret that was renewed', String(other.body.secret), [other.at])
  const { setupToken } = await all.harness.weir('setup', { token: true }).catch(() => ({ setupToken: undefined }))
  if (setupToken !== undefined) canaries.plant('set-up token', String(setupToken))
  expect(canaries.notShown()).toEqual([])
})

test('a second factor', async () => {
  const { developer } = all.people
  const current = { currentPassword: developer.password }
  const begun = await ask('developer', 'POST', 'web/me/second-factor', current)
  const secret = canaries.plant('TOTP secret', String(begun.body.secret), [begun.at])
  const code = totpCodeOf(new Secret(secret), totpStepAt(Date.now()))
  const shown = await ask('developer', 'POST', 'web/me/second-factor/confirm', { code })
  const codes = (shown.body.recoveryCodes ?? []) as string[]
  expect([shown.status, codes.length > 3]).toEqual([200, true])
  for (const one of codes) canaries.plant('recovery code', one, [shown.at])
  await ask('nobody', 'POST', 'auth/sign-in', { email: developer.email, password: developer.password })
  const { email, password } = developer
  const signed = await ask('nobody', 'POST', 'auth/sign-in', { email, password, code: codes[0] })
  expect(signed.status).toBe(200)
  canaries.plant('token of a second sign-in', String(signed.body.accessToken), [signed.at])
})

test('what is written and never read', async () => {
  const credential = canaries.plant('credential that is stored', random('stored'))
  const proxy = canaries.plant('password of a proxy', random('proxy'))
  const made = await ask('admin', 'POST', 'web/channels', { provider: 'openai', credentials: [credential], name: 'c' })
  const { id } = (made.body.data as { id: string }[])[0]!
  for (const name of ['Authorization', 'x-api-key', 'cookie', 'x-our-token', 'x-gateway-secret']) {
    const headers = { [name]: canaries.plant(`header ${name}`, random('header')) }
    expect((await ask('owner', 'PATCH', `web/channels/${encodeURIComponent(id)}`, { headers })).status).toBe(400)
  }
  const set = await all.harness.weir('channels set', { channel: id, proxy: `http://joe:${proxy}@127.0.0.1:9` })
  canaries.heard(JSON.stringify(set))
  expect(
    await call(
      '/v1/chat/completions',
      { authorization: `Bearer ${all.key}` },
      {
        model: MODEL,
        messages: [{ role: 'user', content: 'Hello' }],
      },
    ),
  ).toBeLessThan(505)
  await ask('admin', 'POST', `web/channels/${encodeURIComponent(id)}/test`, {})
  await ask('admin', 'POST', `web/channels/${encodeURIComponent(id)}/fetch-models`)
  await ask('owner', 'GET', `web/channels/${encodeURIComponent(id)}`)
  for (const path of ['web/channels', 'web/providers']) await ask('owner', 'GET', path)
  await all.harness.weir('channels set', { channel: id, proxy: 'none' })
})

test('calls in every dialect, the key wherever it may stand, upstreams that repeat what they were sent', async () => {
  const messages = [{ role: 'user', content: 'Hello' }]
  const bodies: readonly (readonly [string, object])[] = [
    ['/v1/chat/completions', { model: MODEL, messages }],
    ['/v1/messages', { model: MODEL, messages, max_tokens: 50 }],
    ['/v1/responses', { model: MODEL, input: 'Hello' }],
    [`/v1beta/models/${MODEL}:generateContent`, { contents: [{ parts: [{ text: 'Hello' }] }] }],
    ['/api/v3/chat/completions', { model: MODEL, messages }],
  ]
  const key = all.key
  const carriers: readonly Record<string, string>[] = [
    ...[{ authorization: `Bearer ${key}` }, { 'x-api-key': key }, { 'x-goog-api-key': key }, { 'api-key': key }],
    ...[{ authorization: `Bearer ${key}x` }, { authorization: `Basic ${btoa(key)}` }, {}],
  ]
  for (const [path, body] of bodies) {
    for (const headers of carriers) await call(path, headers, body)
    await call(`${path}?key=${key}`, {}, body)
    await call(path, { 'authorization': `Bearer ${key}`, 'x-weir-explain': 'dry' }, body)
    await call(path, { authorization: `Bearer ${all.people.owner.token}` }, body)
    for (const status of [400, 401, 429, 500]) {
      const told = (head: string): string => JSON.stringify({ error: { message: head } })
      all.harness.upstream.plan(scripted(({ rawHead }) => jsonAnswer(status, told(rawHead))))
      await call(path, { authorization: `Bearer ${key}` }, body)
    }
    all.harness.upstream.plan(fail(500))
    await call(path, { authorization: `Bearer ${key}` }, { ...body, model: key })
  }
  await all.harness.idle()
})

test('every endpoint, by everybody, well and badly', async () => {
  for (const endpoint of describedEndpoints) {
    if (endpoint.path.includes('sign-out') || endpoint.path === '/api/web/sessions') continue
    const path = await things.pathFor(endpoint)
    const people = endpoint.method === 'GET' ? everybody : (['nobody', 'key', 'stranger', 'viewer'] as const)
    for (const somebody of people) {
      // What it shows once was looked at before.
      await ask(somebody, endpoint.method, path, endpoint.body && {})
    }
    for (const wrong of ['{', '[]', `{"${all.key}":1}`]) {
      const told = await all.ask.owner(endpoint.method, path, endpoint.body && wrong, fromElsewhere())
      canaries.heard(told.text.replaceAll(all.key.slice(0, 100), 'what they sent'))
    }
  }
  for (const wrong of [all.people.owner.password, all.people.admin.token]) {
    await ask('nobody', 'POST', 'auth/sign-in', { email: all.people.owner.email, password: `${wrong}x` })
  }
  await askAs(all.harness, `${all.people.owner.token}x`)('GET', 'web/me')
})

test('the command line, metrics, a doctor and a backup', async () => {
  const { weir, manage } = all.harness
  for (const [name, { ask: command }] of Object.entries(cliCommands)) {
    if (command === undefined || !/list|show|audit|records|statement|backtest|balance/.test(name)) continue
    const answer = await weir(name, { account: all.key, key: all.key, scope: all.key }).catch(String)
    canaries.heard(`${name} ${JSON.stringify(answer)}`)
  }
  canaries.heard(JSON.stringify(await manage('POST', '/machine/doctor')))
  canaries.heard(JSON.stringify(await weir('rotate', { kind: 'pepper', status: true })))
  canaries.heard(JSON.stringify(await weir('backup', { folder: join(folder, 'backup') })))
  const line = all.harness.logs.find(one => one.includes('/metrics'))!
  const { address } = JSON.parse(line) as { address: string }
  const metrics = await (await fetch(address)).text()
  expect(metrics).toContain('weir_')
  canaries.heard(metrics)
  const open = ['/openapi.json', '/docs', '/llms.txt', '/', '/health/ready', '/v1/models', '/api/public/settings']
  for (const path of open) {
    canaries.heard(await (await fetch(`${all.harness.url}${path}`)).text())
  }
  canaries.heard(JSON.stringify((await all.ask.owner('GET', 'web/audit-log?limit=200')).body))
})

test('none is in an answer but the one that shows it', () => {
  expect(canaries.heardCount).toBeGreaterThan(500)
  expect(canaries.all.length).toBeGreaterThan(30)
  expect(canaries.inAnswers()).toEqual([])
})

test('none is in the log', () => {
  expect(all.harness.logs.length).toBeGreaterThan(50)
  expect(canaries.inText(all.harness.logs.join(''), 'the log')).toEqual([])
})

test('none is in a column of a database', () => {
  const databases = ['weir.db', 'bodies.db', 'stats.db'].map(name => join(all.harness.folder, name))
  const values = databases.flatMap(valuesIn)
  expect(values.length).toBeGreaterThan(1_000)
  expect(values.flatMap(([place, text]) => canaries.inText(text, place))).toEqual([])
})

test('none is in a file: databases, their logs, backups and their notes', () => {
  const files = [...filesBelow(all.harness.folder), ...filesBelow(folder)]
  expect(files.some(([path]) => path.endsWith('weir.db-wal'))).toBe(true)
  expect(files.some(([path]) => path.startsWith(folder))).toBe(true)
  expect(files.flatMap(([path, text]) => canaries.inText(text, path))).toEqual([])
})

test('and none of ours went upstream, but what is the upstream’s own', () => {
  const own = ['credential of the environment', 'credential that is stored']
  const sent = all.harness.upstream.requests.map(({ rawHead, body }) => rawHead + Buffer.from(body).toString('latin1'))
  expect(sent.length).toBeGreaterThan(10)
  const found = canaries.inText(sent.join('\n'), 'what went upstream')
  expect(found.filter(one => !own.some(name => one.startsWith(name)))).toEqual([])
})
