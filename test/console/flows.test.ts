// What people do in the console, with the keyboard alone, and what the gateway then does: rotate and revoke a key, post
// money, redeem and void codes, backtest a multiplier, test a channel, turn on a second factor and sign in with it, accept an invitation, notice an
// upgrade.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Locator, Page } from 'playwright-core'
import { Secret } from '../../src/base/secrets/secret.ts'
import { totpCodeOf, totpStepAt } from '../../src/identity/totp.ts'
import { chat } from '../support/gateway.ts'
import { addPerson, goodPassword } from '../support/people.ts'
import type { Visitor } from './support/browser.ts'
import { intercept, openSite } from './support/browser.ts'
import { Keyboard } from './support/keyboard.ts'
import { pageAddresses } from './support/pages.ts'
import type { SeededSite } from './support/seed.ts'

let site: SeededSite
let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ site, visitor, close } = await openSite({ callsMax: 1 }))
})
afterAll(() => close())

const statusWith = async (key: string): Promise<number> => {
  const response = await chat(site.harness, key, { model: 'demo/echo', messages: [{ role: 'user', content: 'Hello' }] })
  await response.text()
  return response.status
}

const balanceNow = async (): Promise<number> =>
  Number((await site.harness.manage('GET', `/api/web/accounts/${site.ids.account}`)).balance)

/** The secret that the open dialog shows. */
const shownSecret = async (page: Page): Promise<string> =>
  (await page.locator('dialog[open] [data-secret-text]').innerText()).trim()

test('a key is rotated, its old secret works as long as was chosen, and its new one until the key is revoked', async () => {
  const { account } = site.ids
  const { id, key: oldText } = await site.harness.manage('POST', '/api/web/keys', { account, name: 'rotated twice' })
  await visitor.visit(`/keys/${String(id)}`, {
    axe: false,
    async act(page) {
      const rotate = async (overlap?: string): Promise<string> => {
        await page.getByRole('button', { name: 'Rotate key' }).click()
        const dialog = page.locator('dialog[open]')
        const choice = dialog.getByLabel('The old secret works for')
        expect(await choice.inputValue()).toBe('300')
        if (overlap !== undefined) await choice.selectOption({ label: overlap })
        await dialog.getByRole('button', { name: 'Rotate key' }).click()
        await page.getByText('This is the only time the key is shown').waitFor()
        const text = await shownSecret(page)
        await page.getByRole('button', { name: 'I have copied it' }).click()
        return text
      }
      const second = await rotate()
      await page.getByText('The old secret works until').waitFor()
      expect([await statusWith(String(oldText)), await statusWith(second)]).toEqual([200, 200])
      const third = await rotate('no longer')
      expect([await statusWith(second), await statusWith(third)]).toEqual([401, 200])
    },
  })
  await visitor.visit(pageAddresses['/keys/$key']!(site), {
    axe: false,
    async act(page) {
      const keyboard = new Keyboard(page)
      await keyboard.press('button', 'Rotate key')
      await page.getByText('There will be a new secret, shown once.').waitFor()
      await keyboard.press('button', 'Rotate key')
      await page.getByText('This is the only time the key is shown').waitFor()
      const text = await shownSecret(page)
      expect(await statusWith(text)).toBe(200)
      await keyboard.press('button', 'I have copied it')
      await keyboard.press('button', 'Revoke key')
      await page.getByText('Calls with this key are refused from now on.').waitFor()
      await keyboard.press('button', 'Revoke key')
      await page.getByText('This key is revoked. Its calls are refused.').waitFor()
      expect(await statusWith(text)).toBe(401)
    },
  })
})

test('an account is topped up, and a call is refunded', async () => {
  const before = await balanceNow()
  await visitor.visit(pageAddresses['/accounts/$id']!(site), {
    axe: false,
    async act(page) {
      const keyboard = new Keyboard(page)
      await keyboard.press('button', 'Top up')
      await keyboard.type('Amount', '12.5')
      await keyboard.type('Reason or reference', 'invoice 77')
      await page.keyboard.press('Enter')
      await page.getByText('Balance after').waitFor()
      expect(await balanceNow()).toBe(before)
      await keyboard.press('button', 'Top up')
      await page.getByText(/12\.50 booked\./).waitFor()
      expect(await balanceNow()).toBeCloseTo(before + 12.5, 9)

      await keyboard.choose('Book money', 'Refund a call')
      await keyboard.type('Call', site.ids.calls.streamed)
      await page.keyboard.press('Enter')
      await page.getByText('Balance now').waitFor()
      await keyboard.press('button', 'Refund a call')
      await page.locator('dialog[open]').waitFor({ state: 'detached' })
    },
  })
  const { cost } = await site.harness.manage('GET', `/api/web/records/${site.ids.calls.streamed}`)
  expect(Number(cost)).toBeGreaterThan(0)
  expect(await balanceNow()).toBeCloseTo(before + 12.5 + Number(cost), 9)
})

