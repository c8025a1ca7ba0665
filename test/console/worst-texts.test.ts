// The worst texts in every form of the console, with a real browser and a real gateway. Each text is saved, or refused with a
// message. What is saved is shown as text where people meet it, and leaves the page as it was: nothing scrolls sideways,
// every button can be reached, no word of ours changes its place, nothing is run.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page, Request, Response } from 'playwright-core'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import { goodPassword } from '../support/people.ts'
import type { VisitOptions } from './support/browser.ts'
import { openSite, READY_MS, untilReady, Visitor } from './support/browser.ts'
import { pageAddresses } from './support/pages.ts'
import type { Role, SeededSite } from './support/seed.ts'
import { isWhole } from './support/whole.ts'

/** Each fits into a name, which has at most 100 characters; the last two fit nowhere. */
const texts = {
  // A formula, markup, joined and combined signs, widths of zero; an override and an embedding that are not ended.
  worst: `=1+1;<img src=x onerror=weirHacked=1>"'&amp;👩‍👧🏳️‍🌈e\u0301\u0335z\u200bw\u200c ab \u202Egnirts שלום عالم \u2067x`,
  // It would end an isolation that a page has begun.
  unbound: '+cmd|A1\u2069 \u202Eon שלום',
  longWord: 'W'.repeat(100),
  ownWord: 'Cancel',
  control: 'a\u0000b\u0007c\u001b[31md\u009f half \ud83d',
  tooLong: 'ten thousand '.repeat(800).slice(0, 10_000),
} as const
type TextName = keyof typeof texts

/** What is refused comes first: the form stays open for the next text. */
const textNames = isWhole ? (Object.keys(texts) as TextName[]) : (['tooLong', 'worst'] as const)
/** What a name may be. */
const plain = textNames.filter(name => name !== 'control' && name !== 'tooLong')

interface Site extends SeededSite {
  readonly ownProvider: string
}

interface FormRow {
  readonly as?: Role | 'nobody'
  /** Of a gateway that nobody has set up yet. */
  readonly isFresh?: true
  /** The address of the page. `number` is another one for each text. */
  readonly page: (site: Site, number: number) => string | Promise<string>
  /** What is written in place of the text itself: another name than that of a thing before, or an address. */
  readonly value?: (text: string) => string
  /** What opens the form. */
  readonly open?: (page: Page) => Promise<void>
  /** The button of the form; undefined: it has none. */
  readonly submit?: string
  /** Fields that are no free texts, by their labels: what they get. */
  readonly fields?: (text: string, number: number, site: Site) => Readonly<Record<string, string>>
  /** The steps after the form. */
  readonly finish?: (page: Page) => Promise<void>
  /** Which texts are saved; the others are refused. By default what a name may be. `some`: some of them. */
  readonly saves?: readonly TextName[] | 'some'
  /** The form says below its fields what is wrong: in a second step, or as the result of a test. */
  readonly saysBelow?: true
  /** The form has no free text. Only what is around it is looked at. */
  readonly hasNoText?: true
  /** The pages that show what was saved, by the answer of the gateway. */
  readonly shownAt?: (answer: Readonly<Record<string, unknown>>, site: Site) => readonly string[]
  /** Lists that show all that was saved. */
  readonly lists?: (site: Site) => readonly string[]
}

const click = (name: string) => async (page: Page) => {
  await page.locator('dialog[open]').or(page.locator('main')).last().getByRole('button', { name, exact: true }).click()
}

/** Opens the menu of the page or of its first row, and chooses from it. */
const fromMenu =
  (item: string, place = 'main [data-row]') =>
  async (page: Page) => {
    await page.locator(`${place} [aria-haspopup=menu]`).first().click()
    await page.getByRole('menuitem', { name: item, exact: true }).click()
  }

const at = (path: string) => (site: Site) => pageAddresses[path]!(site)
const tab = (path: string, name: string) => (site: Site) => `${pageAddresses[path]!(site)}?tab=${name}`
const none: readonly TextName[] = []
/** Another name, where two things may not have the same. */
const another = (text: string): string => (text.length > 100 ? text : `${text.slice(0, 98)}~2`)
const inAddress = (text: string): string => `https://hooks.example.com/${text}`

