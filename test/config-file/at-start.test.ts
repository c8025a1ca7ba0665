// WEIR_CONFIG: the file is applied before the gateway answers, and what it describes can only be changed in the file.

import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runChecks } from '../../src/cli/checks/check.ts'
import type { ShownOnce } from '../../src/management/config-file/apply.ts'
import { weir } from '../front/weir-process.ts'
import { freePort } from '../support/free-port.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, HUNG_MS, hello, startHarness } from '../support/gateway.ts'
import { askAs, askAsOwner } from '../support/management.ts'
import { addPerson, setUpOwner } from '../support/people.ts'
import { apply, exported } from './apply.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-config-'))
const data = join(folder, 'data')
const path = join(folder, 'weir.yaml')
let harness: Harness | undefined
/** What the last start has created. */
let created: ShownOnce[] = []

afterEach(async () => {
  await harness?.stop()
  harness = undefined
  rmSync(data, { recursive: true, force: true })
})

async function start(file: string | undefined, env: Record<string, string> = {}): Promise<Harness> {
  if (file !== undefined) writeFileSync(path, file)
  await harness?.stop()
  harness = undefined
  created = []
  harness = await startHarness({
    folder: data,
    env: { ...(file !== undefined && { WEIR_CONFIG: path }), ...env },
    world: { onCreatedByFile: shown => void created.push(shown) },
  })
  return harness
}

const file = `
settings: {siteName: River}
tiers:
  - {name: gold, qpm: 900}
accounts:
  - {name: acme, tier: gold, kind: postpaid, budgets: {month: "5"}}
keys:
  - {account: acme, name: ci, tier: gold}
channels:
  - {provider: openai, name: spare, credential: {env: SPARE_KEY}}
modelNames:
  - {name: small, members: [openai/gpt-4o-mini]}
limits:
  - {resource: concurrency, amount: 5, key: acme/ci}
prices:
  - {model: openai/gpt-4o-mini, price: {input: "1", output: "2"}}
webhooks:
  - {account: acme, url: "https://hooks.example.com/x", events: [balance.low], secret: {file: hook-secret}}
providers:
  - id: brook
    name: Brook
    baseUrl: https://brook.example/v1
    keyEnv: BROOK_KEY
    baseUrlEnv: BROOK_URL
    speaks: {openai-chat: /chat/completions}
    sign: bearer
    models: []
`

test('a gateway starts with everything that its file describes, and a second start changes nothing', async () => {
  writeFileSync(join(folder, 'hook-secret'), `${'s'.repeat(40)}\n`)
  const one = await start(file, { SPARE_KEY: 'sk-spare-0123456789' })
  const [{ name, secret } = { name: '', secret: '' }] = created
  expect(name).toBe('key acme/ci')
  const answer = await chat(one, secret, { model: 'small', messages: hello })
  expect([answer.status, answer.headers.get('x-pipeline-auth')]).toEqual([200, expect.stringContaining('tier=gold')])
  await answer.text()
  await one.idle()
  const before = await exported(one)
  expect(before.file).toContain('env: SPARE_KEY')
  expect(before.file).toContain('file: hook-secret')
  const log = await one.manage('GET', '/api/web/audit-log?limit=1')
  const byFile = (await one.manage('GET', '/api/web/audit-log?actor=file')).data as unknown[]
  expect(byFile).toHaveLength(12)
  // The prices of the provider files are written later, at the first start, and do not replace that of the file.
  const model = await one.manage('GET', '/api/web/models/openai/gpt-4o-mini')
  expect(model.price).toMatchObject({ rates: { input: '1.00', output: '2.00' } })
  const again = await start(file, { SPARE_KEY: 'sk-spare-0123456789' })
  expect(created).toEqual([])
  expect((await exported(again)).file).toBe(before.file)
  const [last] = (await again.manage('GET', '/api/web/audit-log?limit=1')).data as { action: string }[]
  expect([last]).toEqual(log.data as never)
})

