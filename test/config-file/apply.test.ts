// weir apply: the plan, what it changes, what it removes, and what the audit log says about it.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildPlan } from '../../src/management/config-file/plan.ts'
import { readConfigFile } from '../../src/management/config-file/read-file.ts'
import type { ManagementClient } from '../../src/management/config-file/requests.ts'
import { buildClient } from '../../src/management/config-file/requests.ts'
import { weir } from '../front/weir-process.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import { outcomeOf } from '../support/outcome.ts'
import { apply, exported, problemsOf } from './apply.ts'

let harness: Harness

beforeAll(async () => {
  process.env.SPARE_KEY = 'sk-spare-0123456789'
  harness = await startHarness()
})
afterAll(async () => {
  delete process.env.SPARE_KEY
  await harness.stop()
})

async function auditLog(): Promise<readonly { readonly action: string; readonly target: string }[]> {
  const { data } = await harness.manage('GET', '/api/web/audit-log?limit=200&sort=seq')
  return data as { action: string; target: string }[]
}

/** The actions that a function writes to the audit log. */
async function audited(run: () => Promise<unknown>): Promise<readonly string[]> {
  const before = (await auditLog()).length
  await run()
  return (await auditLog()).slice(before).map(({ action }) => action)
}

const channel = (fields = ''): string => `
channels:
  - provider: openai
    name: spare
    credential: {env: SPARE_KEY}
${fields}`

describe('a plan', () => {
  beforeEach(() => apply(harness, `tiers: [{name: gold, qpm: 5}]\n${channel('    weight: 3')}`))

  test('names what is new, and the old and new value of what changes', async () => {
    const file = `tiers:\n  - {name: gold, qpm: 6, pricePerMille: 900}\n  - {name: silver, qpm: 4}\n${channel()}`
    const { plan, applied } = await apply(harness, file, { dryRun: true })
    expect(applied).toBe(false)
    expect(plan).toEqual([
      '~ tier gold',
      '    pricePerMille: 1000 → 900',
      '    accountQpm: 50 → 60',
      '    qpm: 5 → 6',
      '+ tier silver',
      '    name: silver',
      '    qpm: 4',
      '~ channel openai/spare',
      '    weight: 3 → 1',
    ])
  })

  test('is only printed in a dry run', async () => {
    const before = await exported(harness)
    const actions = await audited(() => apply(harness, 'tiers: [{name: gold, qpm: 9}]', { dryRun: true, prune: true }))
    expect([actions, await exported(harness)]).toEqual([[], before])
  })

  test('shows a new credential by its fingerprint only', async () => {
    process.env.SPARE_KEY = 'sk-other-0123456789'
    const { plan } = await apply(harness, channel('    weight: 3'))
    process.env.SPARE_KEY = 'sk-spare-0123456789'
    expect(plan).toEqual(['~ channel openai/spare', expect.stringMatching(/^ {4}credential: \w{6} → \w{6}$/)])
    expect(JSON.stringify(plan)).not.toContain('sk-')
    expect((await apply(harness, channel('    weight: 3'))).plan).toHaveLength(2)
  })
})

test('a plan that removes nothing does not read the owner of each limit and webhook', async () => {
  const { id } = await harness.manage('POST', '/api/web/accounts', { name: 'many' })
  for (let number = 0; number < 50; number++) {
    const key = await harness.manage('POST', '/api/web/keys', { account: id, name: `many-${number}` })
    await harness.manage('POST', '/api/web/limits', { resource: 'requests', span: 'minute', amount: 5, key: key.id })
  }
  await harness.manage('POST', `/api/web/accounts/${String(id)}/webhooks`, {
    url: 'https://hooks.example.com/many',
    events: ['balance.low'],
  })
  const read: string[] = []
  const client = buildClient(harness.gateway.manage)
  const get: ManagementClient['get'] = (path, query) => {
    read.push(path)
    return client.get(path, query)
  }
  const content = `
limits: [{resource: tokens, span: day, amount: 9, account: many}]
webhooks: [{account: many, url: "https://hooks.example.com/many", events: [balance.low]}]
`
  const { changes } = await buildPlan({
    client: Object.assign(client.bind(undefined), { get }),
    file: readConfigFile(content, 'weir.yaml'),
    prune: false,
    secrets: { env: {}, folder: '.' },
    nowMs: Date.now,
  })
  expect(changes.map(({ noun }) => noun)).toEqual(['limit'])
  expect(read.filter(path => /^\/api\/web\/(keys|accounts)\/./.test(path))).toEqual([])
})

