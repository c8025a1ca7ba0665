// Runs every command on a running gateway, in a sensible order. Each exits with 0 and prints JSON that a script can read.
// A new command needs a line here.

import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { providerData } from '../../scripts/write-provider-data.ts'
import { cliCommands } from '../../src/cli/commands/commands.ts'
import { describeCommands, helpLines } from '../../src/cli/help.ts'
import { weir } from '../front/weir-process.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import { askAs } from '../support/management.ts'
import { addPerson } from '../support/people.ts'

/** Values from earlier answers. The lines below use them by name, in braces. */
const values: Record<string, string> = {}
let harness: Harness
let listener: Bun.Server<undefined>
let env: Readonly<Record<string, string>>
const upstreamKeys = 'sk-one-0123456789,sk-two-0123456789'
const before = process.env.WEIR_DATA

beforeAll(async () => {
  harness = await startHarness({ upstreamKeys, env: { WEIR_PRIVATE_HOSTS: '127.0.0.1' } })
  process.env.WEIR_DATA = harness.folder
  env = { XDG_CONFIG_HOME: harness.folder }
  listener = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(null, { status: 204 }) })
  Object.assign(values, { hook: `http://127.0.0.1:${listener.port}/` })
  Object.assign(values, { url: harness.url, upstream: harness.upstream.url, backup: join(harness.folder, 'copy') })
})
afterAll(async () => {
  if (before === undefined) delete process.env.WEIR_DATA
  else process.env.WEIR_DATA = before
  await listener.stop(true)
  await harness.stop()
})

type Answer = Record<string, unknown>

interface Line {
  readonly command: string
  /** The standard input. Such a command runs as a process of its own, and so does one that writes to a home folder. */
  readonly stdin?: string
  readonly remember?: (answer: Answer) => Record<string, unknown>
  readonly prepare?: () => Promise<Record<string, unknown>>
  readonly output?: 'lines of JSON'
}

const password = 'a river runs through it'
const first = (list: unknown): Answer => (list as Answer[])[0]!

async function makePerson() {
  const { email } = await addPerson(harness, askAs(harness, values.token!))
  return { email }
}

async function makeCall() {
  const answer = await chat(harness, values.key!, { model: 'openai/gpt-4o-mini', messages: hello })
  await answer.text()
  await harness.idle()
  return { call: answer.headers.get('x-request-id') }
}

async function useOtherDataFolder() {
  process.env.WEIR_DATA = join(harness.folder, 'again')
  return {}
}

async function writeProviderData() {
  const data = join(harness.folder, 'providers.json')
  writeFileSync(data, providerData())
  return { data, sha256: createHash('sha256').update(providerData()).digest('hex') }
}

async function findChannels() {
  const { data: channels } = await harness.weir('channels list')
  const [one, two] = (channels as { id: string }[]).map(({ id }) => id).filter(id => id.startsWith('openai#'))
  return { one, two }
}

