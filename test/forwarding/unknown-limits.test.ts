// Models of which no output limit is known, or whose limit does not include reasoning: their answers are longer than those
// of most models, and still nothing is delivered that is not reserved.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { streamed } from '../../tools/fake-upstream/answers.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello } from '../support/gateway.ts'
import { startHasty } from './caller.ts'
import { done, event, finish, role, sends, usageOnly } from './wire.ts'

const provider = {
  id: 'long',
  name: 'Long answers',
  baseUrl: 'http://127.0.0.1:9',
  keyEnv: 'LONG_KEY',
  baseUrlEnv: 'LONG_URL',
  speaks: { 'openai-chat': '/chat/completions' },
  sign: 'bearer',
  can: { capsThought: false },
  models: [{ id: 'writer', contextTokens: 1_000_000, price: { input: '1', output: '4' } }],
}
/** Nano-dollars of a token. */
const OUT = 4_000
/** As many as most models write at most, in pieces of a hundred. */
const MANY = 32_768
const pieces = (tokens: number): readonly string[] => new Array<string>(tokens / 100).fill('word'.repeat(100))

let harness: Harness
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-limits-'))
  writeFileSync(join(folder, 'long.json'), JSON.stringify(provider))
  const upstreamEnv = (url: string) => ({ LONG_KEY: 'sk-long', LONG_URL: `${url}/v1` })
  harness = await startHasty({ env: { WEIR_PROVIDERS: folder }, upstreamEnv })
})
afterAll(async () => {
  await harness.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function call(dollars: string, more: object = {}): Promise<string> {
  const key = await harness.key({ credit: dollars })
  const response = await chat(harness, key, { model: 'long/writer', messages: hello, stream: true, ...more })
  const text = await response.text()
  await harness.idle()
  return text
}

describe('an answer ends where the money ends', () => {
  const dollars = ((2.5 * MANY * OUT) / 1e9).toFixed(9)

  test('without a cap', async () => {
    harness.upstream.plan(streamed(pieces(120_000), { usage: { input: 9, output: 120_000 } }))
    expect(await call(dollars)).toContain('"weir_stop":"balance_too_low"')
    const record = harness.lastRecord() as Record<string, number>
    expect(record).toMatchObject({ outcome: 'out_of_funds', shortfall: 0 })
    expect(record.output_tokens).toBeGreaterThan(MANY)
  })

  test('in the middle of reasoning that the cap does not include', async () => {
    const thoughts = pieces(120_000).map(text =>
      event({ id: 'c-1', choices: [{ index: 0, delta: { reasoning_content: text }, finish_reason: null }] }),
    )
    harness.upstream.plan(sends(role() + thoughts.join('') + finish() + usageOnly(9, 120_000) + done))
    expect(await call(dollars, { max_tokens: 1 })).toContain('"weir_stop":"balance_too_low"')
    const record = harness.lastRecord() as Record<string, number>
    expect(record).toMatchObject({ outcome: 'out_of_funds', shortfall: 0 })
    expect(record.output_tokens).toBeGreaterThan(MANY)
  })
})

test('a long answer that the money covers arrives whole', async () => {
  harness.upstream.plan(streamed(pieces(120_000), { usage: { input: 9, output: 120_000 } }))
  const text = await call('2')
  expect(text).not.toContain('weir_stop')
  expect(harness.lastRecord()).toMatchObject({ outcome: 'completed', output_tokens: 120_000, shortfall: 0 })
})