test('a member redeems a code', async () => {
  const { codes } = await site.harness.weir('codes create', { count: '1', amount: '7' })
  const before = await balanceNow()
  await visitor.visit('/funds', {
    as: 'manager',
    axe: false,
    async act(page) {
      const keyboard = new Keyboard(page)
      await keyboard.press('button', 'Redeem code')
      await keyboard.type('Code', (codes as string[])[0]!)
      await page.keyboard.press('Enter')
      await page.getByText(/7\.00 added\./).waitFor()
    },
  })
  expect(await balanceNow()).toBeCloseTo(before + 7, 9)
})

test('a single code of a batch is voided, and the tab of batches leads back', async () => {
  const batches = async () => (await site.harness.manage('GET', '/api/web/codes/batches')).data as { voided: number }[]
  const voidedBefore = (await batches()).reduce((sum, { voided }) => sum + voided, 0)
  await visitor.visit('/codes', {
    axe: false,
    async act(page) {
      await page.getByRole('table', { name: 'Batches' }).getByRole('link', { name: site.ids.batch }).click()
      const codes = page.getByRole('table', { name: 'Single codes' })
      await codes.waitFor()
      await codes.locator('[aria-haspopup=menu]').first().click()
      await page.getByRole('menuitem', { name: 'Void code' }).click()
      await page.locator('dialog[open]').getByRole('button', { name: 'Void code' }).click()
      await page.getByText('1 code voided').first().waitFor()
      await codes
        .getByText(/^\W*voided$/)
        .first()
        .waitFor()
      await page.getByRole('link', { name: 'Batches' }).click()
      await page.getByRole('table', { name: 'Batches' }).waitFor()
    },
  })
  expect((await batches()).reduce((sum, { voided }) => sum + voided, 0)).toBe(voidedBefore + 1)
})

test('a multiplier is tested on a tier, which is chosen from the beginning', async () => {
  const { data } = await site.harness.manage('GET', '/api/web/tiers')
  const names = (data as { name: string }[]).map(({ name }) => name)
  await visitor.visit('/prices/backtest', {
    axe: false,
    async act(page) {
      const tier = page.getByLabel('Tier', { exact: true })
      expect(await tier.locator('option').allInnerTexts()).toEqual(names)
      await tier.selectOption('gold')
      await new Keyboard(page).press('button', 'Run backtest')
      await page
        .getByText(/^(By model|There are no calls of this kind in this time\.)$/)
        .first()
        .waitFor()
    },
  })
})

test('the accounts of the gateway itself have Chinese names', async () => {
  await visitor.visit('/ledger', {
    axe: false,
    language: 'zh',
    async act(page) {
      for (const name of ['收入', '赠送', '未覆盖', '收款'])
        await page.getByRole('button', { name, exact: true }).waitFor()
      expect(await page.getByText('The money that came in').count()).toBe(0)
      await page.getByRole('button', { name: '收款', exact: true }).click()
      await page.getByRole('heading', { name: /收款.*明细/ }).waitFor()
    },
  })
})

test('a channel that fails is tested, and the page says why and what to do', async () => {
  await visitor.visit(pageAddresses['/channels/$id']!(site), {
    axe: false,
    async act(page) {
      await new Keyboard(page).press('button', 'Test channel')
      const result = page.getByText(/^The channel test failed: /).locator('..')
      await result.waitFor()
      expect(await result.innerText()).toContain('Status 503')
    },
  })
})

test('a second factor is turned on, and signing in needs it', async () => {
  let recoveryCode = ''
  await visitor.visit('/me?tab=security', {
    as: 'viewer',
    axe: false,
    async act(page) {
      const keyboard = new Keyboard(page)
      await keyboard.press('button', 'Set up second factor')
      await keyboard.type('Password', goodPassword)
      await page.keyboard.press('Enter')
      await page.getByText('Or write this secret into the app').waitFor()
      const [secret] = /\b[A-Z2-7]{26,}\b/.exec(await page.locator('dialog[open]').innerText())!
      await keyboard.type('Code', totpCodeOf(new Secret(secret), totpStepAt(Date.now())))
      await page.keyboard.press('Enter')
      await page.getByText('Recovery codes: shown only this once').waitFor()
      recoveryCode = (await shownSecret(page)).split('\n')[0]!
      await keyboard.press('button', 'I have copied it')
      await page.getByText('Signing in needs a code of your authenticator app.').waitFor()
    },
  })
  await visitor.visit('/sign-in', {
    as: 'nobody',
    axe: false,
    failing: [/^401 \/api\/auth\/sign-in/],
    async act(page) {
      const keyboard = new Keyboard(page)
      await keyboard.type('Email', site.people.viewer.email)
      await keyboard.type('Password', goodPassword)
      await page.keyboard.press('Enter')
      await page.getByLabel('Code of the second factor').waitFor()
      await keyboard.type('Code of the second factor', recoveryCode)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
      expect(new URL(page.url()).pathname).toBe('/console/')
    },
  })
})