const lines: readonly Line[] = [
  { command: 'version' },
  { command: 'setup --email olga@example.com --name Olga', stdin: password },
  { command: 'token', remember: ({ token }) => ({ token }) },
  { command: 'users list' },
  { command: 'users role {email} support', prepare: makePerson },
  { command: 'users disable {email}' },
  { command: 'users enable {email}' },
  { command: 'users reset-password {email}', stdin: 'another river of words' },
  { command: 'users email {email} moved@example.com' },
  { command: 'keys create --tier pro --credit 5', remember: ({ key, account }) => ({ key, account }) },
  { command: 'keys set {key} --bodies on --name laptop --allow openai/*,demo/* --endpoints chat' },
  { command: 'keys list' },
  { command: 'keys show {key}' },
  { command: 'tokens create ci --role admin --expires 90d', remember: ({ id }) => ({ serviceToken: id }) },
  { command: 'tokens create team --account {account} --account-role developer' },
  { command: 'tokens list' },
  { command: 'tokens set ci --name deploy --expires none' },
  { command: 'tokens rotate deploy --overlap 1h' },
  { command: 'tokens revoke {serviceToken}' },
  { command: 'accounts create --name team' },
  { command: 'accounts list' },
  { command: 'accounts set {account} --credit-limit 1' },
  { command: 'accounts show {account}' },
  { command: 'accounts freeze {account}' },
  { command: 'accounts unfreeze {account}' },
  { command: 'top-up {account} 5 --reference invoice-1' },
  { command: 'topup {account} 5 --reference invoice-2' },
  { command: 'gift {account} 1' },
  { command: 'adjust {account} -0.5' },
  {
    command: 'codes create --count 2 --amount 1 --batch spring',
    remember: ({ codes }) => ({ code: (codes as string[])[0] }),
  },
  { command: 'codes redeem {code} {account}' },
  { command: 'codes list' },
  { command: 'codes list spring' },
  { command: 'codes void spring' },
  { command: 'budgets set {account} day 5' },
  { command: 'budgets show {account}' },
  { command: 'balance {key}' },
  { command: 'records', prepare: makeCall },
  { command: 'record {call}' },
  { command: 'bodies {call}' },
  { command: 'refund {call}' },
  { command: 'statement {account}' },
  { command: 'records export', output: 'lines of JSON' },
  { command: 'records delete --user nobody' },
  { command: 'records deletions' },
  { command: 'prices show' },
  { command: 'prices show openai/gpt-4o-mini' },
  { command: 'prices set openai/gpt-4o-mini {"input":"1.00","output":"2.00"}' },
  { command: 'prices withdraw openai/gpt-4o-mini' },
  { command: 'prices backtest openai/gpt-4o-mini {"input":"1.00","output":"2.00"}' },
  { command: 'prices check' },
  { command: 'limits set requests 100/minute --key {key}', remember: ({ id }) => ({ limit: id }) },
  { command: 'limits list' },
  { command: 'limits remove {limit}' },
  { command: 'routes set small openai/gpt-4o-mini' },
  { command: 'routes list' },
  { command: 'routes remove small' },
  { command: 'channels list' },
  { command: 'providers update {data} --sha256 {sha256}', prepare: writeProviderData },
  { command: 'channels set {one} --weight 3', prepare: findChannels },
  { command: 'channels move {one} {two}' },
  { command: 'channels reset {two}' },
  { command: 'apply --file - --prune', stdin: 'limits: [{resource: concurrency, amount: 9}]' },
  { command: 'export' },
  { command: 'channels test {one} --model gpt-4o-mini' },
  { command: 'channels models {one}' },
  {
    command: 'channels create openai --base-url {upstream}/v1',
    stdin: 'sk-three-0123456789',
    remember: ({ data }) => ({ made: first(data).id }),
  },
  { command: 'channels credential {made}', stdin: 'sk-four-0123456789' },
  { command: 'channels disable {made}' },
  { command: 'channels enable {made}' },
  { command: 'channels delete {made}' },
  {
    command: 'webhooks create {hook} --events balance.low --account {account}',
    remember: ({ id }) => ({ webhook: id }),
  },
  { command: 'webhooks list' },
  { command: 'webhooks test {webhook}' },
  { command: 'webhooks deliveries {webhook}' },
  { command: 'webhooks remove {webhook}' },
  { command: 'rotate jwt' },
  { command: 'rotate jwt --status' },
  { command: 'audit' },
  { command: 'backup {backup}' },
  { command: 'check' },
  { command: 'doctor' },
  { command: 'connect' },
  { command: 'connect codex --url {url} --key {key}' },
  { command: 'login --url {url} --email olga@example.com', stdin: password },
  { command: 'api GET /api/web/me', stdin: '' },
  { command: 'logout', stdin: '' },
  { command: 'fake-upstream --list' },
  { command: 'keys rotate {key} --overlap 1h' },
  { command: 'keys revoke {key}' },
  { command: 'restore {backup}', prepare: useOtherDataFolder },
]

/** Fields whose text comes from callers, upstreams or a random generator, so it may look like a number. */
const FREE_TEXT = /^(request|answer|body|mark|name|reference|suffix|text)$/
/** Words and signs instead of a JSON value such as null or true. */
const WORD_FOR_VALUE = /^(-|none|never|no|yes|true|false|null|undefined|NaN|\[object Object\])?$/