describe('what a plan prints', () => {
  const secretFile = (part: string, events = 'balance.low'): string => `
providers:
  - {id: fen, name: Fen, baseUrl: "https://fen.example/v1", keyEnv: FEN_KEY, baseUrlEnv: FEN_URL, speaks: {openai-chat: /c}, sign: bearer, models: []}
webhooks: [{url: "https://hooks.example.com/${part}path?key=${part}query", events: [${events}]}]
channels:
  - provider: openai
    name: masked
    credential: {env: SPARE_KEY}
    headers: {x-team: ${part}header}
    parameters: {openai-chat: {set: {metadata.session_token: ${part}parameter, temperature: 1, user: river}}}
`
  const printed = async (content: string, options = {}): Promise<string> => {
    const answer = await harness.weir('apply', { file: 'weir.yaml', name: 'weir.yaml', content, ...options })
    return JSON.stringify({ ...answer, created: [] })
  }

  test('is without the paths of webhooks, the values of headers and fields that look like secrets', async () => {
    const first = await printed(secretFile('hidden1'))
    expect(first).not.toContain('hidden1')
    for (const text of ['https://hooks.example.com/…', 'x-team', 'metadata.session_token', 'river', 'temperature']) {
      expect(first).toContain(text)
    }
    // A value that is masked still shows that it changes.
    const { plan } = await apply(harness, secretFile('hidden2').replace(/webhooks.*/, ''), { dryRun: true })
    expect(plan).toEqual([
      '~ channel openai/masked',
      '    headers: {"x-team":"…"} → {"x-team":"…"} (changed)',
      expect.stringMatching(/^ {4}parameters: .*"user":"river".* \(changed\)$/),
    ])
    expect(await printed(secretFile('hidden2'), { 'prune': true, 'dry-run': true })).not.toContain('hidden')
  })

  test('is without the password and the query of an address that the gateway would refuse', async () => {
    const channels = 'channels: [{provider: openai, name: b, baseUrl: URL, credential: {env: SPARE_KEY}}]'
    for (const url of ['https://joe:hidden3@a.example/v1', 'https://a.example/v1?key=hidden3']) {
      expect(await printed(channels.replace('URL', `"${url}"`), { 'dry-run': true })).not.toContain('hidden3')
      expect(await outcomeOf(apply(harness, channels.replace('URL', `"${url}"`)))).toThrow(/^(?!.*hidden3)/s)
    }
  })

  test('is without the text of a key or a token that is written in place of an id', async () => {
    const wrong = [harness.key(), Promise.resolve('wst-0123456789abcdefghijklmnopqrstuvwxyz')]
    for (const text of await Promise.all(wrong)) {
      for (const file of [
        `limits: [{resource: concurrency, amount: 5, key: "${text}"}]`,
        `keys: [{account: "${text}", name: k, tier: free}]`,
        `keys: [{account: "a", name: k, tier: "${text}"}]`,
        `settings: {defaultTier: "${text}"}`,
      ]) {
        expect((await problemsOf(harness, file)).join('\n')).not.toContain(text.slice(0, 12))
      }
    }
  })
})

test('each change has its own entry in the audit log, and a second time there is none', async () => {
  const file = `
accounts: [{name: audited, budgets: {day: "1", month: "5"}}]
keys: [{account: audited, name: ci, tier: free}]
modelNames: [{name: second, members: [first]}, {name: first, members: [openai/gpt-4o]}]
limits: [{resource: tokens, span: day, amount: 5, account: audited}]
`
  expect(await audited(() => apply(harness, file))).toEqual([
    ...['createAccount', 'setBudget', 'setBudget', 'createKey', 'setLimit', 'setRoute', 'setRoute', 'setKey'],
  ])
  expect(await audited(() => apply(harness, file))).toEqual([])
  const changed = file.replace('month: "5"', 'total: "6"').replace('amount: 5', 'amount: 6')
  expect(await audited(() => apply(harness, changed))).toEqual(['setBudget', 'setBudget', 'changeLimit'])
})

