// The commands for rules as an operator types them: every example of their documentation on a running gateway, some on
// the data folder alone, and mistakes.

import { afterAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { channelId } from '../../src/upstreams/channels.ts'
import type { Ran, Served } from '../front/weir-process.ts'
import { cleanUp, freshFolder, serve, stopServed, weir, weirSays } from '../front/weir-process.ts'

afterAll(cleanUp)

const ROOT = join(import.meta.dir, '..', '..')
const env = { OPENAI_API_KEY: 'sk-one,sk-two', ANTHROPIC_API_KEY: 'sk-three' }
const [one, two] = [channelId('openai', 'sk-one'), channelId('openai', 'sk-two')]

/** The commands of a page of the documentation, block by block. */
function blocksOf(page: string): readonly string[] {
  const text = readFileSync(join(ROOT, 'docs', page), 'utf8')
  return [...text.matchAll(/^```sh\n([^]*?)^```/gm)].map(([, block]) => block!.trim())
}

const pages = ['limits', 'model-names', 'channel-settings', 'restrict-keys'].map(name => `guides/${name}.md`)
const examples = pages.flatMap(blocksOf).flatMap(block => block.split('\n'))

async function typed(line: string, folder: string, more: Record<string, string> = {}): Promise<Ran> {
  const child = Bun.spawn(['sh', '-c', line.replace(/(^|\| )weir /, `$1${join(ROOT, 'bin', 'weir')} `)], {
    env: { PATH: process.env.PATH, WEIR_DATA: folder, ...more },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  return { code, stdout, stderr }
}

describe('while a gateway runs', () => {
  const folder = freshFolder()
  let served: Served
  let names: Record<string, string>

  test('every example of the pages about rules works as described', async () => {
    served = await serve(folder, env)
    const key = await weirSays(folder, 'keys create --tier pro')
    const account = /acc_\w{11}/.exec(await weirSays(folder, `balance ${key}`))![0]
    names = { KEY: key, ACCOUNT: account, CHANNEL: one, OTHER: two }
    expect(examples.length).toBeGreaterThan(20)
    for (const line of examples) {
      // A channel must have settings before they can be moved.
      if (line.includes('channels move')) await weirSays(folder, `channels set ${one} --weight 2`)
      const { code, stderr } = await typed(line, folder, names)
      expect([line, code, stderr.replace(/^weir: warning: .*\n/, '')]).toEqual([line, 0, ''])
    }
  })

  test('the rules afterwards are those of the last commands', async () => {
    const limits = await weirSays(folder, 'limits list')
    expect(limits).toMatch(/^id +limit +for +per\n *2 +1000000 tokens\/day +acc_\w{11} +all of them\n/)
    expect(limits).toMatch(/\n *3 +8 concurrency +key_\w{11} +all of them\n/)
    expect(limits).toMatch(/\n *4 +20000 requests\/day +all calls +account, model$/)
    const routes = await weirSays(folder, 'routes list')
    expect(routes).toMatch(/^name +policy +members\ngpt-\* +balanced +openai\/gpt-\* then azure\/gpt-\*\n/)
    expect(routes).toMatch(/\nsmart +balanced +openai\/gpt-4o=3 openai\/gpt-4o-mini then anthropic\/claude-sonnet-4-5$/)
    const listed = JSON.parse(await weirSays(folder, 'channels list --json')) as { data: Record<string, unknown>[] }
    expect(listed.data).toContainEqual(expect.objectContaining({ id: two, weight: 2, proxy: false }))
    const keyDetails = await weirSays(folder, `keys show ${names.KEY}`)
    expect(keyDetails).toMatch(/allows +-\ndenies +-\nrequires +-\n[^]*explains +false\n?/)
  })

  test.each([
    ['limits set requests -5/minute', 1, /^weir: <amount> is not valid: it must be at least 1\.\n$/],
    ['limits set requests', 2, /^weir: Usage: weir limits set/],
    ['limits', 2, /^weir: "weir limits" needs a second word\. See: weir help limits/],
    ['routes set smart', 2, /^weir: Usage: weir routes set <name>/],
    ['routes set smart nobody/x', 1, /^weir: nobody\/x: there is no such provider and no such model name\.\n$/],
    ['channels set openai#zzzzzz --weight 1', 1, /^weir: Unknown channel/],
    ['channels set openai#1 --tags A_B', 1, /^weir: --tags is not valid: it must be a word of lower-case letters/],
    ['channels move openai#1 nope', 1, /^weir: <to> is not valid: it must be an id such as relay#1\.\n$/],
    ['channels create opnai', 1, /^weir: Unknown provider "opnai"\. Did you mean "openai"\?\n$/],
    ['channels create openai', 1, /^weir: OpenAI needs a credential, and standard input is empty\.\n$/],
    ['limits set concurrency many', 2, /^weir: A limit of concurrency must be a whole number, such as 20\.\n$/],
    ['channels set openai#1 --proxy hunter2', 1, /^weir: --proxy is not valid: it must be an address such as/],
  ] as const)('weir %s is refused', async (command, code, pattern) => {
    const ran = await weir(folder, command)
    expect([ran.code, ran.stdout]).toEqual([code, ''])
    expect(ran.stderr).toMatch(pattern)
    expect(ran.stderr).not.toContain('hunter2')
  })

  test('a warning does not get into the output that other programs read', async () => {
    const ran = await weir(folder, 'keys create --allow nobody/*')
    expect(ran.stdout).toMatch(/^wk-\w{36}\n$/)
    expect(ran.stderr).toBe('weir: warning: No model matches at the moment: nobody/*.\n')
    const json = await weir(folder, 'keys create --allow nobody/* --json')
    expect([JSON.parse(json.stdout).warnings, json.stderr]).toEqual([[expect.stringContaining('nobody/*')], ''])
  })

  test('a proxy is neither in the folder in plain text nor in any output', async () => {
    const line = 'echo "http://joe:hunter2%25@proxy.example:3128" | weir channels set openai#1 --proxy - --tags eu'
    const { code, stdout, stderr } = await typed(line, folder)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/proxy +set\ntags +eu\n/)
    const listed = await weirSays(folder, 'channels list --json')
    const outputs = [stdout, listed, served.said(), served.logged()]
    for (const text of outputs) for (const word of ['hunter2', 'joe', 'proxy.example']) expect(text).not.toContain(word)
    for (const file of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue
      const bytes = readFileSync(join(file.parentPath, file.name))
      expect([file.name, bytes.includes('hunter2'), bytes.includes('proxy.example')]).toEqual([file.name, false, false])
    }
  })
})

test('without a gateway, commands work on the data folder alone and apply at the next start', async () => {
  const folder = freshFolder()
  await weirSays(folder, 'keys create', env)
  await weirSays(folder, 'limits set requests 1/day --model demo/*')
  await weirSays(folder, 'routes set hello demo/echo')
  expect(await weir(folder, 'channels set openai#1 --weight 2')).toMatchObject({ code: 1, stdout: '' })
  expect(await weirSays(folder, 'channels set openai#1 --weight 2', env)).toContain(one)
  const served = await serve(folder, env)
  expect(await weirSays(folder, 'limits list')).toContain('1 requests/day')
  expect(await weirSays(folder, 'routes list')).toMatch(/hello +balanced +demo\/echo/)
  expect(await weirSays(folder, 'channels list')).toMatch(new RegExp(`${one} .* 2 +0 `))
  expect(await stopServed(served)).toBe(0)
})

test('without a gateway, a mistake of the operator prints one sentence and no stack trace', async () => {
  const folder = freshFolder()
  await weirSays(folder, 'keys create')
  const { code, stderr } = await typed('weir routes remove nope', folder)
  expect([code, stderr]).toEqual([1, 'weir: Unknown model name. See: weir routes list.\n'])
})