/** The definition of a provider with this name. */
const definition = (id: string, name: string): string =>
  JSON.stringify({
    id,
    name,
    baseUrl: 'https://relay.example.com/v1',
    keyEnv: 'RELAY_API_KEY',
    baseUrlEnv: 'RELAY_BASE_URL',
    sign: 'bearer',
    speaks: { 'openai-chat': '/chat/completions' },
    models: [{ id: 'river-1', contextTokens: 32_000, price: { input: '1', output: '4' } }],
  })

const invite = async ({ harness }: Site, email: string, more: object = {}): Promise<string> => {
  const { token } = await harness.manage('POST', '/api/web/invitations', { email, role: 'member', ...more })
  return `/join#${token}`
}

/** By the file and the number of the form in it. */
const forms: Readonly<Record<string, FormRow>> = {
  // Questions have a field if a name must be typed first: `the name of a batch is typed` is about it.
  'parts/dialog.tsx 1': { page: at('/keys/$key'), open: click('Revoke key'), submit: 'Revoke key', hasNoText: true },
  'parts/explain-form.tsx 1': {
    page: () => '/routes?tab=explain',
    submit: 'Explain',
    fields: (text, _, { ids }) => ({
      'As which key': ids.key,
      'Request (JSON)': JSON.stringify({ model: 'demo/echo', messages: [{ role: 'user', content: text }] }),
    }),
    saves: 'some',
  },
  'parts/price-form.tsx 1': { page: tab('/prices/$', 'edit'), submit: 'Set price', saves: none },
  'parts/rotate-dialog.tsx 1': {
    page: at('/keys/$key'),
    open: click('Rotate key'),
    submit: 'Rotate key',
    hasNoText: true,
  },
  'parts/budgets.tsx 1': {
    page: ({ ids }) => `/funds?account=${ids.account}&tab=budgets`,
    open: click('Add budget'),
    submit: 'Save budget',
    saves: none,
  },
  'pages/account-members.tsx 1': {
    page: tab('/accounts/$id', 'members'),
    open: click('Add member'),
    submit: 'Add member',
    saves: none,
  },
  'pages/account-members.tsx 2': {
    page: tab('/accounts/$id', 'members'),
    open: fromMenu('Change role'),
    submit: 'Save changes',
    hasNoText: true,
  },
  'pages/account-money.tsx 1': {
    page: at('/accounts/$id'),
    open: click('Top up'),
    submit: 'Continue',
    fields: () => ({ Amount: '1' }),
    finish: click('Top up'),
    saysBelow: true,
    lists: ({ ids }) => [`/funds?account=${ids.account}`],
  },
  // The second step of the form before.
  'pages/account-money.tsx 2': {
    page: at('/accounts/$id'),
    async open(page) {
      await click('Top up')(page)
      await page.getByLabel('Amount').fill('1')
      await page.getByLabel('Reason or reference').fill(texts.worst)
      await click('Continue')(page)
      await page.getByText('Balance after').waitFor()
    },
    submit: 'Top up',
    hasNoText: true,
  },
  'pages/account.tsx 1': {
    page: ({ ids }) => `/accounts/${ids.otherAccount}`,
    submit: 'Save changes',
    fields: () => ({ 'Models that its keys may use': '', 'Models that its keys may not use': '' }),
    shownAt: (_, { ids }) => ['/accounts', `/accounts/${ids.otherAccount}?tab=members`],
  },
  'pages/accounts.tsx 1': {
    page: () => '/accounts?new=1',
    submit: 'Create account',
    fields: () => ({ 'Credit limit': '' }),
    shownAt: ({ id }) => [`/accounts/${id}`],
    lists: () => ['/accounts'],
  },
  'pages/channel-models.tsx 1': { page: at('/channels/$id'), submit: 'Test channel', saves: none, saysBelow: true },
  'pages/channel-settings.tsx 1': {
    page: tab('/channels/$id', 'settings'),
    submit: 'Replace credential',
    saves: 'some',
  },
  'pages/channel-settings.tsx 2': {
    page: tab('/channels/$id', 'settings'),
    submit: 'Save channel',
    fields: (_, __, { harness }) => ({ 'Base URL': `${harness.upstream.url}/v1`, 'Tags': 'eu' }),
    shownAt: (_, site) => ['/channels', pageAddresses['/channels/$id']!(site), '/models/openai/gpt-4o-mini'],
  },
  'pages/channel-settings.tsx 3': {
    page: tab('/channels/$id', 'overrides'),
    submit: 'Save overrides',
    fields: text => ({
      'Headers': `x-worst: ${text}`,
      'Request fields': JSON.stringify({ 'openai-chat': { set: { user: text } } }),
    }),
    saves: 'some',
  },
  'pages/channel.tsx 1': {
    page: at('/channels/$id'),
    open: fromMenu('Move settings …', 'main'),
    submit: 'Move settings',
    hasNoText: true,
  },
  'pages/channels-bulk.tsx 1': {
    page: () => '/channels',
    async open(page) {
      await page.locator('main tbody input[type=checkbox]').first().check()
      await click('Change …')(page)
    },
    submit: 'Change channels',
    saves: none,
  },
  'pages/codes.tsx 1': {
    page: () => '/codes',
    open: click('Create codes'),
    submit: 'Create codes',
    fields: () => ({ Codes: '2', Amount: '1' }),
    lists: () => ['/codes', '/codes?tab=codes'],
  },
  'pages/deletions.tsx 1': {
    page: () => '/records/deletions?new=1',
    submit: 'Continue',
    fields: (_, __, { ids }) => ({ 'Account': ids.otherAccount, 'Key id': '' }),
    finish: click('Delete records'),
    saysBelow: true,
    saves: 'some',
  },
  'pages/find-key.tsx 1': { page: () => '/keys', open: click('Find by secret'), submit: 'Find key', saves: none },
  'pages/funds.tsx 1': {
    as: 'manager',
    page: () => '/funds',
    open: click('Redeem code'),
    submit: 'Redeem code',
    saves: none,
  },
  'pages/funds.tsx 2': { as: 'manager', page: () => '/funds?tab=alert', submit: 'Save alert', saves: none },
  'pages/invite.tsx 1': {
    page: () => '/people',
    open: click('Invite person'),
    submit: 'Create link',
    fields: () => ({ Account: '' }),
    saves: none,
  },
  'pages/join.tsx 1': {
    as: 'nobody',
    page: (site, number) => invite(site, `joins-${number}@example.com`),
    submit: 'Join',
    fields: () => ({ Password: goodPassword }),
    lists: () => ['/people'],
  },
  'pages/join.tsx 2': {
    as: 'viewer',
    page: site => invite(site, site.people.viewer.email, { account: site.ids.otherAccount, accountRole: 'viewer' }),
    submit: 'Accept invitation',
    hasNoText: true,
  },
  'pages/key.tsx 1': {
    page: at('/keys/$key'),
    submit: 'Save key',
    fields: () => ({
      'Models that the key may use': '',
      'Models that the key may not use': '',
      'Endpoints that the key may call': '',
      'Addresses that may use the key': '',
      'Tags that a channel must have': '',
    }),
    shownAt: (_, { ids }) => ['/keys', `/records/${ids.calls.plain}`],
  },
  'pages/limits.tsx 1': {
    page: ({ ids }) => `/limits?limit=${ids.limit}`,
    submit: 'Save amount',
    hasNoText: true,
  },
  'pages/me-second-factor.tsx 1': {
    as: 'stranger',
    page: () => '/me?tab=security',
    open: click('Set up second factor'),
    submit: 'Continue',
    saves: none,
  },
  'pages/me-second-factor.tsx 2': {
    as: 'support',
    page: () => '/me?tab=security',
    async open(page) {
      await click('Set up second factor')(page)
      await page.locator('dialog[open]').getByLabel('Password', { exact: true }).fill(goodPassword)
      await click('Continue')(page)
      await page.getByText('Or write this secret into the app').waitFor()
    },
    submit: 'Turn on',
    saves: none,
  },
  'pages/me.tsx 1': {
    as: 'manager',
    page: () => '/me',
    submit: 'Save changes',
    shownAt: () => ['/me', '/account?tab=members'],
  },
  'pages/me.tsx 2': { as: 'developer', page: () => '/me?tab=security', submit: 'Change password', saves: none },
  'pages/new-channel.tsx 1': { page: () => '/channels?new=1', saves: none },
  'pages/new-channel.tsx 2': {
    page: () => '/channels?new=openai',
    submit: 'Add and test',
    value: another,
    fields: (_, number, { harness }) => ({
      'Key': `sk-worst-text-${number}-0123456789`,
      'Base URL': `${harness.upstream.url}/v1`,
      'Tags': 'eu',
    }),
    shownAt: ({ data }) => (data as { id: string }[]).map(({ id }) => `/channels/${encodeURIComponent(id)}`),
    lists: () => ['/channels', '/models/openai/gpt-4o-mini'],
  },
  'pages/new-key.tsx 1': {
    // An account with money: else the form also asks for a balance to begin with, but only for the first key.
    page: ({ ids }) => `/keys?new=1&account=${ids.account}`,
    submit: 'Create key',
    // The form of a key, above, has given the text itself to a key of the same account.
    value: another,
    shownAt: ({ id }) => [`/keys/${id}`],
    lists: () => ['/keys'],
  },
  'pages/new-limit.tsx 1': {
    page: () => '/limits?new=1',
    submit: 'Create limit',
    fields: () => ({ 'Amount': '9', 'Only this account': '', 'Only this key': '' }),
    saves: 'some',
    lists: () => ['/limits'],
  },
  'pages/password.tsx 1': {
    as: 'nobody',
    async page({ harness, people }) {
      const { token } = await harness.manage('POST', `/api/web/users/${people.admin.id}/password-reset`, {})
      return `/password#${token}`
    },
    submit: 'Set password',
    saves: 'some',
  },
  'pages/person.tsx 1': {
    page: ({ people }) => `/people/${people.developer.id}`,
    submit: 'Save changes',
    fields: (_, __, { people }) => ({ Email: people.developer.email }),
    shownAt: (_, { ids }) => ['/people', `/accounts/${ids.account}?tab=members`],
  },
  'pages/playground.tsx 1': {
    as: 'manager',
    page: () => '/playground',
    submit: 'Send',
    fields: () => ({ Model: 'demo/echo' }),
    saves: 'some',
  },
  'pages/price-workbench.tsx 1': { page: () => '/prices/backtest', submit: 'Run backtest', hasNoText: true },
  'pages/provider.tsx 1': {
    page: ({ ownProvider }) => `/providers/${ownProvider}?tab=definition`,
    submit: 'Save definition',
    fields: (text, _, { ownProvider }) => ({ 'Definition (JSON)': definition(ownProvider, text) }),
    saves: 'some',
    shownAt: (_, { ownProvider }) => ['/providers', `/providers/${ownProvider}`],
  },
  'pages/providers.tsx 1': {
    page: () => '/providers?new=1',
    submit: 'Define provider',
    fields: (text, number) => ({ 'Definition (JSON)': definition(`worst-${number}`, text) }),
    saves: 'some',
    shownAt: ({ id }) => [`/providers/${id}`],
    lists: () => ['/providers?from=own'],
  },
  'pages/register.tsx 1': {
    as: 'nobody',
    page: () => '/register',
    submit: 'Create account',
    fields: (_, number) => ({ Email: `registers-${number}@example.com`, Password: goodPassword }),
    lists: () => ['/people'],
  },
  'pages/route.tsx 1': {
    page: at('/routes/$name'),
    submit: 'Save route',
    fields: () => ({ 'Model 2': 'demo/echo' }),
    saves: none,
  },
  'pages/routes.tsx 1': {
    page: () => '/routes?new=1',
    submit: 'Create route',
    fields: () => ({ 'Model 1': 'demo/echo' }),
    saves: 'some',
    lists: () => ['/routes'],
  },
  'pages/set-up.tsx 1': { as: 'nobody', isFresh: true, page: () => '/set-up', submit: 'Create owner', saves: none },
  'pages/settings.tsx 1': {
    page: () => '/settings',
    submit: 'Save changes',
    fields: () => ({
      'Domains of email addresses that may register': '',
      'Starting credit': '2.50',
      'Where people ask for help': '',
    }),
    shownAt: (_, { ids }) => [`/funds?account=${ids.account}`],
  },
  'pages/sign-in.tsx 1': { as: 'nobody', page: () => '/sign-in', submit: 'Sign in', saves: none },
  'pages/tiers.tsx 1': { page: () => '/tiers?tier=gold', submit: 'Save tier', hasNoText: true },
  'pages/tiers.tsx 2': { page: () => '/tiers?new=1', submit: 'Create tier', saves: none },
  'pages/token-dialogs.tsx 1': {
    page: () => '/tokens',
    open: click('Create token'),
    submit: 'Create token',
    lists: () => ['/tokens'],
  },
  'pages/token-dialogs.tsx 2': {
    page: () => '/tokens',
    open: fromMenu('Change name or expiry'),
    value: another,
    submit: 'Save',
    shownAt: () => ['/tokens'],
  },
  'pages/webhook.tsx 1': {
    page: tab('/webhooks/$id', 'settings'),
    submit: 'Save changes',
    value: inAddress,
    saves: 'some',
    shownAt: () => ['/webhooks'],
  },
  'pages/webhooks.tsx 1': {
    page: () => '/webhooks',
    open: click('Create webhook'),
    submit: 'Create webhook',
    value: inAddress,
    saves: 'some',
    shownAt: ({ id }) => [`/webhooks/${id}`],
    lists: () => ['/webhooks'],
  },
}

