// Runs the pages of docs/start from the first command to the last, each on a gateway of its own, and checks the promised
// result.

import { afterAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { channelId } from '../../src/upstreams/channels.ts'
import type { Served } from '../front/weir-process.ts'
import { cleanUp, freshFolder, serve, stopServed, weirSays } from '../front/weir-process.ts'

afterAll(cleanUp)

const ROOT = join(import.meta.dir, '..', '..')
const env = { OPENAI_API_KEY: 'sk-one,sk-two', MISTRAL_API_KEY: 'sk-three', OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1' }

interface Finished {
  readonly folder: string
  readonly served: Served
  readonly stdout: string
  /** The values of shell variables at the end of the page. */
  readonly values: Readonly<Record<string, string>>
}

/** Runs all shell blocks of a page as one script. Fails if a command fails. */
async function runPage(page: string, variables: readonly string[]): Promise<Finished> {
  const folder = freshFolder()
  const served = await serve(folder, env)
  const text = readFileSync(join(ROOT, 'docs', 'start', page), 'utf8')
  const blocks = [...text.matchAll(/^```sh\n([^]*?)^```/gm)].map(([, block]) => block!)
  expect(blocks.length).toBeGreaterThan(5)
  const curl = 'curl() { command curl -sS --fail-with-body --max-time 100 "$@"; }'
  const last = variables.map(name => `echo "${name}=$${name}"`)
  const script = ['set -e', curl, ...blocks, ...last].join('\n').replaceAll('http://127.0.0.1:8080', served.url)
  const child = Bun.spawn(['sh', '-c', script], {
    cwd: folder,
    env: { PATH: `${join(ROOT, 'bin')}:${process.env.PATH}`, HOME: folder, WEIR_DATA: folder },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  expect([code, stderr, code === 0 ? '' : stdout.slice(-500)]).toEqual([0, '', ''])
  const lines = stdout.trim().split('\n').slice(-variables.length)
  return { folder, served, stdout, values: Object.fromEntries(lines.map(line => line.split('=') as [string, string])) }
}

interface Explained {
  readonly wouldAnswer: { readonly code: string } | null
  readonly model?: { readonly resolved: readonly string[] }
  readonly limits: readonly { readonly span: string | null; readonly limit: number }[]
}

/** The refusal or the models of a dry call, and its limits for a day. */
async function explain({ url }: Served, key: string, model: string): Promise<readonly unknown[]> {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', 'x-weir-explain': 'dry' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
  })
  const { wouldAnswer, model: found, limits } = (await answer.json()) as Explained
  return [wouldAnswer?.code ?? found?.resolved, limits.filter(({ span }) => span === 'day').map(({ limit }) => limit)]
}

test('solo.md sets up a key with a budget, a route with a fallback, and two keys of a provider', async () => {
  const { served, stdout, values } = await runPage('solo.md', ['KEY'])
  expect(await explain(served, values.KEY!, 'local')).toEqual([['ollama/llama3.2', 'openai/gpt-4o-mini'], []])
  expect(stdout).toContain('Hello, river')
  const [one, two] = [channelId('openai', 'sk-one'), channelId('openai', 'sk-two')]
  expect(stdout).toMatch(new RegExp(`${one} .* 3 +0 .* set `))
  expect(stdout).toMatch(new RegExp(`${two} .* 1 +0 .* set `))
  const { budgets } = (await (await keyReport(served, values.KEY!)).json()) as { budgets: unknown[] }
  expect(budgets).toEqual([expect.objectContaining({ scope: 'key', span: 'day', cap: '5.00' })])
  expect(await stopServed(served)).toBe(0)
})

test('company.md sets up a team with a manager, limits, and a key for EU providers only', async () => {
  const { folder, served, stdout, values } = await runPage('company.md', ['KEY', 'CLINIC'])
  expect(await explain(served, values.KEY!, 'openai/gpt-4o')).toEqual([['openai/gpt-4o'], [100_000]])
  expect(await explain(served, values.KEY!, 'openai/gpt-4.1')).toEqual(['model_forbidden', [100_000]])
  expect(await explain(served, values.CLINIC!, 'mistral/mistral-small-latest')).toEqual([
    ['mistral/mistral-small-latest'],
    [],
  ])
  expect(await explain(served, values.CLINIC!, 'openai/gpt-4o')).toEqual(['model_forbidden', []])
  await weirSays(folder, 'routes set local openai/gpt-4o then openai/gpt-4o-mini')
  expect(await explain(served, values.CLINIC!, 'local')).toEqual(['model_forbidden', []])
  expect(stdout).toContain('"accountRole":"manager"')
  expect(stdout).toMatch(/whsec_[\w-]+/)
  const { budgets } = (await (await keyReport(served, values.KEY!)).json()) as { budgets: unknown[] }
  expect(budgets).toContainEqual(expect.objectContaining({ scope: 'account', span: 'month', cap: '500.00' }))
  expect(budgets).toContainEqual(expect.objectContaining({ scope: 'key', span: 'day', cap: '5.00' }))
  expect(await stopServed(served)).toBe(0)
})

test('reseller.md sets up a customer with a balance and a margin in the price', async () => {
  const { served, stdout, values } = await runPage('reseller.md', ['KEY'])
  const report = (await (await keyReport(served, values.KEY!)).json()) as Record<string, unknown>
  expect(report).toMatchObject({ tier: 'retail', account: { kind: 'prepaid', balance: '60.00' } })
  for (const kind of ['charge', 'refund', 'redemption', 'top_up'])
    expect(stdout).toMatch(new RegExp(` ${kind} +-?[0-9]`))
  expect(stdout).toContain('"defaultTier":"retail"')
  expect(stdout).toMatch(/{"name":"retail","multiplier":"1.2"}/)
  expect(await stopServed(served)).toBe(0)
})

const keyReport = ({ url }: Served, key: string): Promise<Response> =>
  fetch(`${url}/v1/key`, { headers: { authorization: `Bearer ${key}` } })
