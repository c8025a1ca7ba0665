// A page on paper, and for people who need more contrast.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Visitor } from './support/browser.ts'
import { openSite } from './support/browser.ts'

let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ visitor, close } = await openSite({ callsMax: 2 }))
})
afterAll(() => close())

const colorOf = (selector: string): string => `getComputedStyle(document.querySelector('${selector}')).color`

test('a statement is printed without navigation and filters, on the whole width, in dark letters', async () => {
  const page = await visitor.visit('/funds', { as: 'manager', themes: ['dark'], axe: false })
  expect(await page.locator('nav:visible').count()).toBeGreaterThan(0)
  await page.emulateMedia({ media: 'print' })
  for (const selector of ['nav', 'search', 'main button', 'header:has(+ main)']) {
    expect([selector, await page.locator(selector).locator('visible=true').count()]).toEqual([selector, 0])
  }
  const { width } = (await page.locator('main table').first().boundingBox())!
  expect(width).toBeGreaterThan(1_000)
  expect(await page.evaluate<string>(colorOf('main h1'))).toBe('rgb(24, 33, 37)')
  await page.emulateMedia({ media: null })
})

test('muted texts are not muted for people who ask for more contrast', async () => {
  const page = await visitor.visit('/funds', { as: 'manager', themes: ['dark'], axe: false })
  expect(await page.evaluate<string>(colorOf('main dt'))).not.toBe('rgb(231, 236, 238)')
  await page.emulateMedia({ contrast: 'more' })
  expect(await page.evaluate<string>(colorOf('main dt'))).toBe('rgb(231, 236, 238)')
})