/** The paths at which a script would have to parse text: null, a number, a list or an object written as a string. */
function oddValues(value: unknown, path = ''): readonly string[] {
  if (value !== null && typeof value === 'object') {
    const names = Array.isArray(value) ? [] : Object.keys(value).filter(name => /\s/.test(name))
    const below = Object.entries(value).flatMap(([name, one]) => oddValues(one, `${path}.${name}`))
    return [...names.map(name => `${path}.${name}: a blank in a name`), ...below]
  }
  if (typeof value !== 'string' || FREE_TEXT.test(path.slice(path.lastIndexOf('.') + 1))) return []
  const isOdd = WORD_FOR_VALUE.test(value) || /^[+-]?\d+$/.test(value) || /^[[{].*[\]}]$/s.test(value)
  return isOdd ? [`${path}: ${JSON.stringify(value)}`] : []
}

test('oddValues finds values that are written as text', () => {
  const odd = { none: '-', next: 'never', empty: '', count: '12', list: [{ price: '{"input":"1"}' }], 'a b': 1 }
  expect(oddValues(odd)).toHaveLength(Object.keys(odd).length)
  const right = { none: null, count: 12, cost: '1.50', list: ['a', { price: { input: '1.00' } }], name: '12' }
  expect(oddValues(right)).toEqual([])
})

const nameOf = (command: string): string =>
  Object.keys(cliCommands).find(name => command === name || command.startsWith(`${name} `)) ?? ''

describe('every command', () => {
  test('has a line in this file, except those that print no JSON', () => {
    const covered = new Set(lines.map(({ command }) => nameOf(command)))
    // test/postgres runs migrate and migrate-to, which need PostgreSQL.
    const others = ['serve', 'migrate-to', 'migrate', 'completion']
    expect(Object.keys(cliCommands).filter(name => !covered.has(name))).toEqual(others)
  })

  test('is listed in the help in a line that fits a terminal, and has help of its own', async () => {
    const help = helpLines()
    for (const [name, { usage }] of Object.entries(cliCommands)) {
      expect(help.filter(line => line.startsWith(`  ${name}  `))).toHaveLength(1)
      expect(describeCommands([name])[0]).toStartWith(`weir ${usage.split(' ')[0]}`)
    }
    expect(help.filter(line => line.length > 120)).toEqual([])
    expect(await weir(harness.folder, 'help')).toEqual({ code: 0, stdout: `${help.join('\n')}\n`, stderr: '' })
  })

  test.each(lines.map(line => [line.command, line] as const))('weir %s', async (_, line) => {
    Object.assign(values, await line.prepare?.())
    const words = line.command.split(' ').map(word => word.replace(/\{(\w+)\}/, (_all, name: string) => values[name]!))
    const { code, stdout, stderr } = await (line.stdin === undefined ? runHere(words) : runInProcess(words, line.stdin))
    expect({ code, stderr, stdout }).toEqual({ code: 0, stderr: '', stdout })
    const texts = line.output === undefined ? [stdout] : stdout.trim().split('\n')
    const answers = texts.map(text => JSON.parse(text) as Answer)
    expect(answers[0]).toBeObject()
    expect(answers.flatMap(answer => oddValues(answer))).toEqual([])
    Object.assign(values, line.remember?.(answers[0]!))
  })
})

const runInProcess = (words: readonly string[], stdin: string) =>
  weir(harness.folder, [...words, '--json'].join(' '), { ...env, STDIN: `${stdin}\n` })

/** Runs a command in this process, because a process for each command would be slow. */
async function runHere(words: readonly string[]) {
  const name = nameOf(words.join(' '))
  let stdout = ''
  const spy = spyOn(process.stdout, 'write').mockImplementation(((written: string | Uint8Array, then?: () => void) => {
    stdout += Buffer.from(written).toString()
    then?.()
    return true
  }) as typeof process.stdout.write)
  try {
    await cliCommands[name]!.run([...words.slice(name.split(' ').length), '--json'])
    return { code: process.exitCode ?? 0, stdout, stderr: '' }
  } finally {
    spy.mockRestore()
    process.exitCode = 0
  }
}
