// What the operator of a site has set for its look: logo, accent colour, help, language, time zone, how to pay.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { deflateSync } from 'node:zlib'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { goodPassword } from '../support/people.ts'
import { openBrowser, openContext, untilReady, Visitor } from './support/browser.ts'
import type { SeededSite } from './support/seed.ts'
import { startSeededSite } from './support/seed.ts'

let site: SeededSite
let browser: Browser
let visitor: Visitor

/** A PNG image of some pixels. */
function png(size: number): string {
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type), data])
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    check.writeUInt32BE(Bun.hash.crc32(body))
    return Buffer.concat([length, body, check])
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(size, 0)
  head.writeUInt32BE(size, 4)
  head.set([8, 2], 8)
  const rows = Buffer.alloc(size * (size * 3 + 1), 0x80)
  for (let row = 0; row < size; row++) rows[row * (size * 3 + 1)] = 0
  const chunks = [chunk('IHDR', head), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))]
  const bytes = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), ...chunks])
  return `data:image/png;base64,${bytes.toString('base64')}`
}

const logo = png(16)
const supportUrl = 'https://help.example.com/weir'

beforeAll(async () => {
  site = await startSeededSite({ callsMax: 1 })
  const howToPay = { en: '', zh: '请转账' }
  const look = { logo, accentHue: 320, supportUrl, howToPay, defaultLanguage: 'zh', reportingZone: 'Asia/Shanghai' }
  await site.harness.manage('PATCH', '/api/web/settings', look)
  browser = await openBrowser()
  visitor = await Visitor.open(site)
})
afterAll(async () => {
  await visitor.close()
  await browser.close()
  await site.harness.stop()
})

/** A browser in Bogotá, where clocks are never changed, that speaks English, and whose viewer has chosen nothing. */
const newContext = (): Promise<BrowserContext> =>
  openContext(browser, { locale: 'en-US', timezoneId: 'America/Bogota' })

async function open(context: BrowserContext, path: string): Promise<Page> {
  const page = await context.newPage()
  await page.goto(`${site.harness.url}/console${path}`)
  await untilReady(page)
  return page
}

async function signIn(page: Page, email: string): Promise<void> {
  await page.locator('input[type=email]').fill(email)
  await page.locator('input[type=password]').fill(goodPassword)
  await page.keyboard.press('Enter')
  await page.waitForSelector('nav')
  await untilReady(page)
}

const languageOf = (page: Page): Promise<string | null> => page.locator('html').getAttribute('lang')
const colorOf = (page: Page): Promise<string> =>
  page.evaluate("getComputedStyle(document.querySelector('.link, nav [aria-current=page]')).color")

/** The accent of the console itself, in the light theme. */
const OWN_ACCENT = 'rgb(0, 112, 133)'

test('people who are not signed in see the logo, the colour, the language of the site, and where to get help', async () => {
  const page = await open(await newContext(), '/sign-in')
  expect(await page.locator('header img').getAttribute('src')).toBe(logo)
  expect(await page.locator('link[rel=icon]').getAttribute('href')).toBe(logo)
  expect(await page.locator('header svg').count()).toBe(0)
  expect(await colorOf(page)).toBe('oklch(0.49 0.11 320)')
  expect(await languageOf(page)).toBe('zh-CN')
  const help = page.getByRole('link', { name: '获取帮助' })
  expect(await help.getAttribute('href')).toBe(supportUrl)
  expect(await help.getAttribute('rel')).toContain('noopener')
  await page.context().close()
})

test('what a viewer has chosen stays, and the site sets the rest', async () => {
  const context = await newContext()
  const page = await open(context, '/sign-in')
  await page.getByRole('button', { name: 'English' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await signIn(page, site.people.owner.email)
  expect(await page.locator('nav img').first().getAttribute('src')).toBe(logo)
  const records = await open(context, '/records')
  expect(await languageOf(records)).toBe('en')
  await records.getByText('Time (UTC+8)').first().waitFor()
  await records.getByRole('button', { name: 'Olga Owner' }).click()
  await records.getByRole('menuitem', { name: 'Get help' }).waitFor()
  await records.getByRole('menuitem', { name: 'Language, Theme' }).click()
  await records.getByLabel('Time zone').selectOption('local')
  await records.keyboard.press('Escape')
  await records.reload()
  await records.getByText('Time (UTC-5)').first().waitFor()
  expect(await languageOf(records)).toBe('en')
  await context.close()
})

test('times are typed in the zone in which they are shown', async () => {
  const context = await newContext()
  const page = await open(context, '/sign-in')
  await signIn(page, site.people.owner.email)
  const records = await open(context, '/records?from=2026-11-01T16:00:00.000Z&before=2026-11-02T16:00:00.000Z')
  const [from, before] = [0, 1].map(at => records.locator('input[type=datetime-local]').nth(at))
  expect(await from!.inputValue()).toBe('2026-11-02T00:00')
  await before!.fill('2026-11-04T00:00')
  await records.waitForURL(/before=2026-11-03T16/)
  await context.close()
})

test('a page that failed says where to get help', async () => {
  const page = await visitor.visit('/keys/key_00000000000000000000', { failing: [/^404 /] })
  expect(await page.locator('main').getByRole('link', { name: 'Get help' }).getAttribute('href')).toBe(supportUrl)
  const forbidden = await visitor.visit('/settings', { as: 'viewer' })
  expect(await forbidden.locator('main').getByRole('link', { name: 'Get help' }).count()).toBe(1)
})

test('how to pay is shown also if it is written in one language only', async () => {
  const page = await visitor.visit('/funds', { as: 'manager' })
  expect(await page.locator('main').innerText()).toContain('请转账')
})

test('pages are as they should be with a hue that is pale by nature', async () => {
  await site.harness.manage('PATCH', '/api/web/settings', { accentHue: 100, howToPay: null })
  for (const path of ['/', '/keys', '/settings']) {
    const { problems } = await visitor.look(path, { widths: [1280, 390], themes: ['light', 'dark'] })
    expect({ path, problems }).toEqual({ path, problems: [] })
  }
})

test('a change in the settings is seen at once', async () => {
  const page = await visitor.visit('/settings')
  await page.getByRole('slider', { name: 'Hue' }).fill('20')
  await page.getByRole('button', { name: 'Save changes' }).click()
  await page.getByText('Settings saved').waitFor()
  await page.waitForSelector('html[style*="--accent-hue: 20"]')
  await page.getByRole('checkbox', { name: 'Own accent colour' }).uncheck()
  await page.getByRole('button', { name: 'Remove logo' }).click()
  await page.getByRole('button', { name: 'Save changes' }).click()
  await page.locator('nav img').first().waitFor({ state: 'detached' })
  await page.waitForSelector('html:not([data-accent])')
  await page.waitForSelector('link[rel=icon][href$=".svg"]', { state: 'attached' })
  expect(await page.locator('nav img').count()).toBe(0)
  expect(await page.locator('link[rel=icon]').getAttribute('href')).toEndWith('.svg')
  expect(await colorOf(page)).toBe(OWN_ACCENT)
})
