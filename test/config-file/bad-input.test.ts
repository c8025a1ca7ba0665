// Files with mistakes: every mistake is named with the file, the line and what is allowed, and nothing is changed.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import { exported, problemsOf } from './apply.ts'

let harness: Harness
let before: string

beforeAll(async () => {
  harness = await startHarness()
  process.env.RIVER_KEY = 'sk-river-0123456789'
  await harness.manage('PUT', '/api/web/routes/taken', { members: [{ model: 'openai/gpt-4o' }] })
  const { id } = await harness.manage('POST', '/api/web/accounts', { name: 'Search' })
  await harness.manage('POST', '/api/web/keys', { account: id, name: 'prod', tier: 'free' })
  await harness.manage('POST', '/api/web/accounts', { name: 'twin' })
  await harness.manage('POST', '/api/web/accounts', { name: 'twin' })
  before = await state()
})
afterAll(async () => {
  delete process.env.RIVER_KEY
  await harness.stop()
})

/** Everything that a file could change, and the last entry of the audit log. */
async function state(): Promise<string> {
  const { data } = await harness.manage('GET', '/api/web/audit-log?limit=1')
  return JSON.stringify([await exported(harness), data])
}

/** A correct entry before the mistake would be applied if the file were not checked as a whole. */
const good = 'tiers:\n  - {name: new-tier, qpm: 5}\n'

const provider = `providers:
  - id: brook
    name: Brook
    baseUrl: https://brook.example/v1
    keyEnv: BROOK_KEY
    baseUrlEnv: BROOK_URL
    speaks: {openai-chat: /chat/completions}
    sign: bearer
`

