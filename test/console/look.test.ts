// What a reader must see without a guess: what a number is, where a list ends, which part of a chart is not whole, and which
// page this is.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Visitor } from './support/browser.ts'
import { openSite, untilTrue } from './support/browser.ts'
import { pageAddresses } from './support/pages.ts'
import type { SeededSite } from './support/seed.ts'

let site: SeededSite
let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ site, visitor, close } = await openSite({ callsMax: 1 }))
})
afterAll(() => close())

test.each([
  ['/tiers', /^gold\n× 0\.9\nCalls per minute, each key 900$/],
  ['/codes', /^spring\n\$50\.000000\nCodes 5\nRedeemed 0\n/],
  ['/prices?model=openai%2Fgpt-4o-mini', /\nInput \$0\.18\nOutput \$0\.66\n/],
])('a number in a row of a phone has its name beside it, %s', async (address, text) => {
  await visitor.visit(address, {
    axe: false,
    widths: [390],
    async act(page) {
      const rows = await page.locator('main ul [data-row]').allInnerTexts()
      expect(rows.filter(row => text.test(row))).toHaveLength(1)
    },
  })
})

test('the ends of all rows of a phone are below each other, also where one has no menu', async () => {
  await visitor.visit('/keys', {
    axe: false,
    widths: [390],
    async act(page) {
      const rows = page.locator('main ul [data-row]')
      const menus = await Promise.all((await rows.all()).map(row => row.locator('[aria-haspopup=menu]').count()))
      // The key that is revoked has none.
      expect(new Set(menus)).toEqual(new Set([0, 1]))
      const ends = await page.evaluate<readonly number[]>(
        `[...document.querySelectorAll('main ul [data-row] > a')].map(link => link.getBoundingClientRect().right)`,
      )
      expect(new Set(ends).size).toBe(1)
    },
  })
})

test('in a low window the navigation shows the link of the page', async () => {
  await visitor.visit('/keys', {
    axe: false,
    async act(page) {
      await page.setViewportSize({ width: 1280, height: 500 })
      await page.evaluate("weirTest.move('/system')")
      await page.getByRole('heading', { level: 1, name: 'System' }).waitFor()
      expect(await page.evaluate<number>('innerHeight')).toBe(500)
      await untilTrue(
        page,
        `(() => {
          const { top, bottom } = document.querySelector('nav a[href$="/system"]').getBoundingClientRect()
          return top >= 0 && bottom <= innerHeight
        })()`,
      )
    },
  })
})

test('a chart says which of its steps have not ended', async () => {
  const day = (ahead: number): string => new Date(Date.now() + ahead * 86_400_000).toISOString().slice(0, 10)
  const range = `from=${day(-7)}T00:00:00.000Z&before=${day(2)}T00:00:00.000Z`
  await visitor.visit(`${pageAddresses['/keys/$key']!(site)}?tab=use&${range}`, {
    axe: false,
    async act(page) {
      await page.getByRole('button', { name: 'As a table' }).click()
      const table = page.getByRole('table', { name: 'Calls and errors of this key' })
      const times = await table.locator('tbody tr td:first-child').allInnerTexts()
      expect([times[0], times.at(-1)]).toEqual([`${day(-7)} 00:00`, `${day(1)} 00:00 (so far)`])
    },
  })
})

test('a comma in an amount is not taken for a decimal point: 1,000 may be a thousand', async () => {
  await visitor.visit(pageAddresses['/accounts/$id']!(site), {
    axe: false,
    async act(page) {
      await page.getByRole('button', { name: 'Top up' }).click()
      const field = page.locator('dialog[open]').getByLabel('Amount')
      await field.pressSequentially('1,000')
      expect(await field.inputValue()).toBe('1,000')
      await page.getByText('Write dollars with up to nine decimals').waitFor()
    },
  })
})

test('a price multiplier is written as it is shown', async () => {
  await site.harness.manage('POST', '/api/web/tiers', { name: 'cheap', qpm: 5 })
  await visitor.visit('/tiers?tier=cheap', {
    axe: false,
    failing: [/^400 /],
    async act(page) {
      const field = page.getByRole('spinbutton', { name: 'Price multiplier' })
      expect(await field.inputValue()).toBe('1')
      await field.fill('0.8555')
      await page.getByRole('button', { name: 'Save tier' }).click()
      await page.locator('input[aria-invalid=true]').waitFor()
      await field.fill('0.855')
      await page.getByRole('button', { name: 'Save tier' }).click()
      await page.getByText('Tier cheap saved').waitFor()
    },
  })
  const { pricePerMille } = await site.harness.manage('GET', '/api/web/tiers/cheap')
  expect(pricePerMille).toBe(855)
})

test('the loss map fits on a phone', async () => {
  await visitor.visit('/losses', {
    widths: [390],
    async act(page) {
      const [inside, width] = await page.evaluate<readonly [number, number]>(`(() => {
        const { scrollWidth, clientWidth } = document.querySelector('main div:has(> table)')
        return [scrollWidth, clientWidth]
      })()`)
      expect(inside).toBeLessThanOrEqual(width)
    },
  })
})
