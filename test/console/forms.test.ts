// What forms and messages say, and where: errors at their fields, also at those that are folded away; warnings that stay; the
// history of a key; the panel of a call by the keyboard; where the focus is afterwards.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Locator, Page } from 'playwright-core'
import type { Visitor } from './support/browser.ts'
import { intercept, openSite, untilReady, untilTrue } from './support/browser.ts'
import { pageAddresses } from './support/pages.ts'
import type { SeededSite } from './support/seed.ts'

let site: SeededSite
let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ site, visitor, close } = await openSite({ callsMax: 2 }))
})
afterAll(() => close())

const isFocused = (element: Locator): Promise<boolean> =>
  element.evaluate((one: { matches(selector: string): boolean }) => one.matches(':focus'))

/** What the gateway is told to say against a request, in place of what it would say. */
async function refuse(page: Page, path: string, param: string, message = 'It is wrong.'): Promise<void> {
  await intercept(page, path, async route =>
    route.request().method() === 'GET'
      ? await route.continue()
      : await route.fulfill({ status: 400, json: { error: { code: 'field_invalid', message, param } } }),
  )
}

/** The field has the focus, and its description says what is wrong; nothing else says it. */
async function expectSaidAt(page: Page, field: Locator, message: string): Promise<void> {
  await page.getByText(message).waitFor()
  expect(await page.getByText(message).count()).toBe(1)
  expect(await field.getAttribute('aria-invalid')).toBe('true')
  const ids = (await field.getAttribute('aria-describedby'))?.split(' ') ?? []
  const described = await Promise.all(ids.map(id => page.locator(`[id="${id}"]`).innerText()))
  expect(described.join(' ')).toContain(message)
  await field.and(page.locator(':focus')).waitFor()
}

describe('a field that is folded away', () => {
  test('is shown with its error', async () => {
    await visitor.visit('/channels?new=openai', {
      axe: false,
      failing: [/^400 \/api\/web\/channels/],
      async act(page) {
        const dialog = page.locator('dialog[open]')
        await dialog.getByLabel('Key', { exact: true }).fill('sk-folded-0123456789')
        const more = dialog.locator('details')
        await more.locator('summary').click()
        const url = more.getByLabel('Base URL')
        await url.fill('nonsense')
        await more.locator('summary').click()
        expect(await url.isVisible()).toBe(false)
        await dialog.getByRole('button', { name: 'Add and test' }).click()
        await more.locator('[aria-invalid=true]').waitFor({ state: 'visible' })
        expect(await isFocused(url)).toBe(true)
        await dialog.getByRole('button', { name: 'Cancel' }).click()
      },
    })
  })

  test('is not the base URL of a provider whose address has open names', async () => {
    await visitor.visit('/channels?new=azure', {
      axe: false,
      failing: [/^400 \/api\/web\/channels/],
      async act(page) {
        const dialog = page.locator('dialog[open]')
        await dialog.getByLabel('Key', { exact: true }).fill('azure-0123456789')
        const url = dialog.getByLabel('Base URL')
        expect([await url.count(), await url.isVisible()]).toEqual([1, true])
        await url.fill('nonsense')
        await dialog.getByRole('button', { name: 'Add and test' }).click()
        await dialog.locator('[aria-invalid=true]').waitFor()
        await url.and(page.locator(':focus')).waitFor()
        await dialog.getByRole('button', { name: 'Cancel' }).click()
      },
    })
  })
})

interface Refused {
  readonly address: () => string
  /** Opens the form and changes something. */
  readonly fill: (page: Page) => Promise<void>
  readonly submit: string
  readonly path: string
  readonly param: string
  readonly message?: string
  readonly field: (page: Page) => Locator
}

const overrides = (): string => `${pageAddresses['/channels/$id']!(site)}?tab=overrides`
const top = (page: Page): Locator => page.locator('dialog[open]').or(page.locator('main')).last()
const label =
  (text: string) =>
  (page: Page): Locator =>
    top(page).getByLabel(text, { exact: true })