test('an invitation offers both ways to everybody: a new person joins, and a known one signs in and accepts', async () => {
  /** What the page shows, without the address and the time. */
  const shown = new Map<string, string>()
  async function open(email: string, act: (page: Page, keyboard: Keyboard) => Promise<void>): Promise<void> {
    const wanted = { email, account: site.ids.account, accountRole: 'viewer' }
    const { token } = await site.harness.manage('POST', '/api/web/invitations', wanted)
    // Nobody is signed in, whatever was done before.
    await visitor.visit('/pricing', { as: 'nobody', axe: false, act: page => page.context().clearCookies() })
    await visitor.visit(`/join#${String(token)}`, {
      as: 'nobody',
      axe: false,
      async act(page) {
        await page.getByRole('heading', { name: 'I am new here' }).waitFor()
        const text = await page.locator('main').innerText()
        shown.set(email, text.replaceAll(email, 'address').replace(/\b\d.*/g, 'time'))
        await act(page, new Keyboard(page))
        await page.getByText(/^You have joined /).waitFor()
      },
    })
  }
  await open('newcomer@example.com', async (page, keyboard) => {
    await keyboard.type('Name', 'New Comer')
    await keyboard.type('Password', goodPassword)
    await page.keyboard.press('Enter')
  })
  const { email } = await addPerson(site.harness, site.people.owner.ask)
  await open(email, async (page, keyboard) => {
    await keyboard.press('link', 'Sign in and accept')
    await keyboard.type('Email', email)
    await keyboard.type('Password', goodPassword)
    await page.keyboard.press('Enter')
    await keyboard.press('button', 'Accept invitation')
  })
  expect(shown.get(email)).toBe(shown.get('newcomer@example.com')!)
})

test('a page of an older build asks to be reloaded', async () => {
  await visitor.visit('/keys', {
    as: 'support',
    axe: false,
    async act(page) {
      await intercept(page, '**/api/web/**', async route => {
        const response = await route.fetch()
        await route.fulfill({ response, headers: { ...response.headers(), 'x-weir-build': 'another' } })
      })
      const keyboard = new Keyboard(page)
      await keyboard.press('link', 'Records')
      await page.getByText('The gateway was upgraded.').waitFor()
      await page.unrouteAll({ behavior: 'wait' })
      await keyboard.press('button', 'Reload')
      await page.getByText('The gateway was upgraded.').waitFor({ state: 'detached' })
      await page.getByRole('heading', { level: 1, name: 'Records' }).waitFor()
      await page.waitForSelector('main[data-ready]')
      expect(new URL(page.url()).pathname).toBe('/console/records')
    },
  })
})

/** As a gateway that knows nobody any more. The dialog that then opens. */
async function endSession(page: Page): Promise<Locator> {
  await page.context().clearCookies()
  await intercept(page, '**/api/web/**', route =>
    route.fulfill({ status: 401, json: { error: { code: 'token_invalid', message: 'over' } } }),
  )
  return page.getByRole('dialog', { name: 'Your session has ended' })
}

async function signInAgain(page: Page, dialog: Locator, email: string): Promise<void> {
  await dialog.waitFor()
  await page.unrouteAll({ behavior: 'wait' })
  await dialog.getByLabel('Email').fill(email)
  await dialog.getByLabel('Password').fill(goodPassword)
  await page.keyboard.press('Enter')
  await dialog.waitFor({ state: 'detached' })
}

test('a page that could not be read when the session ended is there after signing in', async () => {
  await visitor.visit('/keys', {
    as: 'support',
    axe: false,
    failing: [/^401 /],
    async act(page) {
      const dialog = await endSession(page)
      await page.evaluate("weirTest.move('/webhooks')")
      await signInAgain(page, dialog, site.people.support.email)
      await page.getByRole('table', { name: 'Webhooks' }).waitFor()
      expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
    },
  })
})

test('who signs in where the session of somebody else has ended sees nothing of that person', async () => {
  const call = `/records/${site.ids.calls.streamed}`
  await visitor.visit(call, {
    as: 'admin',
    axe: false,
    failing: [/^401 /, /^404 /],
    async act(page) {
      await page.evaluate("weirTest.move('/keys')")
      await page.locator('main [data-row]').first().waitFor()
      const dialog = await endSession(page)
      // A minute later the page reads again what it shows.
      await page.evaluate(`{
        const now = Date.now
        Date.now = () => now() + 60_000
        document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))
      }`)
      await signInAgain(page, dialog, site.people.stranger.email)
      await page.getByText('Acme Rivers').first().waitFor({ state: 'detached' })
      await page.evaluate(`weirTest.move('${call}')`)
      await page.getByText('It may have been deleted, or it belongs to an account').waitFor()
      expect(await page.locator('main').innerText()).not.toContain('Acme Rivers')
    },
  })
})
