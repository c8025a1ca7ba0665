// A program that applies a file may die at any step. A key of the file never works without its budgets and limits, and
// applying the file again finishes the work.

import { afterAll, expect, test } from 'bun:test'
import type { ShownOnce } from '../../src/management/config-file/apply.ts'
import { applyPlan } from '../../src/management/config-file/apply.ts'
import { buildPlan } from '../../src/management/config-file/plan.ts'
import { readConfigFile } from '../../src/management/config-file/read-file.ts'
import type { ManagementClient } from '../../src/management/config-file/requests.ts'
import { buildClient } from '../../src/management/config-file/requests.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'

let harness: Harness

afterAll(() => harness.stop())

const file = `
tiers: [{name: gold, qpm: 500}]
accounts: [{name: acme, kind: postpaid, creditLimit: "5", denies: ["openai/o*"], budgets: {day: "3", month: "4"}}]
keys:
  - {account: acme, name: one, tier: gold, denies: ["openai/gpt-5*"], budgets: {day: "1", total: "2"}}
  - {account: acme, name: two, tier: free}
  - {account: acme, name: off, tier: free, disabled: true}
limits:
  - {resource: concurrency, amount: 3, key: acme/one}
  - {resource: tokens, span: day, amount: 100000, account: acme, per: [model]}
  - {resource: requests, span: minute, amount: 700, tier: gold}
webhooks: [{account: acme, url: "https://hooks.example.com/x", events: [balance.low], disabled: true}]
`

async function planOf(content: string) {
  const parts = { prune: false, secrets: { env: {}, folder: '.' }, nowMs: Date.now }
  const client = buildClient(harness.gateway.manage)
  return await buildPlan({ ...parts, client, file: readConfigFile(content, 'weir.yaml') })
}

/** The client of a program that may die at each write: `beforeWrite` throws, and nothing more is sent. */
function watchedClient(beforeWrite: () => Promise<void>): ManagementClient {
  const client = buildClient(harness.gateway.manage)
  const send = async (method: string, path: string, body?: unknown) => {
    await beforeWrite()
    return await client(method, path, body)
  }
  return Object.assign(send, { get: client.get }) as ManagementClient
}

/** The texts of the keys that were created, by name. */
const texts = new Map<string, string>()
const note = ({ name, secret }: ShownOnce): void => void texts.set(name.replace('key acme/', ''), secret)

async function isAccepted(text: string): Promise<boolean> {
  const answer = await chat(harness, text, { model: 'openai/gpt-4o-mini', messages: hello })
  await answer.text()
  return answer.status !== 401
}

const acceptedKeys = async (): Promise<readonly string[]> => {
  const answers = await Promise.all([...texts].map(async ([name, text]) => ((await isAccepted(text)) ? [name] : [])))
  return answers.flat().toSorted()
}

/** What a program would leave behind if it died now: a key that works must have everything that restricts it. */
async function checkState(): Promise<void> {
  const accepted = await acceptedKeys()
  const { changes } = await planOf(file)
  const left = changes
    .filter(({ noun, fields }) => noun !== 'key' || Object.keys(fields).join() !== 'disabled')
    .map(({ noun, label }) => `${noun} ${label}`)
  expect([accepted, accepted.length > 0 ? left : []]).toEqual([accepted, []])
  expect(accepted).not.toContain('off')
  // The webhook of the file is disabled from its creation on.
  const { data } = await harness.manage('GET', '/api/web/webhooks')
  expect((data as { disabled: boolean }[]).filter(({ disabled }) => !disabled)).toEqual([])
}

async function startEmpty(): Promise<void> {
  await harness?.stop()
  harness = await startHarness()
  texts.clear()
}

test('a key works only when everything that restricts it is set, wherever the program dies', async () => {
  await startEmpty()
  let writes = 0
  const client = watchedClient(async () => {
    writes++
    await checkState()
  })
  await applyPlan(await planOf(file), client, note)
  await checkState()
  expect([writes, await acceptedKeys()]).toEqual([15, ['one', 'two']])
  expect((await planOf(file)).changes).toEqual([])
})

test('a program that dies after each write makes progress, and finishes', async () => {
  await startEmpty()
  let lives = 0
  for (let plan = await planOf(file); plan.changes.length > 0; plan = await planOf(file)) {
    let writes = 0
    const client = watchedClient(() => (++writes > 1 ? Promise.reject(new Error('killed')) : Promise.resolve()))
    await applyPlan(plan, client, note).catch(() => {})
    await checkState()
    expect(++lives).toBeLessThan(30)
  }
  expect(await acceptedKeys()).toEqual(['one', 'two'])
})
