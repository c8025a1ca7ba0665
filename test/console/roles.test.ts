// What people of each role are offered: the pages in their navigation, the buttons on these pages, and no request that the
// gateway would refuse.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import type { Visitor } from './support/browser.ts'
import { openSite } from './support/browser.ts'
import { pageAddresses } from './support/pages.ts'
import type { Role, SeededSite } from './support/seed.ts'
import { roles } from './support/seed.ts'

let site: SeededSite
let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ site, visitor, close } = await openSite({ callsMax: 1 }))
})
afterAll(() => close())

const forAll = ['/', '/keys', '/models', '/live', '/records', '/usage', '/losses', '/funds', '/prices', '/tiers']
const forViewers = [...forAll, '/account']
const forDevelopers = [...forViewers, '/playground']
const forManagers = [...forDevelopers, '/webhooks', '/tokens', '/audit']
const forStaff = [
  ...forManagers,
  ...['/codes', '/ledger', '/channels', '/providers', '/routes', '/limits', '/accounts', '/people', '/settings'],
  '/system',
]

/** The pages in the navigation of each role. */
const navigation: Readonly<Record<Role, readonly string[]>> = {
  owner: forStaff,
  admin: forStaff,
  support: forStaff,
  manager: forManagers,
  developer: forDevelopers,
  viewer: forViewers,
  stranger: forManagers,
}

/** Pages without a place in the navigation: who may see them, and for whom there is no such thing. */
const others: Readonly<Record<string, { readonly seenBy: readonly Role[]; readonly missingFor?: readonly Role[] }>> = {
  '/me': { seenBy: roles },
  '/records/deletions': { seenBy: ['owner', 'admin', 'support', 'manager', 'stranger'] },
  '/prices/backtest': { seenBy: ['owner', 'admin', 'support'] },
  '/keys/$key': { seenBy: roles, missingFor: ['stranger'] },
  '/models/$': { seenBy: roles },
  '/records/$call': { seenBy: roles, missingFor: ['stranger'] },
  '/accounts/$id': { seenBy: roles, missingFor: ['stranger'] },
  '/people/$id': { seenBy: ['owner', 'admin', 'support'] },
  '/channels/$id': { seenBy: ['owner', 'admin', 'support'] },
  '/providers/$id': { seenBy: ['owner', 'admin', 'support'] },
  '/routes/$name': { seenBy: ['owner', 'admin', 'support'] },
  '/prices/$': { seenBy: roles },
  '/webhooks/$id': { seenBy: ['owner', 'admin', 'support', 'manager', 'stranger'], missingFor: ['stranger'] },
}

const operators: readonly Role[] = ['owner', 'admin']
const developing: readonly Role[] = ['manager', 'developer']
const managing: readonly Role[] = ['manager']

/** Buttons that change something, and who has them. Everybody has an account of their own or is a member of one. */
const buttons: readonly (readonly [page: string, button: RegExp, seenBy: readonly Role[]])[] = [
  ['/keys', /^Create key$/, [...operators, 'support', ...developing, 'stranger']],
  ['/keys', /^Revoke key$/, [...operators, ...developing, 'stranger']],
  ['/keys', /^Disable$/, [...operators, ...developing, 'stranger']],
  ['/keys/$key', /^(Rotate|Revoke) key$/, [...operators, ...developing]],
  ['/records', /^Deletions$/, [...operators, 'support', ...managing, 'stranger']],
  ['/records/$call', /^Show bodies$/, [...operators, 'support', ...managing]],
  ['/funds', /^Redeem code$/, [...managing, 'stranger']],
  ['/accounts', /^Create account$/, operators],
  ['/accounts/$id', /^(Top up|Give credit|Correct balance|Refund a call|Freeze account)$/, operators],
  ['/people', /^Invite person$/, operators],
  ['/people/$id', /^(Create password link|Disable person|Remove person)$/, operators],
  ['/channels', /^(Add channel|Disable|Reset health)$/, operators],
  ['/channels/$id', /^(Disable channel|Test channel|Delete channel|Reset health)$/, operators],
  ['/providers', /^Define provider$/, operators],
  ['/providers/$id', /^Add channel$/, operators],
  ['/routes', /^Create route$/, operators],
  ['/routes/$name', /^(Delete route|Save route|Add model)$/, operators],
  ['/limits', /^Create limit$/, operators],
  ['/tiers', /^Create tier$/, operators],
  ['/prices', /^Price workbench$/, [...operators, 'support']],
  ['/prices/$', /^Withdraw own price$/, operators],
  ['/codes', /^(Make codes|Void codes)$/, operators],
  ['/webhooks', /^Create webhook$/, [...operators, ...managing, 'stranger']],
  ['/webhooks/$id', /^(Send test|New secret|Remove webhook)$/, [...operators, ...managing]],
  ['/tokens', /^Create token$/, [...operators, 'support', ...managing, 'stranger']],
  ['/tokens', /^(Rotate text|Revoke token)$/, operators],
]

interface Seen {
  readonly heading: string
  readonly alerts: readonly string[]
  readonly buttons: readonly string[]
  readonly navigation: readonly string[]
}

const read = (page: Page): Promise<Seen> =>
  page.evaluate<Seen>(`({
    heading: document.querySelector('main h1').textContent,
    alerts: Array.from(document.querySelectorAll('main [role=alert]'), alert => alert.textContent),
    buttons: Array.from(document.querySelectorAll('main button:not(:disabled), main a.button'), button => button.textContent.trim()),
    navigation: Array.from(document.querySelectorAll('nav li a'), link => new URL(link.href).pathname.slice('/console'.length)),
  })`)

const seen: Partial<Record<Role, Record<string, Seen>>> = {}

/** What is wrong with the page for this role, in words. Pages are reached by links, as people do. */
async function lookAs(as: Role, path: string): Promise<readonly string[]> {
  const isSeen = others[path]?.seenBy.includes(as) ?? navigation[as].includes(path)
  const isMissing = others[path]?.missingFor?.includes(as) ?? false
  const options = { as, moves: true, axe: false, ...(isMissing && { failing: [/^404 \/api\/web\//] }) }
  const { page, problems, requests } = await visitor.look(pageAddresses[path]!(site), options)
  const found = await read(page)
  ;(seen[as] ??= {})[path] = found
  const wrong = [...problems]
  const isForbidden = found.heading === 'You may not see this'
  if (isForbidden === isSeen) wrong.push(isForbidden ? 'it may not be seen' : 'it may be seen')
  if (isForbidden && requests.length > 0) wrong.push(`it asks for ${requests}`)
  if (isMissing !== found.alerts.some(text => text.startsWith('There is no such thing here'))) {
    wrong.push(isMissing ? 'it does not say that there is no such thing' : 'it says that there is no such thing')
  }
  return wrong.map(problem => `${path}: ${problem}`)
}

// People look at a page at the same time, and everybody at one page after the other.
test.each(Object.keys(pageAddresses))('%s shows each role what it may see, and asks for nothing else', async path => {
  const wrong = await Promise.all(roles.map(async role => [role, await lookAs(role, path)] as const))
  expect(Object.fromEntries(wrong)).toEqual(Object.fromEntries(roles.map(role => [role, []])))
})

test.each(roles.map(role => [role]))('the navigation of %s', role => {
  expect(seen[role]!['/']!.navigation.toSorted()).toEqual(navigation[role].toSorted())
})

test.each(buttons)('%s offers %p to those who may', (path, pattern, seenBy) => {
  const offered = roles.filter(role => seen[role]![path]!.buttons.some(button => pattern.test(button)))
  expect(offered.toSorted()).toEqual(seenBy.toSorted())
})