test('what the file describes is marked and refused elsewhere, until a later file no longer has it', async () => {
  writeFileSync(join(folder, 'hook-secret'), 's'.repeat(40))
  const env = { SPARE_KEY: 'sk-spare-0123456789' }
  const one = await start(file, env)
  const ask = await askAsOwner(one)
  const first = async (list: string): Promise<Record<string, unknown>> =>
    ((await ask('GET', `web/${list}`)).body.data as Record<string, unknown>[]).find(row => row.managedBy === 'file')!
  const [account, key, channel, limit, hook] = await Promise.all(
    ['accounts', 'keys', 'channels', 'limits', 'webhooks'].map(first),
  )
  const id = (row: Record<string, unknown> | undefined): string => encodeURIComponent(String(row!.id))
  const refused: readonly (readonly [string, string, unknown?])[] = [
    ['PATCH', 'web/settings', { siteName: 'Other' }],
    ['PATCH', 'web/tiers/gold', { qpm: 1 }],
    ['DELETE', 'web/tiers/gold'],
    ['PATCH', `web/accounts/${id(account)}`, { name: 'other' }],
    ['PUT', `web/accounts/${id(account)}/budgets/month`, { cap: '1' }],
    ['DELETE', `web/accounts/${id(account)}/budgets/month`],
    ['PUT', `web/keys/${id(key)}/budgets/day`, { cap: '1' }],
    ['PATCH', `web/keys/${id(key)}`, { name: 'other' }],
    ['DELETE', `web/keys/${id(key)}`],
    ['PATCH', `web/channels/${id(channel)}`, { weight: 2 }],
    ['POST', `web/channels/${id(channel)}/disable`],
    ['POST', `web/channels/${id(channel)}/reset`],
    ['POST', 'web/channels/bulk', { filter: { provider: 'openai' }, change: { weight: 2 } }],
    ['DELETE', `web/channels/${id(channel)}`],
    ['PUT', 'web/routes/small', { members: [{ model: 'openai/gpt-4o' }] }],
    ['DELETE', 'web/routes/small'],
    ['PATCH', `web/limits/${id(limit)}`, { amount: 6 }],
    ['DELETE', `web/limits/${id(limit)}`],
    ['PUT', 'web/prices/openai/gpt-4o-mini', { price: { input: '1', output: '1' } }],
    ['PUT', 'web/prices/openai%2Fgpt-4o-mini', { price: { input: '1', output: '1' } }],
    ['DELETE', 'web/prices/openai/gpt-4o-mini'],
    ['PATCH', `web/webhooks/${id(hook)}`, { disabled: true }],
    ['POST', `web/webhooks/${id(hook)}/secret`],
    ['DELETE', `web/webhooks/${id(hook)}`],
    ['PATCH', 'web/providers/brook', { definition: { name: 'B' } }],
    ['POST', 'web/providers/brook/models', { models: [{ id: 'x' }] }],
    ['DELETE', 'web/providers/brook'],
  ]
  const before = await exported(one)
  for (const [method, where, body] of refused) {
    const told = await ask(method, where, body)
    expect([method, where, told.status, told.error.code]).toEqual([method, where, 409, 'managed_by_file'])
    expect(told.error.message).toContain('is in the file of WEIR_CONFIG. Change it there and restart Weir')
  }
  expect(await exported(one)).toEqual(before)
  // What a file does not say can be changed: other settings, whether an account is frozen, the text of a key.
  expect((await ask('GET', 'web/settings')).body.managed).toEqual(['siteName'])
  for (const [method, where, body] of [
    ['PATCH', 'web/settings', { notice: 'Hello' }],
    ['PATCH', `web/accounts/${id(account)}`, { frozen: true }],
    ['POST', `web/keys/${id(key)}/rotate`, {}],
    ['PATCH', 'web/tiers/pro', { qpm: 7 }],
  ] as const) {
    expect([where, (await ask(method, where, body)).status]).toEqual([where, 200])
  }
  // The command line is refused in the same way, and so is another file; the same file changes nothing.
  await expect(one.manage('PATCH', '/api/web/tiers/gold', { qpm: 1 })).rejects.toThrow('is in the file of WEIR_CONFIG')
  await expect(apply(one, 'tiers: [{name: gold, qpm: 1}]')).rejects.toThrow('is in the file of WEIR_CONFIG')

  const later = await start('tiers: [{name: gold, qpm: 901}]', env)
  const askAgain = await askAsOwner(later)
  expect((await askAgain('PATCH', `web/channels/${id(channel)}`, { weight: 2 })).body).toMatchObject({
    managedBy: null,
  })
  expect((await askAgain('GET', 'web/tiers/gold')).body).toMatchObject({ qpm: 901, managedBy: 'file' })
  const free = await start(undefined)
  expect((await (await askAsOwner(free))('PATCH', 'web/tiers/gold', { qpm: 5 })).body).toMatchObject({
    managedBy: null,
  })
})