const cases: readonly (readonly [what: string, file: string, problem: string | RegExp])[] = [
  [
    'an unknown field',
    `${good}  - {name: b, qmp: 5, qpm: 5}`,
    'weir.yaml:3: tiers[1].qmp: there is no such field. Did you mean "qpm"? Allowed: name, qpm, pricePerMille, accountQpm, accountConcurrency.',
  ],
  [
    'an unknown list',
    `${good}kesy: []`,
    /^weir\.yaml:3: kesy: there is no such field\. Did you mean "keys"\? Allowed: settings, providers, tiers, /,
  ],
  ['a wrong type', `${good}  - {name: b, qpm: many}`, 'weir.yaml:3: tiers[1].qpm: it must be a number.'],
  [
    'a number for a text',
    `${good}  - {name: 12, qpm: 5}`,
    'weir.yaml:3: tiers[1].name: it must be a string. Put it in quotes.',
  ],
  [
    'money as a number',
    `${good}accounts:\n  - name: a\n    creditLimit: 5`,
    /^weir\.yaml:5: accounts\[0\]\.creditLimit: US dollars as text, such as "5"/,
  ],
  ['a value out of range', `${good}  - {name: b, qpm: 0}`, 'weir.yaml:3: tiers[1].qpm: it must be at least 1.'],
  [
    'a field that is missing',
    `${good}  - {name: b}`,
    'weir.yaml:3: tiers[1].qpm: this field is missing; it must be a number.',
  ],
  [
    'a field that is written twice',
    `${good}  - name: b\n    qpm: 1\n    qpm: 2`,
    'weir.yaml:5: the same field is written twice. Write it once.',
  ],
  [
    'the same thing twice',
    `${good}  - {name: new-tier, qpm: 6}`,
    'weir.yaml:3: tiers[1]: this tier is described twice: also in tiers[0]. Describe it once.',
  ],
  [
    'the same limit twice',
    `${good}limits:\n  - {resource: tokens, span: day, amount: 5, per: [key, model]}\n  - {resource: tokens, span: day, amount: 6, per: [model, key]}`,
    'weir.yaml:5: limits[1]: this limit is described twice: also in limits[0]. Describe it once.',
  ],
  [
    'a secret in the file',
    `${good}channels:\n  - provider: openai\n    name: a\n    credential: sk-inline-0123456789`,
    'weir.yaml:6: channels[0].credential: a secret must not be written into the file. Write where it is: {env: NAME} for an environment variable, or {file: path} for a file.',
  ],
  [
    'two places of a secret',
    `${good}channels:\n  - {provider: openai, name: a, credential: {env: A, file: b}}`,
    'weir.yaml:4: channels[0].credential: it must have either "env" or "file".',
  ],
  [
    'a variable that is not set',
    `${good}channels:\n  - {provider: openai, name: a, credential: {env: NOT_SET_ANYWHERE}}`,
    'weir.yaml:4: channels[0].credential: the variable NOT_SET_ANYWHERE does not exist or is empty. Set it to the secret.',
  ],
  [
    'a secret file that is missing',
    `${good}channels:\n  - {provider: openai, name: a, credential: {file: ./no-such-file}}`,
    'weir.yaml:4: channels[0].credential: the file ./no-such-file does not exist or is empty. Set it to the secret.',
  ],
  [
    'a device as a secret file',
    `${good}channels:\n  - {provider: openai, name: a, credential: {file: /dev/zero}}`,
    'weir.yaml:4: channels[0].credential: /dev/zero is not a file.',
  ],
  [
    'a channel without a credential',
    `${good}channels:\n  - {provider: openai, name: a}`,
    'weir.yaml:4: channels[0].credential: OpenAI needs a credential. Write {env: NAME} or {file: path}.',
  ],
  [
    'a channel of an unknown provider',
    `${good}channels:\n  - {provider: opanai, name: a, credential: {env: RIVER_KEY}}`,
    /^weir\.yaml:4: channels\[0\]\.provider: there is no provider "opanai"\. Did you mean "openai"\? There are: /,
  ],
  [
    'a header that is a secret',
    `${good}channels:\n  - {provider: openai, name: a, credential: {env: RIVER_KEY}, headers: {Authorization: x}}`,
    /^weir\.yaml:4: channels\[0\]: The header Authorization looks like a credential/,
  ],
  [
    'a channel that is not in the environment',
    `${good}environmentChannels:\n  - {id: 'openai#zzzzzz'}`,
    /^weir\.yaml:4: environmentChannels\[0\]\.id: there is no channel of the environment "openai#zzzzzz"\. There are: demo#open, openai#/,
  ],
  [
    'a tier that does not exist',
    `${good}accounts:\n  - {name: a, tier: new-teir}`,
    'weir.yaml:4: accounts[0].tier: there is no tier "new-teir". Did you mean "new-tier"? There are: free, new-tier, pro, standard.',
  ],
  [
    'a default tier that does not exist',
    `${good}settings:\n  defaultTier: golden`,
    /^weir\.yaml:4: settings\.defaultTier: there is no tier "golden"\. There are: /,
  ],
  [
    'an account that does not exist',
    `${good}keys:\n  - {account: nobody, name: k, tier: free}`,
    'weir.yaml:4: keys[0].account: there is no account "nobody". There are: Search, twin.',
  ],
  [
    'a misspelt account of the gateway',
    `${good}keys:\n  - {account: search, name: k, tier: free}`,
    'weir.yaml:4: keys[0].account: there is no account "search". Did you mean "Search"? There are: Search, twin.',
  ],
  [
    'an account whose name is not unique',
    `${good}keys:\n  - {account: twin, name: k, tier: free}`,
    /^weir\.yaml:4: keys\[0\]\.account: several accounts have the name "twin": acc_\w+, acc_\w+\. Write the id of one of them\.$/,
  ],
  [
    'a key that does not exist',
    `${good}limits:\n  - {resource: concurrency, amount: 5, key: twin/none}`,
    /^weir\.yaml:4: limits\[0\]\.key: there is no key "twin\/none"\./,
  ],
  [
    'a misspelt key of the gateway',
    `${good}limits:\n  - {resource: concurrency, amount: 5, key: Search/prd}`,
    'weir.yaml:4: limits[0].key: there is no key "Search/prd". Did you mean "Search/prod"? There are: Search/prod. Write account/name, or an id (key_…).',
  ],
  [
    'a limit without its period',
    `${good}limits:\n  - {resource: tokens, amount: 5}`,
    'weir.yaml:4: limits[0]: A limit of tokens needs a window: minute or day.',
  ],
  [
    'a key that has expired',
    `${good}accounts: [{name: a}]\nkeys:\n  - {account: a, name: k, tier: free, expires: '2026-01-01T00:00:00Z'}`,
    'weir.yaml:5: keys[0].expires: it must be in the future.',
  ],
  [
    'a cycle of names',
    `${good}modelNames:\n  - {name: one, members: [two]}\n  - {name: two, members: [three]}\n  - {name: three, members: [one]}`,
    /^weir\.yaml:[456]: modelNames\[\d\]: The names refer to each other in a circle: \w+ → \w+ → \w+ → \w+\.$/,
  ],
  [
    'a cycle with a name of the gateway',
    `${good}modelNames:\n  - {name: openai/gpt-4o, members: [taken]}`,
    /^weir\.yaml:4: modelNames\[0\]: The names refer to each other in a circle: /,
  ],
  [
    'a member that does not exist',
    `${good}modelNames:\n  - {name: one, members: [openai/no-such-model]}`,
    'weir.yaml:4: modelNames[0].members: openai/no-such-model: OpenAI has no such model.',
  ],
  [
    'a weight in the name of a member',
    `${good}modelNames:\n  - {name: 'openai/*', members: ['openai/*']}\n  - {name: one, members: [openai/gpt-4o=2]}`,
    /^weir\.yaml:5: modelNames\[1\]\.members: openai\/gpt-4o=2: a weight must be a whole number, at least 0\. In a file /,
  ],
  [
    'a price of an unknown provider',
    `${good}prices:\n  - {model: openia/gpt-4o-mini, price: {input: '1', output: '2'}}`,
    /^weir.yaml:4: prices\[0\].model: there is no provider "openia"; did you mean "openai"\?; providers: /,
  ],
  [
    'a price as a number',
    `${good}prices:\n  - model: openai/gpt-4o-mini\n    price: {input: 1, output: '2'}`,
    /^weir\.yaml:5: prices\[0\]\.price/,
  ],
  [
    'a provider with an unknown field',
    `${provider}    modles: []\n${good}`,
    /^weir\.yaml:9: providers\[0\]\.modles: the provider has an unknown field "modles"\.$/,
  ],
  [
    'a provider with a wrong address',
    `${provider.replace('https://brook', 'ftp://brook')}${good}`,
    /^weir\.yaml:4: providers\[0\]\.baseUrl: /,
  ],
  ['a text that is no YAML', `${good}  - [a`, /^weir\.yaml:3: this is not valid YAML: /],
  [
    'two documents',
    `${good}---\na: 1`,
    'weir.yaml:3: there are several documents in the file ("---"). Only one is allowed.',
  ],
  [
    'a tag of a programming language',
    `${good}settings: !!js/function 'x'`,
    /^weir\.yaml:3: this is not valid YAML: unresolved tag/,
  ],
  ['an alias of nothing', `${good}accounts: *none`, 'weir.yaml: an alias (*name) has no anchor (&name).'],
  [
    'aliases of aliases',
    `a: &a [${'x,'.repeat(50)}x]\nb: &b [${'*a,'.repeat(20)}*a]\nc: &c [${'*b,'.repeat(20)}*b]\nd: [${'*c,'.repeat(20)}*c]`,
    'weir.yaml: there are too many aliases (*name).',
  ],
  ['an alias inside of its anchor', '&a [*a]', 'weir.yaml: an alias (*name) is inside of its own anchor (&name).'],
  [
    'an entry that contains itself',
    'accounts:\n  - &a {name: a, tier: *a}',
    /an alias \(\*name\) is inside of its own/,
  ],
  ['brackets without end', '['.repeat(100_000), 'weir.yaml: the file is nested too deeply.'],
  [
    'many brackets',
    `a: ${'['.repeat(3_000)}${']'.repeat(3_000)}`,
    /^weir\.yaml(:1: a: there is no such field|: the file is nested too)/,
  ],
  [
    'a file that is too large',
    '#'.repeat(5 * 1024 * 1024),
    'weir.yaml: the file is too large. It may have at most 4 MiB.',
  ],
  ['a text alone', 'tiers', 'weir.yaml:1: it must be an object.'],
]