const refusals: Readonly<Record<string, Refused>> = {
  'one timeout of a channel': {
    address: overrides,
    fill: page => label('Connection')(page).fill('3'),
    submit: 'Save overrides',
    path: '**/api/web/channels/*',
    param: 'times.connectSeconds',
    field: label('Connection'),
  },
  'the timeouts of a channel': {
    address: overrides,
    fill: page => label('TLS handshake')(page).fill('3'),
    submit: 'Save overrides',
    path: '**/api/web/channels/*',
    param: 'times',
    message: '"times.tlsSeconds" must be a whole number.',
    field: label('TLS handshake'),
  },
  'the members of a route': {
    address: () => '/routes/steady',
    fill: page => label('Model 2')(page).fill('demo/lorem'),
    submit: 'Save route',
    path: '**/api/web/routes/*',
    param: 'members',
    field: label('Model 1'),
  },
  'one member of a route': {
    address: () => '/routes/steady',
    fill: page => label('Model 2')(page).fill('demo/lorem'),
    submit: 'Save route',
    path: '**/api/web/routes/*',
    param: 'members.1.model',
    field: label('Model 2'),
  },
  'how a limit is counted': {
    address: () => '/limits?new=1',
    fill: page => label('Amount')(page).fill('3'),
    submit: 'Create limit',
    path: '**/api/web/limits',
    param: 'per',
    field: label('key'),
  },
  'the events of a webhook': {
    address: () => '/webhooks?new=1',
    fill: page => label('URL')(page).fill('https://hooks.example.com/x'),
    submit: 'Create webhook',
    path: '**/api/web/webhooks',
    param: 'events',
    field: page => top(page).getByRole('checkbox').first(),
  },
  'the cases of a price': {
    address: () => `${pageAddresses['/prices/$']!(site)}?tab=edit`,
    fill: page => label('Input')(page).fill('0.2'),
    submit: 'Set price',
    path: '**/api/web/prices/**',
    param: 'price.cases[0].input',
    field: label('Special cases'),
  },
  'a rate of a price': {
    address: () => `${pageAddresses['/prices/$']!(site)}?tab=edit`,
    fill: page => label('Input')(page).fill('0.2'),
    submit: 'Set price',
    path: '**/api/web/prices/**',
    param: 'price.input',
    field: label('Input'),
  },
  'the multiplier of a backtest': {
    address: () => '/prices/backtest',
    fill: page => label('Price multiplier')(page).fill('3'),
    submit: 'Run backtest',
    path: '**/api/web/prices/backtest',
    param: 'pricePerMille',
    field: label('Price multiplier'),
  },
  'how to pay, in Chinese': {
    address: () => '/settings',
    fill: page => label('How to pay, in Chinese')(page).fill('x'),
    submit: 'Save changes',
    path: '**/api/web/settings',
    param: 'howToPay.zh',
    field: label('How to pay, in Chinese'),
  },
  'a switch': {
    address: () => pageAddresses['/keys/$key']!(site),
    fill: page => label('Store the bodies of calls')(page).click(),
    submit: 'Save key',
    path: '**/api/web/keys/*',
    param: 'keepsBodies',
    field: label('Store the bodies of calls'),
  },
}