test('names that lead to each other in another order are changed without a cycle in between', async () => {
  await apply(harness, 'modelNames: [{name: up, members: [down]}, {name: down, members: [openai/gpt-4o]}]')
  await apply(harness, 'modelNames: [{name: down, members: [up]}, {name: up, members: [openai/gpt-4o]}]')
  // This name of the gateway is removed, but as long as it is there it makes a cycle with the new one.
  await harness.manage('PUT', '/api/web/routes/back', { members: [{ model: 'openai/gpt-4o-mini' }] })
  await harness.manage('PUT', '/api/web/routes/openai/gpt-4o', { members: [{ model: 'back' }] })
  const { plan } = await apply(harness, 'modelNames: [{name: back, members: [openai/gpt-4o]}]', { prune: true })
  expect(plan).toContain('- model name openai/gpt-4o')
  expect(await harness.manage('GET', '/api/web/routes')).toMatchObject({ data: [{ name: 'back' }] })
})

test('a model name that the gateway has already is only warned of if a member of it is no model any more', async () => {
  const models = ['roach', 'perch'].map(id => ({ id, price: { input: '1', output: '2' } }))
  const speaks = { 'openai-chat': '/c' }
  const names = { id: 'mere', name: 'Mere', keyEnv: 'MERE_KEY', baseUrlEnv: 'MERE_URL' }
  const definition = { ...names, baseUrl: 'https://mere.example/v1', speaks, sign: 'bearer', models }
  await harness.manage('POST', '/api/web/providers', { definition })
  const content = 'modelNames:\n  - {name: fish, members: [mere/roach, openai/gpt-4o]}'
  await apply(harness, content)
  await harness.manage('PATCH', '/api/web/providers/mere', { definition: { models: models.slice(1) } })
  const { plan, warnings } = await apply(harness, content)
  const problem = 'weir.yaml:2: modelNames[0].members: mere/roach: Mere has no such model.'
  expect([plan, warnings]).toEqual([[], [problem]])
  for (const other of [content.replace('gpt-4o', 'gpt-4o-mini'), content.replace('fish', 'fresh')]) {
    expect(await problemsOf(harness, other)).toEqual([problem])
  }
})

test('--prune removes what the lists of the file do not have, and nothing of other lists', async () => {
  const { created } = await apply(
    harness,
    `
tiers: [{name: gold, qpm: 5}, {name: free, qpm: 20, accountConcurrency: 50}, {name: standard, qpm: 300}, {name: pro, qpm: 3000}]
accounts: [{name: pruned, tier: gold}]
keys: [{account: pruned, name: stays, tier: gold}, {account: pruned, name: goes, tier: gold}]
limits: [{resource: concurrency, amount: 1, tier: gold}, {resource: concurrency, amount: 1, tier: free}]
prices: [{model: openai/gpt-4o-mini, price: {input: "1", output: "1"}}]
`,
  )
  expect(created.map(({ name }) => name)).toEqual(['key pruned/stays', 'key pruned/goes'])
  const file = `
accounts: [{name: pruned, tier: gold}]
keys: [{account: pruned, name: stays, tier: gold}]
limits: [{resource: concurrency, amount: 1, tier: gold}]
`
  expect((await apply(harness, file)).plan).toEqual([])
  const { plan, warnings } = await apply(harness, file, { prune: true })
  expect(plan).toContain('- key pruned/goes')
  expect(plan).toContain('- limit concurrency of tier free')
  expect(plan.join()).not.toContain('price')
  expect(warnings.join('\n')).toContain('is not in the file, but it cannot be removed')
  const { data } = await harness.manage('GET', '/api/web/keys?name=goes')
  expect(data).toMatchObject([{ state: 'revoked' }])
  expect((await apply(harness, file, { prune: true })).plan).toEqual([])
})

test('--prune leaves the tier that accounts without a tier need', async () => {
  const file = 'tiers: [{name: gold, qpm: 5}, {name: free, qpm: 20}, {name: pro, qpm: 3000}]'
  const { plan, warnings } = await apply(harness, file, { prune: true, dryRun: true })
  expect(plan.join()).not.toContain('- tier standard')
  expect(warnings.join()).toContain('The tier standard (standard) is not in the file, but it cannot be removed.')
})

