// The first hour with the keyboard alone: set up an empty gateway, create a key, send the first call, see it and its bill;
// a session that ends in the middle of a form; two people who edit the same key; a gateway that goes away.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import type { Harness } from '../support/gateway.ts'
import { chat, startHarness } from '../support/gateway.ts'
import { goodPassword } from '../support/people.ts'
import { intercept, openBrowser, openContext, untilReady } from './support/browser.ts'
import { Keyboard } from './support/keyboard.ts'

let harness: Harness
let browser: Browser
let page: Page
let keyboard: Keyboard
let keyText = ''
const problems: string[] = []

beforeAll(async () => {
  harness = await startHarness()
  browser = await openBrowser()
  const context = await openContext(browser, { locale: 'en-US' })
  page = await context.newPage()
  keyboard = new Keyboard(page)
  page.on('console', message => {
    // A browser prints every answer of 401 and 412, which these tests cause on purpose.
    if (!/status of (401|412)/.test(message.text())) problems.push(message.text())
  })
  page.on('pageerror', fault => problems.push(fault.message))
})
afterAll(async () => {
  await browser.close()
  await harness.stop()
})

async function open(path: string): Promise<void> {
  await page.goto(`${harness.url}/console${path}`)
  await untilReady(page)
}

test('an empty gateway leads to the first answered call', async () => {
  const { setupToken } = await harness.weir('setup', { token: true })
  await open('/')
  await page.getByRole('heading', { level: 1 }).waitFor()
  expect(new URL(page.url()).pathname).toBe('/console/set-up')
  const labels = await page.locator('label').allInnerTexts()
  const values: Readonly<Record<string, string>> = { token: String(setupToken), name: 'Ada', email: 'ada@example.com' }
  for (const label of labels) {
    const value = Object.entries(values).find(([word]) => label.toLowerCase().includes(word))?.[1]
    if (value !== undefined) await keyboard.type(label, value)
  }
  for (const password of await page.locator('input[type=password]').all()) {
    await password.focus()
    await page.keyboard.type(goodPassword)
  }
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'First steps' }).waitFor()
  await keyboard.press('button', 'Create key')
  await page.getByRole('dialog').getByRole('textbox', { name: 'Name', exact: true }).waitFor()
  await keyboard.type('Name', 'first program')
  await page.keyboard.press('Enter')
  keyText = (await page.locator('[data-key-text], dialog code').first().textContent())!.trim()
  expect(keyText).toStartWith('wk-')
  const answer = await chat(harness, keyText, { model: 'demo/echo', messages: [{ role: 'user', content: 'Hello' }] })
  expect(answer.status).toBe(200)
  await answer.text()
  await harness.idle()
})

test('the call is found by its id, with its bill', async () => {
  const answer = await chat(harness, keyText, { model: 'demo/echo', messages: [{ role: 'user', content: 'Again' }] })
  await answer.text()
  await harness.idle()
  const call = answer.headers.get('x-request-id')!
  await open('/records')
  await page.keyboard.press('ControlOrMeta+k')
  await page.getByRole('dialog').getByRole('combobox').waitFor()
  await page.keyboard.type(call)
  await page.getByRole('option').filter({ hasText: call }).first().waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: `Call ${call}` }).waitFor()
  await page.getByRole('heading', { name: 'What it cost' }).waitFor()
  expect(await page.getByRole('heading', { name: 'Where the time went' }).isVisible()).toBe(true)
})

test('a search that stopped before it found anything says so, and goes on when it is asked to', async () => {
  let pages = 0
  await intercept(page, '**/api/web/records?*', async route => {
    if (pages++ > 0) return await route.continue()
    await route.fulfill({ json: { data: [], next: 'rec_zzzzzzzzzz', limit: 100, endedEarly: true } })
  })
  await intercept(page, '**/api/web/records?*after=*', route =>
    route.continue({
      url: route
        .request()
        .url()
        .replace(/after=\w+&?/, ''),
    }),
  )
  await open('/records')
  await page.getByText('The search read very many rows and stopped.').waitFor()
  expect(pages).toBe(1)
  await page.getByRole('button', { name: 'Show more' }).click()
  await page.getByRole('table', { name: 'Records' }).waitFor()
  await page.unrouteAll()
})

test('a session that ends while a form is half filled loses nothing', async () => {
  await open('/keys')
  await page.getByRole('link', { name: 'first program' }).click()
  await page.getByRole('button', { name: 'Save key' }).waitFor()
  await keyboard.type('Name', 'renamed program')
  // The browser forgets its cookie, and the gateway refuses the token. Only the save finds out: a read that found out first
  // could have the viewer signed in again while the save is under way, and the save would succeed by itself.
  await page.context().clearCookies()
  await intercept(page, '**/api/web/keys/*', route =>
    route.request().method() === 'PATCH'
      ? route.fulfill({ status: 401, json: { error: { code: 'token_invalid', message: 'over' } } })
      : route.continue(),
  )
  await page.keyboard.press('ControlOrMeta+Enter')
  await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
  await page.unroute('**/api/web/keys/*')
  await page.getByRole('dialog').getByLabel('Email').fill('ada@example.com')
  await page.getByRole('dialog').getByLabel('Password').fill(goodPassword)
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(await page.getByRole('textbox', { name: 'Name', exact: true }).inputValue()).toBe('renamed program')
  await keyboard.press('button', 'Save key')
  await page.getByRole('heading', { level: 1, name: 'renamed program' }).waitFor()
})

const keysNow = async (): Promise<readonly { id: string; name: string }[]> => {
  const { data } = await harness.weir('keys list', {})
  const keys = data as unknown as { id: string; name: string }[]
  return keys.filter(({ name }) => ['renamed program', 'theirs', 'mine'].includes(name))
}

test('two who edit the same key see the difference', async () => {
  await keyboard.type('Name', 'mine')
  const [key] = await keysNow()
  await harness.weir('keys set', { key: key!.id, name: 'theirs' })
  await keyboard.press('button', 'Save key')
  await page.getByText('Somebody else has changed this').waitFor()
  const difference = page.locator('dl', { has: page.getByText('Keep the saved one') })
  expect((await difference.innerText()).split(/\s*\n\s*/)).toEqual([
    ...['Field', 'Name', 'Now saved', 'theirs', 'Keep the saved one', 'Yours', 'mine', 'Use mine'],
  ])
  await keyboard.press('button', 'Use mine')
  await keyboard.press('button', 'Save key')
  await page.getByRole('heading', { level: 1, name: 'mine' }).waitFor()
  const [changed] = await keysNow()
  expect(changed!.name).toBe('mine')
})

test('a gateway that goes away is said so, and its return is noticed', async () => {
  await intercept(page, /\/(api|health)\//, route => route.abort())
  await keyboard.press('link', 'Records')
  await page.getByText('The gateway cannot be reached. What you see may be old.').waitFor()
  await page.unrouteAll()
  await page.getByText('The gateway cannot be reached. What you see may be old.').waitFor({ state: 'detached' })
  expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Records')
})

test('nothing was wrong on the way', () => {
  const expected = /Failed to load resource: net::ERR_FAILED/
  expect(problems.filter(problem => !expected.test(problem))).toEqual([])
})