describe('what the gateway says against', () => {
  test.each(Object.keys(refusals))('%s is said there', async name => {
    const { address, fill, submit, path, param, message = 'It is wrong.', field } = refusals[name]!
    await visitor.visit(address(), {
      axe: false,
      failing: [/^400 \/api\/web\//],
      async act(page) {
        await fill(page)
        await refuse(page, path, param, message)
        await top(page).getByRole('button', { name: submit, exact: true }).click()
        await expectSaidAt(page, field(page), message)
        await page.unrouteAll({ behavior: 'wait' })
      },
    })
  })
})

test('a time or a number that is not written whole is not sent as if the field were empty', async () => {
  await visitor.visit('/codes?new=1', {
    axe: false,
    async act(page) {
      const sent: string[] = []
      page.on('request', request => void (request.method() === 'POST' && sent.push(request.url())))
      const dialog = page.locator('dialog[open]')
      await dialog.getByLabel('Amount').fill('1')
      const [count, expires] = [dialog.locator('input[type=number]'), dialog.locator('input[type=datetime-local]')]
      const expectRefused = async (field: Locator): Promise<void> => {
        await dialog.locator('button[type=submit]').click()
        await dialog.getByText('is not complete').waitFor()
        await field.and(page.locator(':focus')).waitFor()
      }
      await expires.pressSequentially('12122030') // a day, and no time of day
      await expectRefused(expires)
      await expires.fill('')
      await count.fill('')
      await count.pressSequentially('5e')
      await expectRefused(count)
      expect(sent).toEqual([])
      await dialog.getByRole('button', { name: 'Cancel' }).click()
    },
  })
})

test('warnings stay until they are closed, beside messages that go by themselves', async () => {
  await visitor.visit('/limits?new=1', {
    axe: false,
    async act(page) {
      const dialog = page.locator('dialog[open]')
      const warnings = ['First warning.', 'Second warning.', 'Third warning.', 'Fourth warning.']
      await intercept(page, '**/api/web/limits', async route => {
        if (route.request().method() !== 'POST') return await route.continue()
        const answer = await route.fetch()
        await route.fulfill({ response: answer, json: { ...((await answer.json()) as object), warnings } })
      })
      await dialog.getByLabel('Amount', { exact: true }).fill('70')
      const passing = page.getByText('Limit created', { exact: true })
      await Promise.all([passing.waitFor(), dialog.getByRole('button', { name: 'Create limit' }).click()])
      await dialog.waitFor({ state: 'detached' })
      await passing.waitFor({ state: 'detached' })
      for (const warning of warnings) expect(await page.getByText(warning).isVisible()).toBe(true)
      const second = page.locator('p').filter({ hasText: 'Second warning.' })
      await second.getByRole('button', { name: 'Close' }).click()
      await second.waitFor({ state: 'detached' })
      expect(await page.getByText('First warning.').isVisible()).toBe(true)
      await page.unrouteAll({ behavior: 'wait' })
    },
  })
})

test('a key leads to its history, for those who may see it', async () => {
  const address = pageAddresses['/keys/$key']!(site)
  await visitor.visit(address, {
    axe: false,
    async act(page) {
      await page.getByRole('link', { name: 'Changes in the audit log' }).click()
      await page.getByRole('heading', { level: 1, name: 'Audit log' }).waitFor()
      expect(new URL(page.url()).searchParams.get('target')).toBe(site.ids.key)
      await untilReady(page)
      expect(await page.locator('main [data-row]').count()).toBeGreaterThan(0)
    },
  })
  await visitor.visit(address, {
    as: 'developer',
    axe: false,
    act: async page => expect(await page.getByRole('link', { name: 'Changes in the audit log' }).count()).toBe(0),
  })
})

test('the panel of a call goes on to others, and keeps the focus', async () => {
  await visitor.visit('/records', {
    axe: false,
    // The sign that is typed into a filter is sent if it is removed too late.
    failing: [/^400 \/api\/web\/records/],
    async act(page) {
      const callNow = (): string | null => new URL(page.url()).searchParams.get('call')
      const until = (call: string) =>
        untilTrue(page, `new URL(location.href).searchParams.get('call') === ${JSON.stringify(call)}`)
      const rows = page.locator('tbody [data-row]')
      const ids = await Promise.all([0, 1, 2].map(async at => (await rows.nth(at).getAttribute('data-row'))!))
      await rows.first().getByRole('link').click()
      const panel = page.locator('aside')
      await panel.waitFor()
      expect(callNow()).toBe(ids[0]!)
      const next = panel.getByRole('button', { name: 'Next call' })
      await next.focus()
      await page.keyboard.press('Enter')
      await until(ids[1]!)
      expect(await isFocused(next)).toBe(true)
      await page.keyboard.press(']')
      await until(ids[2]!)
      await page.keyboard.press('[')
      await until(ids[1]!)
      expect(await isFocused(next)).toBe(true)
      expect(await rows.nth(1).getAttribute('aria-current')).toBe('true')
      // A field takes the same keys as text.
      await page.locator('[data-filter]').first().focus()
      await page.keyboard.press('[')
      expect(callNow()).toBe(ids[1]!)
      await page.keyboard.press('Backspace')
    },
  })
})

test('the palette gives the focus back', async () => {
  await visitor.visit('/keys', {
    axe: false,
    async act(page) {
      const opener = page.getByRole('button', { name: 'Create key' })
      for (const leave of [() => page.keyboard.press('Escape'), () => page.mouse.click(5, 5)]) {
        await opener.focus()
        await page.keyboard.press('ControlOrMeta+k')
        await page.locator('dialog[open] input').waitFor()
        await leave()
        await page.locator('dialog[open]').waitFor({ state: 'detached' })
        await opener.and(page.locator(':focus')).waitFor()
        expect(await isFocused(opener)).toBe(true)
      }
    },
  })
})

test('rows are chosen by their names, on a screen and on a phone', async () => {
  for (const width of [1280, 390]) {
    await visitor.visit('/keys', {
      widths: [width],
      async act(page) {
        await page.getByRole('checkbox', { name: 'Select shop' }).check()
        await page.getByText('1 key chosen').waitFor()
        expect(await page.getByRole('status').filter({ hasText: '1 key chosen' }).getByRole('button').count()).toBe(0)
        const rows = await page.locator('[data-row]').count()
        await page.getByRole('checkbox', { name: 'Select all' }).check()
        await page.getByText(`${rows} keys chosen`).waitFor()
        await page.getByRole('button', { name: 'Clear choice' }).click()
        expect(await page.getByRole('checkbox', { name: 'Select all' }).isChecked()).toBe(false)
      },
    })
  }
})

test('the table of a chart leads to the records of a step', async () => {
  await visitor.visit(`${pageAddresses['/keys/$key']!(site)}?tab=use`, {
    axe: false,
    async act(page) {
      await page.getByRole('button', { name: 'As a table' }).click()
      await page.getByRole('table', { name: 'Calls and errors of this key' }).getByRole('link').first().click()
      await page.getByRole('heading', { level: 1, name: 'Records' }).waitFor()
      const { searchParams } = new URL(page.url())
      expect(searchParams.get('key')).toBe(site.ids.key)
      expect(Date.parse(searchParams.get('before')!)).toBeGreaterThan(Date.parse(searchParams.get('from')!))
    },
  })
})

test('on a phone the end of a panel is above the bar at the bottom', async () => {
  await visitor.visit(`/limits?limit=${site.ids.limit}`, {
    widths: [390],
    axe: false,
    async act(page) {
      const panel = (await page.locator('aside').boundingBox())!
      const bar = (await page.getByRole('navigation', { name: 'More' }).boundingBox())!
      // The line above the bar is one pixel.
      expect(panel.y + panel.height).toBeLessThanOrEqual(bar.y + 1)
    },
  })
})

test('a new key of staff has no account of a customer in advance', async () => {
  const chosenAt = async (path: string): Promise<string> => {
    const page = await visitor.visit(path, { axe: false })
    await page.getByRole('button', { name: 'Create key' }).click()
    return await page.locator('dialog[open] select').inputValue()
  }
  const { otherAccount } = site.ids
  expect(await chosenAt('/keys')).not.toBe(otherAccount)
  expect(await chosenAt(`/keys?account=${otherAccount}`)).toBe(otherAccount)
})

test('a secret that is shown once stays until it is kept, however often Escape is pressed', async () => {
  await visitor.visit('/keys?new=1', {
    axe: false,
    async act(page) {
      const dialog = page.locator('dialog[open]')
      await dialog.getByLabel('Name', { exact: true }).fill('kept')
      await dialog.getByRole('button', { name: 'Create key' }).click()
      const secret = page.locator('[data-secret-text]')
      await secret.waitFor()
      for (let times = 0; times < 4; times++) await page.keyboard.press('Escape')
      await page.evaluate('weirTexts.settled()')
      expect(await secret.isVisible()).toBe(true)
      await page.getByRole('button', { name: 'I have copied it' }).click()
      await secret.waitFor({ state: 'detached' })
    },
  })
})

test('when somebody else has changed the same thing, and it cannot be read again, the form says why', async () => {
  await visitor.visit(pageAddresses['/keys/$key']!(site), {
    axe: false,
    failing: [/^412 /, /^net::ERR_FAILED/],
    async act(page) {
      await intercept(page, `**/api/web/keys/${site.ids.key}`, route =>
        route.request().method() === 'PATCH'
          ? route.fulfill({ status: 412, json: { error: { code: 'version_stale', message: 'changed' } } })
          : route.abort(),
      )
      const name = page.getByRole('textbox', { name: 'Name', exact: true })
      await name.fill('written by me')
      await page.getByRole('button', { name: 'Save key' }).click()
      await page.locator('form [role=alert]').waitFor()
      expect(await name.inputValue()).toBe('written by me')
      await page.unrouteAll({ behavior: 'wait' })
    },
  })
})

test('who cannot be signed out, because the gateway is away, is told so', async () => {
  await visitor.visit('/keys', {
    axe: false,
    failing: [/^net::ERR_FAILED/],
    async act(page) {
      await intercept(page, '**/api/auth/sign-out', route => route.abort())
      await page.locator('header [aria-haspopup=menu]').click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      const said = page.locator('[aria-live=polite]')
      await said.getByText('cannot be reached').waitFor()
      expect(await page.locator('header [aria-haspopup=menu]').count()).toBe(1)
      await page.unrouteAll({ behavior: 'wait' })
    },
  })
})

test('a chart whose drawing cannot be loaded is shown as a table', async () => {
  await visitor.visit('/keys', {
    axe: false,
    failing: [/^net::ERR_FAILED/],
    async act(page) {
      await intercept(page, /\/assets\/uPlot[^/]*\.js$/i, route => route.abort())
      await page.evaluate(`weirTest.move('/keys/${site.ids.key}?tab=use')`)
      const table = page.getByRole('table', { name: 'Calls and errors of this key' })
      await table.waitFor()
      expect(await table.locator('tbody tr').count()).toBeGreaterThan(1)
      await page.unrouteAll({ behavior: 'wait' })
    },
  })
})