test('--prune lets a key have the tier that cannot be removed', async () => {
  const file = `
tiers: [{name: gold, qpm: 900}, {name: free, qpm: 20}, {name: pro, qpm: 3000}]
accounts: [{name: plain}]
keys: [{account: plain, name: ci, tier: standard}]
`
  const { plan } = await apply(harness, file, { prune: true, dryRun: true })
  expect(plan).toContain('+ key plain/ci')
  const others = file.replace('standard', 'nonesuch')
  expect(await problemsOf(harness, others, { prune: true })).toEqual([
    expect.stringContaining('there is no tier "nonesuch". There are: free, gold, pro, standard.'),
  ])
})

test('--prune says of which account and key it removes something', async () => {
  const content = `
accounts: [{name: first}, {name: second}]
keys: [{account: first, name: prod, tier: free}, {account: second, name: prod, tier: free}]
limits: [{resource: tokens, amount: 1, span: day, account: first}, {resource: tokens, amount: 1, span: day, key: second/prod}]
webhooks: [{account: first, url: "https://hook.example/x", events: [balance.low]}]
`
  await apply(harness, content)
  const { plan } = await apply(harness, 'keys: []\nlimits: []\nwebhooks: []', { prune: true, dryRun: true })
  expect(plan).toEqual(
    expect.arrayContaining([
      '- key first/prod',
      '- key second/prod',
      '- limit tokens/day of account first',
      expect.stringMatching(/^- limit tokens\/day of key prod \(key_\w+\)$/),
      '- webhook https://hook.example of first',
    ]),
  )
})

test('--prune of a tier that keys have is refused before anything is changed', async () => {
  await harness.key({ tier: 'pro' })
  const before = await exported(harness)
  const problems = await problemsOf(harness, 'tiers: [{name: only, qpm: 5}]', { prune: true })
  expect(problems).toContainEqual(
    expect.stringMatching(/^weir\.yaml: --prune would remove the tier pro, but \d+ keys have it\. Add it/),
  )
  expect(await exported(harness)).toEqual(before)
})

test('a change that the gateway refuses is named, with how many were made before it', async () => {
  const file = 'tiers: [{name: bronze, qpm: 5}]\nwebhooks:\n  - {url: "http://10.0.0.1/", events: [balance.low]}'
  const [problem, progress] = await problemsOf(harness, file)
  expect(problem).toMatch(/^weir\.yaml:3: webhook http:\/\/10\.0\.0\.1: "url": /)
  expect(progress).toBe('1 of 2 changes were made. Correct this and apply the file again.')
})

test('two who apply the same new file at the same time make each thing once', async () => {
  const file = 'accounts: [{name: raced}]\nkeys: [{account: raced, name: ci, tier: free}]'
  const results = await Promise.allSettled([apply(harness, file), apply(harness, file), apply(harness, file)])
  const failed = results.flatMap(result => (result.status === 'rejected' ? [String(result.reason)] : []))
  for (const text of failed) expect(text).toContain('This name is taken')
  const accounts = (await harness.manage('GET', '/api/web/accounts?name=raced')).data as { id: string }[]
  expect(accounts).toHaveLength(1)
  await apply(harness, file)
  expect((await harness.manage('GET', `/api/web/keys?account=${accounts[0]!.id}`)).data).toHaveLength(1)
  expect((await apply(harness, file)).plan).toEqual([])
})

test('a new address of a provider needs the credentials of its channels again, in the same step', async () => {
  const file = (host: string): string => `
providers:
  - {id: creek, name: Creek, baseUrl: "https://${host}/v1", keyEnv: CREEK_KEY, baseUrlEnv: CREEK_URL, speaks: {openai-chat: /c}, sign: bearer, models: []}
channels: [{provider: creek, name: main, credential: {env: SPARE_KEY}}]`
  await apply(harness, file('one.example'))
  await apply(harness, file('two.example'))
  const { data } = await harness.manage('GET', '/api/web/channels?provider=creek')
  expect(data).toMatchObject([{ state: 'enabled', credential: { origin: 'https://two.example' } }])
  expect((await apply(harness, file('two.example'))).plan).toEqual([])
  delete process.env.SPARE_KEY
  const [problem] = await problemsOf(harness, file('three.example'))
  process.env.SPARE_KEY = 'sk-spare-0123456789'
  expect(problem).toContain('the address changes, so the credential must be sent again')
})