/** Every form of the sources: `pages/new-key.tsx 1`. */
function formsInSources(): readonly string[] {
  const folder = join(import.meta.dir, '..', '..', 'console', 'src')
  const files = [...new Bun.Glob('**/*.tsx').scanSync(folder)]
  return files.flatMap(name => {
    const source = readFileSync(join(folder, name), 'utf8')
    // The component itself has the only one that is not a form of its own.
    const found = source.match(/<(Form|form)\b(?![^>]*\bref=\{form\})/g) ?? []
    return found.map((_, index) => `${name} ${index + 1}`)
  })
}

test('every form of the console has a row here', () => {
  expect(Object.keys(forms).sort()).toEqual([...formsInSources()].sort())
})

let site: Site
let visitor: Visitor
let close: () => Promise<void>
/** A gateway that nobody has set up yet. */
let fresh: { readonly harness: Harness; readonly visitor: Visitor } | undefined

async function openFresh(): Promise<Visitor> {
  const harness = await startHarness()
  fresh = { harness, visitor: await Visitor.open({ ...site, harness }) }
  return fresh.visitor
}

beforeAll(async () => {
  const opened = await openSite({ callsMax: 1 })
  ;({ visitor, close } = opened)
  const ownProvider = 'worst-own'
  await opened.site.harness.manage('POST', '/api/web/providers', {
    definition: JSON.parse(definition(ownProvider, 'Relay')) as unknown,
  })
  site = { ...opened.site, ownProvider }
})
afterAll(async () => {
  await fresh?.visitor.close()
  await fresh?.harness.stop()
  await close()
})