test('somebody who may not see an account does not learn that a file describes it', async () => {
  const one = await start('accounts: [{name: acme}]')
  const { ask: owner } = await setUpOwner(one)
  const [account] = (await owner('GET', 'web/accounts?name=acme')).body.data as { id: string }[]
  const { token } = await addPerson(one, owner)
  const stranger = askAs(one, token)
  const told = await stranger('PATCH', `web/accounts/${account!.id}`, { name: 'mine' })
  expect([told.status, told.error.code]).toEqual([404, 'resource_unknown'])
})

type Key = { readonly id: string; readonly account: string }

const withTwoKeys = `
accounts: [{name: acme}, {name: brook}]
keys: [{account: acme, name: a, tier: free}, {account: brook, name: b, tier: free}]
`

test('many keys at once are refused for any that the file describes, also behind one of another account', async () => {
  const one = await start(withTwoKeys)
  const { ask: owner } = await setUpOwner(one)
  const [acme, brook] = (await owner('GET', 'web/keys?tier=free&sort=name')).body.data as Key[]
  const { ask } = await addPerson(one, owner, { members: [{ account: brook!.account, role: 'developer' }] })
  const codeOf = async (...keys: string[]): Promise<unknown> =>
    (await ask('POST', 'web/keys/bulk', { action: 'disable', keys })).error?.code
  expect(await codeOf(acme!.id, brook!.id)).toBe('managed_by_file')
  expect(await codeOf(acme!.id)).toBe('resource_unknown')
})

test.each([
  ['a mistake', 'tiers: [{name: gold, qmp: 5}]', /weir\.yaml:2: tiers\[0\]\.qmp: there is no such field/],
  [
    'a secret that is not there',
    'channels: [{provider: openai, name: a, credential: {env: NO_SUCH}}]',
    /the variable NO_SUCH does not exist/,
  ],
])('%s in the file stops the start, and nothing is changed', async (_, bad, problem) => {
  await start(undefined)
  const before = (await exported(harness!)).file
  await expect(start(`settings: {siteName: River}\n${bad}`)).rejects.toThrow(problem)
  expect((await exported(await start(undefined))).file).toBe(before)
})

const withKey = `
accounts: [{name: acme}]
keys: [{account: acme, name: ci, tier: free}]
`

test('a port that is taken stops the start before the file is applied', async () => {
  writeFileSync(path, withKey)
  const taken = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  for (const env of [{ PORT: String(taken.port) }, { METRICS_PORT: String(taken.port) }]) {
    await expect(start(withKey, env)).rejects.toThrow(`Cannot listen on 127.0.0.1:${taken.port}`)
  }
  await taken.stop(true)
  const free = await start(undefined)
  expect((await free.manage('GET', '/api/web/accounts?name=acme')).data).toEqual([])
})

test('the text of a key is printed as soon as the key exists, also if the start fails after that', async () => {
  writeFileSync(path, `${withKey}webhooks: [{url: "http://10.0.0.1/", events: [balance.low]}]`)
  const env = { WEIR_CONFIG: path, PORT: '0', LOG_LEVEL: 'silent', WEIR_BALLAST_MB: '0', WEIR_LOCAL_SERVERS: 'off' }
  const { code, stdout, stderr } = await weir(data, 'serve', env)
  expect([code, stderr]).toEqual([1, expect.stringContaining('webhook http://10.0.0.1: "url": ')])
  expect(stdout).toMatch(/^The configuration file created the key acme\/ci\. Its secret is shown once: wk-\w{36}\n/)
  // The start was refused before the key was complete, so the key does not work until a later start has finished.
  const text = /wk-\w+/.exec(stdout)![0]
  const without = await start(undefined)
  expect((await chat(without, text, { model: 'demo/echo', messages: hello })).status).toBe(401)
  const again = await start(withKey)
  expect(created).toEqual([])
  const answer = await chat(again, text, { model: 'demo/echo', messages: hello })
  expect([answer.status, await answer.json()]).not.toEqual([401, expect.anything()])
})