test('a credential that is replaced by hand no longer comes from where the file said', async () => {
  await apply(harness, channel())
  const { data } = await harness.manage('GET', '/api/web/channels?provider=openai&from=stored&text=spare')
  const [{ id }] = data as [{ id: string }]
  await harness.manage('PATCH', `/api/web/channels/${encodeURIComponent(id)}`, { credential: 'sk-by-hand-0123456789' })
  const { file, warnings } = await exported(harness)
  expect(file).not.toContain('env: SPARE_KEY\n    weight')
  expect(warnings.join('\n')).toContain('openai/spare was not set by a file: set OPENAI_SPARE_CREDENTIAL')
  expect((await apply(harness, channel())).plan).toEqual([
    '~ channel openai/spare',
    expect.stringMatching(/credential: /),
    '    credentialFrom: null → env:SPARE_KEY',
  ])
})

test('an id can be given to a new account or key, but not one that is taken or not made yet', async () => {
  const account = { name: 'given', id: 'acc_06dnh97yr00' }
  expect(await harness.manage('POST', '/api/web/accounts', account)).toMatchObject(account)
  const key = { account: account.id, name: 'k', tier: 'free' }
  for (const [body, path, problem] of [
    [account, 'accounts', 'Another account or key has this id.'],
    [{ ...key, id: 'key_06dnh97yr00' }, 'keys', 'Another account or key has this id.'],
    [{ ...account, id: 'acc_7zzzzzzzzzz' }, 'accounts', 'must be an id that a gateway has made'],
    [{ ...account, id: 'acc_00000000001' }, 'accounts', 'must be an id that a gateway has made'],
  ] as const) {
    expect(await outcomeOf(harness.manage('POST', `/api/web/${path}`, body))).toThrow(problem)
  }
})

test('an entry with an id is found by it, and can get another name', async () => {
  await apply(harness, 'accounts: [{name: before}]')
  const { data } = await harness.manage('GET', '/api/web/accounts?name=before')
  const [{ id }] = data as [{ id: string }]
  expect((await apply(harness, `accounts: [{id: ${id}, name: after}]`)).plan).toEqual([
    '~ account after',
    '    name: before → after',
  ])
})