const WIDTHS: readonly number[] = [390, 1280]
const HEIGHT = 900

/** What the texts have done to the page that is open. `isShown`: they must all be there. `reaches`: so must all buttons. */
async function lookAround(
  page: Page,
  wanted: readonly string[],
  { isShown = true, widths = WIDTHS, reaches = true } = {},
): Promise<readonly string[]> {
  const problems: string[] = []
  for (const width of widths) {
    await page.setViewportSize({ width, height: HEIGHT })
    await page.evaluate('weirTexts.settled()')
    const given = JSON.stringify(wanted)
    const missing = isShown
      ? await page.evaluate<readonly string[]>(`weirTexts.missing(${given}, ${READY_MS / 2})`)
      : []
    const found = await page.evaluate<readonly string[]>(`weirTexts.check(${given}, ${reaches})`)
    problems.push(...missing.map(text => `${width}: not shown: ${text}`), ...found.map(text => `${width}: ${text}`))
  }
  return problems.map(problem => `${new URL(page.url()).pathname} ${problem}`)
}

/** A request that changes something. The session is renewed by others. */
const isWrite = (request: Request): boolean => {
  const { pathname } = new URL(request.url())
  return request.method() !== 'GET' && /^\/(api|v1)/.test(pathname) && pathname !== '/api/auth/session'
}

