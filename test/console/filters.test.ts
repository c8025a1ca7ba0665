// Filters: a value that is not written whole yet is refused at its field, and neither empties the page nor takes the focus.
// The dialects that a filter offers are those of the records.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Locator, Page } from 'playwright-core'
import type { Visitor } from './support/browser.ts'
import { intercept, openSite, untilTrue } from './support/browser.ts'

let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ visitor, close } = await openSite({ callsMax: 1 }))
})
afterAll(() => close())

/** The calls of the seed are older than a day. */
const RECORDS = '/records?range=7d'

const tooLong = 'x'.repeat(1_000)

const focusedFilter = (page: Page): Promise<string | null> =>
  page.evaluate('document.activeElement.getAttribute("data-filter")')

/** The state of the stream, with a sign before it. */
const stateOf = (page: Page, word: string): Locator => page.getByText(new RegExp(`^\\W*${word}$`)).first()

/** What the field says against its value, as a screen reader finds it. */
async function refusalOf(page: Page, field: Locator): Promise<string> {
  await page.locator('[data-refused]').waitFor()
  expect(await field.getAttribute('aria-invalid')).toBe('true')
  const id = await field.getAttribute('aria-describedby')
  return await page.locator(`[id="${id}"]`).innerText()
}

test.each(['en', 'zh'] as const)('an unfinished filter of records keeps the list, %s', async language => {
  await visitor.visit(RECORDS, {
    language,
    failing: [/^400 \/api\/web\/records/],
    async act(page) {
      const rows = page.locator('[data-row]')
      await rows.first().waitFor()
      const before = await rows.count()
      const field = page.locator('[data-filter=model]')
      await field.click()
      await field.pressSequentially('openai')
      expect(await refusalOf(page, field)).toMatch(language === 'en' ? /model/ : /格式须为/)
      expect(await rows.count()).toBe(before)
      expect(await page.locator('main [role=alert]').count()).toBe(0)
      expect(await focusedFilter(page)).toBe('model')
      await field.pressSequentially('/gpt-4o-mini')
      await page.locator('[data-refused]').waitFor({ state: 'detached' })
      await untilTrue(page, `document.querySelectorAll('[data-row]').length < ${before}`)
      expect(await field.getAttribute('aria-invalid')).toBeNull()
      // The page is looked at with the message.
      await field.fill('openai')
      await page.locator('[data-refused]').waitFor()
    },
  })
})

const lists = [
  '/keys',
  '/accounts',
  '/limits',
  '/channels',
  '/prices',
  '/people',
  '/tokens',
  '/providers',
  '/audit',
] as const

test.each(lists)('%s stays when the gateway refuses a filter, which says why', async path => {
  await visitor.visit(path, {
    axe: false,
    failing: [/^400 /],
    async act(page) {
      const rows = page.locator('[data-row]')
      await rows.first().waitFor()
      const before = await rows.count()
      const field = page.locator('input[data-filter]').last()
      await field.fill(tooLong)
      expect(await refusalOf(page, field)).not.toBe('')
      expect(await rows.count()).toBe(before)
      expect(await page.locator('main [role=alert]').count()).toBe(0)
    },
  })
})

test('a refused filter that is not shown is told below the others', async () => {
  await visitor.visit('/live?channel=demo', {
    as: 'viewer',
    failing: [/^403 \/api\/web\/live/],
    async act(page) {
      await page.locator('search [role=status]').waitFor()
      expect(await page.locator('[data-refused]').count()).toBe(0)
      await stateOf(page, 'stopped').waitFor()
    },
  })
})

