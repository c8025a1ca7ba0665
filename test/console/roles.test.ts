// What people of each role are offered: the pages in their navigation, the buttons on these pages, and no request that the
// gateway would refuse.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Visitor } from './support/browser.ts'
import { openSite } from './support/browser.ts'
import { pageAddresses } from './support/pages.ts'
import type { Seen } from './support/roles.ts'
import { lookAs, navigation } from './support/roles.ts'
import type { Role, SeededSite } from './support/seed.ts'
import { roles } from './support/seed.ts'

let site: SeededSite
let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ site, visitor, close } = await openSite({ callsMax: 1 }))
})
afterAll(() => close())

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
  ['/prices', /^Price backtest$/, [...operators, 'support']],
  ['/prices/$', /^Withdraw own price$/, operators],
  ['/codes', /^(Create codes|Void codes)$/, operators],
  ['/webhooks', /^Create webhook$/, [...operators, ...managing, 'stranger']],
  ['/webhooks/$id', /^(Send test|New secret|Remove webhook)$/, [...operators, ...managing]],
  ['/tokens', /^Create token$/, [...operators, 'support', ...managing, 'stranger']],
  ['/tokens', /^(Rotate|Revoke token)$/, operators],
]

const seen: Partial<Record<Role, Record<string, Seen>>> = {}

/** Pages are reached by links, as people do. */
async function wrongFor(as: Role, path: string): Promise<readonly string[]> {
  const looked = await lookAs({ visitor, site }, as, path, { moves: true, axe: false })
  ;(seen[as] ??= {})[path] = looked.seen
  return looked.wrong
}

// People look at a page at the same time, and everybody at one page after the other.
test.each(Object.keys(pageAddresses))('%s shows each role what it may see, and asks for nothing else', async path => {
  const wrong = await Promise.all(roles.map(async role => [role, await wrongFor(role, path)] as const))
  expect(Object.fromEntries(wrong)).toEqual(Object.fromEntries(roles.map(role => [role, []])))
})

test.each(roles.map(role => [role]))('the navigation of %s', role => {
  expect(seen[role]!['/']!.navigation.toSorted()).toEqual(navigation[role].toSorted())
})

test.each(buttons)('%s offers %p to those who may', (path, pattern, seenBy) => {
  const offered = roles.filter(role => seen[role]![path]!.buttons.some(button => pattern.test(button)))
  expect(offered.toSorted()).toEqual(seenBy.toSorted())
})