interface Ending {
  readonly answer?: Response
  readonly messages: readonly string[]
}

/** What the form says against what was written. */
const messagesOn = (page: Page): Promise<readonly string[]> => page.evaluate('weirTexts.messages()')

/** Sends the form. It ends with an answer of the gateway, or with a message of the form itself. */
async function send(page: Page, { submit, finish }: FormRow): Promise<Ending> {
  const written: Request[] = []
  const note = (request: Request): void => void (isWrite(request) && written.push(request))
  page.on('request', note)
  try {
    await page.evaluate(`weirTexts.submit(${JSON.stringify(submit)})`)
    await page.evaluate('weirTexts.settled()')
    if (finish !== undefined && (await messagesOn(page)).length === 0) await finish(page)
    for (;;) {
      await page.evaluate('weirTexts.settled()')
      if (written[0] !== undefined) {
        const answer = (await written[0].response())!
        await untilReady(page)
        if (answer.ok()) return { answer, messages: [] }
        return { answer, messages: await page.evaluate<readonly string[]>(`weirTexts.message(${READY_MS / 2})`) }
      }
      const said = await messagesOn(page)
      if (said.length > 0 || submit === undefined) return { messages: said }
    }
  } finally {
    page.off('request', note)
  }
}

let number = 0

async function open(page: Page, row: FormRow): Promise<void> {
  const address = await row.page(site, ++number)
  // A page that differs only behind # would not be loaded again, and a page that is open may still get a cookie.
  if (row.as === 'nobody' || address.includes('#')) await page.goto('about:blank')
  if (row.as === 'nobody') await page.context().clearCookies()
  await page.goto(`${urlOf(row)}/console${address}`, { waitUntil: 'domcontentloaded' })
  await untilReady(page)
  await row.open?.(page)
}