describe('while the file is applied', () => {
  /** Starts with a file, and does this before the file is applied completely. */
  async function during(step: (url: string) => unknown, world: object = {}, file = withKey): Promise<void> {
    writeFileSync(path, file)
    const port = freePort()
    harness = await startHarness({
      folder: data,
      env: { WEIR_CONFIG: path, PORT: String(port) },
      world: { ...world, onCreatedByFile: async () => void (await step(`http://127.0.0.1:${port}`)) },
    })
  }

  test('the gateway lives, but is not ready, and other requests wait', async () => {
    const statuses: number[] = []
    let models: Promise<Response> | undefined
    await during(
      async url => {
        models = fetch(`${url}/v1/models`)
        for (const path of ['live', 'ready']) statuses.push((await fetch(`${url}/health/${path}`)).status)
      },
      { startWaitMs: HUNG_MS },
    )
    expect([...statuses, (await models!).status]).toEqual([200, 503, 200])
    expect((await fetch(`${harness!.url}/health/ready`)).status).toBe(200)
  })

  test('requests that have waited too long are refused in their dialect', async () => {
    const answers: unknown[] = []
    const ask = async (url: string, path: string): Promise<void> => {
      const answer = await fetch(`${url}${path}`, {
        method: 'POST',
        body: '{}',
        headers: { authorization: 'Bearer x' },
      })
      answers.push([answer.status, answer.headers.has('retry-after'), await answer.json()])
    }
    await during(
      async url => {
        for (const path of ['/v1/chat/completions', '/v1/messages', '/api/auth/login']) await ask(url, path)
      },
      { startWaitMs: 5 },
    )
    const message = expect.stringContaining('The gateway is starting.')
    expect(answers).toMatchObject([
      [503, true, { error: { code: 'overloaded', message } }],
      [529, true, { type: 'error', error: { type: 'overloaded_error', message } }],
      [503, true, { error: { code: 'overloaded', message } }],
    ])
  })

  test('requests are refused if the start fails', async () => {
    let waiting: Promise<Response> | undefined
    const failing = `${withKey}webhooks: [{url: "http://10.0.0.1/", events: [balance.low]}]`
    const step = async (url: string): Promise<void> => {
      waiting = fetch(`${url}/v1/models`)
      await fetch(`${url}/health/live`)
    }
    await expect(during(step, {}, failing)).rejects.toThrow('"url"')
    expect((await waiting!).status).toBe(503)
  })
})

test('a file that cannot be read stops the start', async () => {
  const gone = { WEIR_CONFIG: join(folder, 'gone.yaml') }
  await expect(startHarness({ folder: data, env: gone })).rejects.toThrow(
    /WEIR_CONFIG: the file .*gone\.yaml cannot be read/,
  )
})

test('weir check finds mistakes of the file, and knows the variables that it refers to', async () => {
  const env = { WEIR_DATA: data, PORT: '0', BUN_CONFIG_MAX_HTTP_REQUESTS: '20000', WEIR_CONFIG: path }
  const found = async (file: string, more = {}): Promise<readonly string[]> => {
    writeFileSync(path, file)
    const findings = await runChecks({ ...env, ...more })
    return findings.filter(({ about }) => /WEIR_/.test(about) && about !== 'WEIR_DATA').map(({ says }) => says)
  }
  expect(await found('tiers: [{name: a}]')).toEqual([
    `${path}:1: tiers[0].qpm: this field is missing; it must be a number.`,
  ])
  const channel = 'channels: [{provider: openai, name: a, credential: {env: WEIR_MAIN}}]'
  expect(await found(channel)).toEqual([`${path}:1: channels[0].credential: this secret does not exist or is empty.`])
  expect(await found(channel, { WEIR_MAIN: 'sk-0123456789' })).toEqual([])
  rmSync(path)
  expect((await runChecks(env)).map(({ says }) => says).join()).toContain('The file cannot be read')
})
