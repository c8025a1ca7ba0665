// docs/reference/metrics.md lists every metric that a gateway exposes, with its type and labels, and no other.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fail, jsonAnswer } from '../../tools/fake-upstream/answers.ts'
import { script } from '../../tools/fake-upstream/script.ts'
import type { Exposed } from '../metrics/exposition.ts'
import { readExposition } from '../metrics/exposition.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'

const text = readFileSync(join(import.meta.dir, '..', '..', 'docs', 'reference', 'metrics.md'), 'utf8')
const ROW = /^\| `(\w+)` \| (counter|gauge|histogram) \| ([\w, ]*) ?\| (.+) \|$/gm
const rows = Array.from(text.matchAll(ROW), ([, name, type, labels]) => ({ name, type, labels: labels!.trim() }))

let harness: Harness
let families: readonly Exposed[]

beforeAll(async () => {
  // Without regular audits, so that none has run by then, however slow the machine is.
  harness = await startHarness({ env: { METRICS_PORT: '0', WEIR_AUDIT_SECONDS: '0' } })
  const key = await harness.key({ qpm: 10_000 })
  const ask = async (): Promise<void> =>
    void (await (await chat(harness, key, { model: 'openai/gpt-4o-mini', messages: hello })).text())
  await ask()
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
  const usage = { prompt_tokens: 1, completion_tokens: -1 }
  harness.upstream.plan(script(...jsonAnswer(200, JSON.stringify({ choices, usage }))))
  await ask()
  harness.upstream.planModel('gpt-4o-mini', fail(401))
  for (let times = 0; times < 3; times++) await ask()
  await harness.idle()
  const url = /http:\S+\/metrics/.exec(harness.logs.find(line => line.includes('"metrics"'))!)![0]
  families = readExposition(await (await fetch(url)).text())
})
afterAll(() => harness.stop())

test('the page lists every exposed metric, and no other', () => {
  expect(rows.length).toBeGreaterThan(30)
  const exposed = families.map(({ name, type }) => `${name} ${type}`).sort()
  expect(rows.map(({ name, type }) => `${name} ${type}`).sort()).toEqual(exposed)
})

test('the page lists the labels of every metric', () => {
  for (const { name, labels } of rows) {
    const sample = families.find(family => family.name === name)!.samples[0]
    const actual = Object.keys(sample?.labels ?? {})
      .filter(label => label !== 'le')
      .join(', ')
    if (sample !== undefined) expect([name, actual]).toEqual([name!, labels])
  }
  const withoutSamples = families.filter(({ samples }) => samples.length === 0).map(({ name }) => name)
  expect(withoutSamples).toEqual(['weir_paced_calls_per_second', 'weir_ledger_audit_age_seconds'])
})

test('queries and alerts on the page use listed metrics only', () => {
  const known = new Set(rows.map(({ name }) => name!))
  const mentioned = [...text.matchAll(/\b(weir_[a-z_]+)/g)].map(([, name]) => name!.replace(/_(bucket|sum|count)$/, ''))
  expect(mentioned.filter(name => !known.has(name))).toEqual([])
})
