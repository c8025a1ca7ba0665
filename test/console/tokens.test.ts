// The tokens of the API contain those from the cache: no page may add them a second time.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { answer as answering } from '../../tools/fake-upstream/answers.ts'
import { chat } from '../support/gateway.ts'
import type { Visitor } from './support/browser.ts'
import { openSite } from './support/browser.ts'
import type { SeededSite } from './support/seed.ts'

let site: SeededSite
let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ site, visitor, close } = await openSite({ callsMax: 1 }))
})
afterAll(() => close())

test('input from the cache is counted once, on every page that shows tokens', async () => {
  const { harness } = site
  // All other calls of the site have some tens of tokens.
  harness.upstream.plan(answering('To the sea.', { usage: { input: 100_000, cached: 90_000, output: 4 } }))
  const answer = await chat(harness, await harness.key(), {
    model: 'openai/gpt-4o-mini',
    messages: [{ role: 'user', content: 'Where does the river go?' }],
  })
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('To the sea.')])
  await harness.idle()
  const call = answer.headers.get('x-request-id')!

  await visitor.visit(`/records/${call}`, {
    async act(page) {
      await page.getByText('90,000 from the cache').waitFor()
      expect(await page.getByText('100,000', { exact: true }).count()).toBe(1)
    },
  })
  await visitor.visit('/records', {
    async act(page) {
      await page.getByRole('row').filter({ hasText: '100,000' }).waitFor()
    },
  })
  for (const path of ['/', '/usage']) {
    await visitor.visit(path, {
      async act(page) {
        await page
          .getByText(/^100(\.\d)?K( in, .*)?$/)
          .first()
          .waitFor()
      },
    })
  }
})