interface Filled {
  readonly labels: readonly string[]
  readonly unknown: readonly string[]
  readonly isDisabled: boolean
}

async function fill(page: Page, row: FormRow, text: string): Promise<Filled> {
  const fields = row.fields?.(text, number, site) ?? {}
  return await page.evaluate<Filled>(`weirTexts.fill(${JSON.stringify({ submit: row.submit, fields, text })})`)
}

interface Tried {
  readonly saved: readonly TextName[]
  readonly problems: readonly string[]
}

/** Reaches a page by a link, as people do. */
async function move(page: Page, address: string): Promise<void> {
  if (page.url() === `${site.harness.url}/console${address}`) return
  await page.evaluate(`weirTest.move(${JSON.stringify(address)})`)
  await untilReady(page)
}

/** Writes each text into the form, sends it, and looks at the pages that show it then. */
async function tryAll(page: Page, row: FormRow): Promise<Tried> {
  const saved: TextName[] = []
  const problems: string[] = []
  let isOpen = false
  for (const name of textNames) {
    const text = row.value?.(texts[name]) ?? texts[name]
    const note = (...found: readonly string[]): void => void problems.push(...found.map(one => `${name}: ${one}`))
    if (!isOpen) await open(page, row)
    const filled = await fill(page, row, text)
    if (filled.labels.length === 0) note('the form has no free text')
    if (filled.unknown.length > 0) note(`the form has no field "${filled.unknown}"`)
    const { answer, messages } = filled.isDisabled ? { messages: await messagesOn(page) } : await send(page, row)
    const isSaved = answer?.ok() ?? false
    // A refusal changes nothing but the form, for which the phone has least room. Long texts push buttons away.
    const isLong = name === 'longWord' || name === 'tooLong'
    note(...(await lookAround(page, [text], { isShown: false, widths: isSaved ? WIDTHS : [390], reaches: isLong })))
    if (isSaved) {
      saved.push(name)
      for (const address of row.shownAt?.(await bodyOf(answer!), site) ?? []) {
        await move(page, address)
        note(...(await lookAround(page, [text], { reaches: isLong })))
      }
    } else if (messages.length === 0 && row.submit !== undefined) note('refused without a message')
    if (answer?.status() === 400 && row.saysBelow === undefined && !(await isAtField(page, answer)))
      note(`refused, but not at the field: ${messages}`)
    isOpen = !isSaved && row.finish === undefined
  }
  return { saved, problems }
}

/** Whether the field that the gateway names says what is wrong with it. If it names none, the form says it. */
async function isAtField(page: Page, answer: Response): Promise<boolean> {
  const { error } = (await bodyOf(answer)) as { error?: { param?: string | null } }
  return error?.param == null || (await page.locator('[aria-invalid=true]').count()) > 0
}

const bodyOf = async (answer: Response): Promise<Record<string, unknown>> =>
  (await answer.json().catch(() => ({}))) as Record<string, unknown>