test('an unfinished filter of the live page is told at its field, and is not tried again for ever', async () => {
  await visitor.visit('/live', {
    axe: false,
    failing: [/^400 \/api\/web\/live/],
    async act(page) {
      const river = page.getByRole('region', { name: 'Active calls' })
      await river.waitFor()
      let refusals = 0
      page.on('response', response => {
        if (response.status() === 400) refusals++
      })
      const field = page.locator('[data-filter=model]')
      await field.fill('openai')
      await refusalOf(page, field)
      await stateOf(page, 'stopped').waitFor()
      // A lost connection is tried again after a second at the latest.
      await page.waitForTimeout(1_500)
      expect(refusals).toBe(1)
      expect(await river.count()).toBe(1)
      expect(await focusedFilter(page)).toBe('model')
      await field.fill('openai/gpt-4o-mini')
      await page.locator('[data-refused]').waitFor({ state: 'detached' })
      await stateOf(page, 'live').waitFor()

      const channel = page.locator('[data-filter=channel]')
      await channel.click()
      await channel.pressSequentially('demo')
      await page.waitForURL(/channel=demo/)
      await stateOf(page, 'live').waitFor()
      expect(await focusedFilter(page)).toBe('channel')
      expect(await channel.inputValue()).toBe('demo')
    },
  })
})

test('the filter of dialects finds the calls of a dialect', async () => {
  await visitor.visit(RECORDS, {
    axe: false,
    async act(page) {
      const rows = page.locator('[data-row]')
      await rows.first().waitFor()
      const before = await rows.count()
      await page.getByRole('button', { name: 'More filters' }).click()
      await page.getByRole('combobox', { name: 'Dialect' }).selectOption({ label: 'Anthropic Messages' })
      await page.waitForURL(/dialect=anthropic-messages/)
      await untilTrue(page, `(count => count > 0 && count < ${before})(document.querySelectorAll('[data-row]').length)`)
      await rows.first().getByRole('link').click()
      await page.getByText('Dialect of the caller').waitFor()
      const dialect = page.locator('aside').getByText('Anthropic Messages', { exact: true })
      await dialect.waitFor()
      expect(await dialect.count()).toBe(1)
    },
  })
})

const events = [
  ['health', { channel: 'full', state: 'concurrency_capped', availableInMs: 0 }],
  ['health', { channel: 'shut', state: 'credential_bad', availableInMs: 60_000 }],
  ['health', { channel: 'well', state: 'available', availableInMs: 0 }],
  ['state', { time: '2026-11-18T00:00:00Z', of: 'process', underWay: { full: 3 } }],
] as const

test.each([
  ['en', /concurrency cap\s*3 calls/, /blocked: credential refused/],
  ['zh', /并发上限\s*3 个调用/, /已阻断：凭据被拒/],
] as const)('the river has words for states, and a full channel is not blocked, %s', async (language, full, shut) => {
  const body = events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('')
  await visitor.visit('/live', {
    language,
    async act(page) {
      await intercept(page, '**/api/web/live*', route => route.fulfill({ contentType: 'text/event-stream', body }))
      await page.reload()
      const item = (name: string) => page.locator('main li').filter({ hasText: name })
      await item('full').waitFor()
      expect(await item('full').innerText()).toMatch(full)
      expect(await item('full').locator('.river').count()).toBe(1)
      expect(await item('shut').innerText()).toMatch(shut)
      expect(await item('well').count()).toBe(0)
      await page.unrouteAll({ behavior: 'ignoreErrors' })
    },
  })
})

test('the live page can take the whole screen, and leaves it with the page', async () => {
  await visitor.visit('/live', {
    axe: false,
    async act(page) {
      const isFull = 'document.fullscreenElement === document.querySelector("main")'
      await page.getByRole('button', { name: 'Full screen', exact: true }).click()
      await untilTrue(page, isFull)
      await page.getByRole('button', { name: 'Leave full screen' }).click()
      await untilTrue(page, 'document.fullscreenElement === null')
      await page.getByRole('button', { name: 'Full screen', exact: true }).click()
      await untilTrue(page, isFull)
      await page.evaluate(`weirTest.move('/records')`)
      await untilTrue(page, 'document.fullscreenElement === null')
      await page.getByRole('heading', { level: 1, name: 'Records' }).waitFor()
      expect(await page.getByRole('navigation').first().isVisible()).toBe(true)
    },
  })
})