describe('in processes of their own', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-apply-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const run = (command: string, typed?: string) =>
    weir(harness.folder, command, { SPARE_KEY: 'sk-spare-0123456789', ...(typed !== undefined && { STDIN: typed }) })

  test('weir export | weir apply -f - changes nothing, also with --prune', async () => {
    const { stdout: file } = await run('export')
    const { stdout, code } = await run('apply -f - --prune', file)
    expect([stdout, code]).toEqual(['No changes.\n', 0])
  })

  test('a file with a secret in another file, and JSON instead of YAML', async () => {
    writeFileSync(join(folder, 'secret'), 'sk-from-a-file-0123456789\n')
    const entry = { provider: 'openai', name: 'from file', credential: { file: './secret' } }
    writeFileSync(join(folder, 'weir.json'), JSON.stringify({ channels: [entry] }))
    const { stdout, code } = await run(`apply -f ${join(folder, 'weir.json')}`)
    expect([stdout, code]).toEqual([expect.stringContaining('+ channel openai/from file'), 0])
    expect((await exported(harness)).file).toContain('file: ./secret')
  })

  test('a mistake is printed with its line, and the exit code is 1', async () => {
    writeFileSync(join(folder, 'bad.yaml'), 'tiers:\n  - {name: a, qpm: x}\n')
    const { stderr, code } = await run(`apply -f ${join(folder, 'bad.yaml')}`)
    expect([stderr, code]).toEqual([`weir: ${folder}/bad.yaml:2: tiers[0].qpm: it must be a number.\n`, 1])
  })

  test.each(['', ' --json'])('a key that was created before a refused change is in the output%s', async json => {
    const account = `unlucky${json.trim()}`
    const file = `
accounts: [{name: ${account}}]
keys: [{account: ${account}, name: ci, tier: free}]
webhooks: [{url: "http://10.0.0.1/", events: [balance.low]}]`
    const { stdout, stderr, code } = await run(`apply -f -${json}`, file)
    expect(code).toBe(1)
    expect(stderr).toContain('2 of 3 changes were made. Correct this and apply the file again.')
    expect(stderr).not.toContain('wk-')
    if (json === '') expect(stdout).toMatch(/\nCreated: key unlucky\/ci\. Its secret is shown once: wk-\w{36}\n/)
    else {
      const answer = JSON.parse(stdout) as { applied: boolean; created: object[]; error: string; changes: object[] }
      expect(answer).toMatchObject({ applied: false, created: [{ secret: expect.stringMatching(/^wk-\w{36}$/) }] })
      expect([answer.changes.length, stderr]).toEqual([3, `weir: ${answer.error}\n`])
    }
  })

  test('both commands work on the data folder while no gateway runs', async () => {
    const stopped = await startHarness({ folder: join(folder, 'data') })
    await stopped.stop()
    const alone = (command: string, STDIN: string) => weir(join(folder, 'data'), command, { STDIN })
    const file = 'tiers: [{name: alone, qpm: 5}]\nmodelNames: [{name: lonely, members: [demo/echo]}]\n'
    expect(await alone('apply -f -', file)).toMatchObject({
      code: 0,
      stdout: [
        ...['+ tier alone', '    name: alone', '    qpm: 5'],
        ...['+ model name lonely', '    name: lonely', '    members: [{"model":"demo/echo","priority":0,"weight":1}]'],
        ...['', '2 changes made.', ''],
      ].join('\n'),
    })
    expect(await alone('apply -f -', file)).toMatchObject({ code: 0, stdout: 'No changes.\n' })
    expect((await alone('export --only modelNames', '')).stdout).toBe(
      'modelNames:\n  - name: lonely\n    members:\n      - demo/echo\n',
    )
    expect((await alone('export --only moddelNames', '')).stderr).toContain(
      'Unknown list "moddelNames". Lists: settings, ',
    )
    expect(await alone('export --only ,', '')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('The value of --only is empty.'),
    })
  })

  test('a job applies a file to a remote gateway with a service token', async () => {
    const { token } = await harness.weir('tokens create', { name: 'ci', role: 'owner' })
    const remote = { WEIR_TOKEN: String(token), WEIR_URL: harness.url, REMOTE_KEY: 'sk-remote-0123456789' }
    const alone = (command: string, STDIN = '') => weir(join(folder, 'nothing'), command, { ...remote, STDIN })
    const file = `
tiers: [{name: remote, qpm: 5}]
accounts: [{name: remote}]
keys: [{account: remote, name: ci, tier: remote}]
channels: [{provider: openai, name: remote, credential: {env: REMOTE_KEY}}]
`
    const { code, stdout, stderr } = await alone('apply -f -', file)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/\nCreated: key remote\/ci\. Its secret is shown once: wk-\w{36}\n\n4 changes made\.\n$/)
    expect(await alone('apply -f -', file)).toMatchObject({ code: 0, stdout: 'No changes.\n' })
    const [last] = (await harness.manage('GET', '/api/web/audit-log?limit=1')).data as { actor: string }[]
    expect(last!.actor).toStartWith('tok_')
    const exportedThere = (await alone('export')).stdout
    // Only the operator's own machine says where secrets come from, so that an export has a name of its own for this one.
    expect(exportedThere).toContain('env: OPENAI_REMOTE_CREDENTIAL')
    expect(exportedThere).toBe((await run('export')).stdout)
  })
})

test('a key that the file enables again may have no known text, and its warning says how to make a new one', async () => {
  const file = 'accounts: [{name: halted}]\nkeys: [{account: halted, name: ci, tier: free}]\n'
  const { created } = await apply(harness, file)
  const { id } = created[0]!
  // As a process leaves it that ends right after it has created the key.
  await harness.manage('PATCH', `/api/web/keys/${id}`, { disabled: true })
  const { plan, warnings } = await apply(harness, file)
  expect(plan).toContain('    disabled: true → false')
  expect(warnings.join()).toContain(`make a new one with: weir keys rotate ${id}`)
  expect((await apply(harness, file)).warnings).toEqual([])
})