test.each(cases)('%s', async (_, file, problem) => {
  const problems = await problemsOf(harness, file)
  if (typeof problem === 'string') expect(problems[0]).toBe(problem)
  else expect(problems[0]).toMatch(problem)
  expect(problems.join('\n')).not.toContain('sk-')
  expect(await state()).toBe(before)
})

test('all mistakes are listed at once, by line', async () => {
  const file = 'tiers:\n  - {name: a, qpm: 0}\n  - {name: B, qpm: 1}\nlimits: {}\nsettings: {registration: maybe}\n'
  const problems = await problemsOf(harness, file)
  expect(problems.map(line => line.split(': ').slice(0, 2).join(' '))).toEqual([
    'weir.yaml:2 tiers[0].qpm',
    'weir.yaml:3 tiers[1].name',
    'weir.yaml:4 limits',
    'weir.yaml:5 settings.registration',
  ])
})

test('the other fields of an entry are checked, too, when its account or its name is not right', async () => {
  const file = `
accounts: [{name: twin, tier: nonesuch}]
keys: [{account: nobody, name: k, tier: nonesuch, expires: '2026-01-01T00:00:00Z'}]
limits: [{account: nobody, key: nobody/none, tier: nonesuch, resource: tokens, amount: 5}]
`
  expect((await problemsOf(harness, file)).map(problem => problem.split(': ', 2)[1]!)).toEqual([
    'accounts[0].name',
    'accounts[0].tier',
    'keys[0].account',
    'keys[0].tier',
    'keys[0].expires',
    'limits[0].account',
    'limits[0].key',
    'limits[0].tier',
    'limits[0]',
  ])
})

test('an empty file is allowed and describes nothing', async () => {
  for (const file of ['', '# nothing\n', '{}']) {
    expect(await harness.weir('apply', { name: 'weir.yaml', file: 'weir.yaml', content: file })).toMatchObject({
      changes: [],
    })
  }
})