/** Refusals are what this is about. */
const asTester = (row: FormRow): VisitOptions => ({ as: row.as ?? 'owner', axe: false, failing: [/^4\d\d \//] })

/** Back to a page that has nothing to lose. */
async function leave(page: Page, row: FormRow): Promise<void> {
  if (row.as === 'nobody') await page.context().clearCookies()
  await page.goto(`${urlOf(row)}/console${startOf(row)}`)
  await untilReady(page)
}
const urlOf = ({ isFresh }: FormRow): string => (isFresh ? fresh! : site).harness.url
const startOf = ({ as, isFresh }: FormRow): string => (isFresh ? '/set-up' : as === 'nobody' ? '/sign-in' : '/me')

test.each(Object.keys(forms))('%s takes the worst texts, or says why not', async name => {
  const row = forms[name]!
  const found: string[] = []
  let saved: readonly TextName[] = []
  const browser = row.isFresh ? await openFresh() : visitor
  const { problems } = await browser.look(startOf(row), {
    ...asTester(row),
    async act(page) {
      if (row.hasNoText) {
        await open(page, row)
        const { labels } = await fill(page, row, '')
        found.push(...labels.map(label => `a free text: ${label}`), ...(await lookAround(page, [])))
      } else {
        const tried = await tryAll(page, row)
        found.push(...tried.problems)
        saved = tried.saved
      }
      await leave(page, row)
    },
  })
  expect([...problems, ...found]).toEqual([])
  if (row.saves === 'some') expect(saved.length).toBeGreaterThanOrEqual(isWhole ? 1 : 0)
  else expect(saved).toEqual(row.hasNoText ? [] : (row.saves ?? plain))
  const valueOf = (one: TextName): string => row.value?.(texts[one]) ?? texts[one]
  for (const address of row.lists?.(site) ?? []) {
    const list: string[] = []
    const options: VisitOptions = {
      axe: false,
      act: async page => void list.push(...(await lookAround(page, saved.map(valueOf)))),
    }
    const looked = await visitor.look(address, options)
    expect([...looked.problems, ...list]).toEqual([])
  }
})

/** A thing with a name, and the questions that name it. */
const questions: Readonly<
  Record<string, readonly [path: (site: Site) => string, open: (page: Page) => Promise<void>]>
> = {
  'a key is revoked': [at('/keys/$key'), click('Revoke key')],
  'a key is rotated': [at('/keys/$key'), click('Rotate key')],
  'an account is frozen': [at('/accounts/$id'), click('Freeze account')],
  'an account gets money': [at('/accounts/$id'), click('Top up')],
  'somebody is invited to an account': [tab('/accounts/$id', 'members'), click('Invite person')],
  'somebody is removed from an account': [tab('/accounts/$id', 'members'), fromMenu('Remove from account')],
  'the role of a member changes': [tab('/accounts/$id', 'members'), fromMenu('Change role')],
  'a person is disabled': [at('/people/$id'), fromMenu('Disable person', 'main')],
  'a channel is deleted': [at('/channels/$id'), fromMenu('Delete channel', 'main')],
  'the settings of a channel are moved': [at('/channels/$id'), fromMenu('Move settings …', 'main')],
  'a definition is deleted': [
    ({ ownProvider }) => `/providers/${ownProvider}?tab=definition`,
    click('Delete definition'),
  ],
  'a token is revoked': [() => '/tokens', fromMenu('Revoke token')],
  'a webhook is removed': [at('/webhooks/$id'), fromMenu('Remove webhook', 'main')],
}

const tokenName = (text: string): string => `${text.slice(0, 98)}~3`

/** How things are named that cannot have the text itself as a name. */
const namedIn = (what: string, text: string): string => {
  if (what.includes('token')) return tokenName(text)
  return what.includes('webhook') ? encodeURIComponent(text.toWellFormed()) : text
}

/** Gives all things with a name this one. */
async function rename(text: string): Promise<void> {
  const { harness, ids, people, ownProvider } = site
  const patch = (path: string, body: object) => harness.manage('PATCH', `/api/web/${path}`, body)
  await patch(`keys/${ids.key}`, { name: text })
  await patch(`accounts/${ids.account}`, { name: text })
  for (const person of Object.values(people)) await patch(`users/${person.id}`, { name: text })
  await patch(`channels/${encodeURIComponent(ids.failingChannel)}`, { name: text })
  await patch(`providers/${ownProvider}`, { definition: { name: text } })
  await patch(`webhooks/${ids.webhook}`, { url: `https://hooks.example.com/${namedIn('webhook', text)}` })
  // Names of tokens stay taken.
  await harness.manage('POST', '/api/web/service-tokens', { name: tokenName(text), role: 'support' })
}

describe.each(isWhole ? (['worst', 'unbound', 'longWord'] as const) : (['worst'] as const))(
  'with the name "%s"',
  name => {
    // Nothing that the forms before have made begins with it.
    const text = `§${texts[name].slice(0, 99)}`
    beforeAll(() => rename(text))

    test.each(Object.keys(questions))('the dialog in which %s names it', async what => {
      const [path, openDialog] = questions[what]!
      const found: string[] = []
      const { problems } = await visitor.look(path(site), {
        axe: false,
        async act(page) {
          await openDialog(page)
          await page.locator('dialog[open] h2').waitFor()
          found.push(...(await lookAround(page, [namedIn(what, text)])))
          await page.keyboard.press('Escape')
        },
      })
      expect([...problems, ...found]).toEqual([])
    })

    test('the palette finds and shows it', async () => {
      const found: string[] = []
      const { problems } = await visitor.look('/me', {
        axe: false,
        async act(page) {
          await page.keyboard.press('ControlOrMeta+k')
          await page.locator('dialog[open] input').fill(text)
          // An account and a key have the name, and more.
          await page.locator('dialog[open] [role=option]').nth(1).waitFor()
          found.push(...(await lookAround(page, [text])))
          await page.keyboard.press('Escape')
        },
      })
      expect([...problems, ...found]).toEqual([])
    })

    test('the pages for everybody show it as the name of the site, with a notice', async () => {
      await site.harness.manage('PATCH', '/api/web/settings', { siteName: text, notice: text })
      for (const address of ['/sign-in', '/register', '/pricing']) {
        const found: string[] = []
        const options: VisitOptions = {
          as: 'nobody',
          axe: false,
          act: async page => void found.push(...(await lookAround(page, [text]))),
        }
        const { problems } = await visitor.look(address, options)
        expect([...problems, ...found]).toEqual([])
      }
      await site.harness.manage('PATCH', '/api/web/settings', { siteName: 'Weir', notice: '' })
    })
  },
)

test('codes of a batch with the worst name are voided by typing it', async () => {
  const text = another(texts.worst)
  await site.harness.manage('POST', '/api/web/codes', { count: 1, amount: '1', batch: text })
  await visitor.visit('/codes', {
    axe: false,
    async act(page) {
      await page.locator(`[data-row=${JSON.stringify(text)}] [aria-haspopup=menu]`).click()
      await page.getByRole('menuitem', { name: 'Void codes' }).click()
      const dialog = page.locator('dialog[open]')
      const button = dialog.getByRole('button', { name: 'Void codes' })
      await dialog.getByRole('textbox').fill('something else')
      expect(await button.isDisabled()).toBe(true)
      await dialog.getByRole('textbox').fill(text)
      await button.click()
      await dialog.waitFor({ state: 'detached' })
    },
  })
  const { data } = await site.harness.manage('GET', '/api/web/codes/batches')
  const batches = data as { batch: string; voided: number }[]
  expect(batches.find(({ batch }) => batch === text)).toMatchObject({ voided: 1 })
})

test('the file of new codes runs no formula', async () => {
  let file = ''
  await visitor.visit('/codes', {
    axe: false,
    async act(page) {
      await click('Create codes')(page)
      const dialog = page.locator('dialog[open]')
      await dialog.getByLabel('Codes', { exact: true }).fill('1')
      await dialog.getByLabel('Amount').fill('1')
      await dialog.getByLabel('Batch').fill('=1+1,"x"')
      await click('Create codes')(page)
      const [download] = await Promise.all([page.waitForEvent('download'), click('Save as CSV')(page)])
      file = readFileSync(await download.path(), 'utf8')
      await click('I have them')(page)
    },
  })
  expect(file).toMatch(/^code,batch,amount\r\n[\w-]+,"'=1\+1,""x""",1\.00\r\n$/)
})

const listsWithFilters = ['/keys', '/records', '/accounts', '/people', '/channels', '/providers', '/routes', '/audit']

test.each(listsWithFilters)('the filters of %s take the worst texts', async path => {
  const found: string[] = []
  const { problems } = await visitor.look(path, {
    axe: false,
    failing: [/^400 \/api\/web\//],
    async act(page) {
      const filter = (await page.locator('[data-filter]').first().getAttribute('data-filter'))!
      for (const name of textNames) {
        const before = page.url()
        await page.setViewportSize({ width: 1280, height: HEIGHT })
        await page.evaluate(`weirTexts.filter(${JSON.stringify(texts[name])})`)
        // The filter is a parameter of the address, a moment after the last key.
        while (page.url() === before) await page.evaluate('weirTexts.settled()')
        expect(new URL(page.url()).searchParams.has(filter)).toBe(true)
        await untilReady(page)
        found.push(...(await lookAround(page, [], { isShown: false })).map(one => `${name}: ${one}`))
      }
    },
  })
  expect([...problems, ...found]).toEqual([])
})
