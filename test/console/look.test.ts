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
