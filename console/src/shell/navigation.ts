// The pages in the navigation, by group. A page that the viewer's roles do not reach is not shown.

import type { Roles } from '../api/rights.ts'
import type { IconName } from '../parts/icons.tsx'
import type { shellWords } from '../words/en/shell.ts'
import type { PlainKey } from '../words/words.ts'

type WordName = PlainKey<typeof shellWords>

export interface NavigationPage {
  readonly to: string
  readonly word: WordName
  readonly icon: IconName
  /** Null: everybody who is signed in. */
  readonly roles: Roles | null
  /** The letter that goes there after `g`. */
  readonly letter?: string
}

export interface NavigationGroup {
  readonly word: WordName
  readonly pages: readonly NavigationPage[]
}

const viewer: Roles = { site: 'support', account: 'viewer' }
const developer: Roles = { site: 'admin', account: 'developer' }
const manager: Roles = { site: 'support', account: 'manager' }
const staff: Roles = { site: 'support' }

/** Pages that are not in the navigation and need other roles than the page above them. */
const others: Readonly<Record<string, Roles | null>> = {
  '/accounts/': viewer,
  '/records/deletions': manager,
  '/prices/backtest': staff,
}

/** What a page needs, by its path. */
export function rolesFor(path: string): Roles | null {
  const special = Object.keys(others).find(prefix => path.startsWith(prefix))
  if (special !== undefined) return others[special]!
  const page = navigation
    .flatMap(group => group.pages)
    .find(({ to }) => path === to || (to !== '/' && path.startsWith(`${to}/`)))
  return page?.roles ?? null
}

export const navigation: readonly NavigationGroup[] = [
  {
    word: 'use',
    pages: [
      { to: '/', word: 'overview', icon: 'overview', roles: viewer, letter: 'o' },
      { to: '/keys', word: 'keys', icon: 'key', roles: viewer, letter: 'k' },
      { to: '/playground', word: 'playground', icon: 'playground', roles: developer, letter: 'p' },
      { to: '/models', word: 'models', icon: 'models', roles: null, letter: 'm' },
    ],
  },
  {
    word: 'watch',
    pages: [
      { to: '/live', word: 'live', icon: 'live', roles: viewer, letter: 'l' },
      { to: '/records', word: 'records', icon: 'records', roles: viewer, letter: 'r' },
      { to: '/usage', word: 'usage', icon: 'usage', roles: viewer, letter: 'u' },
      { to: '/losses', word: 'losses', icon: 'filter', roles: viewer },
    ],
  },
  {
    word: 'money',
    pages: [
      { to: '/funds', word: 'funds', icon: 'funds', roles: viewer, letter: 'f' },
      { to: '/prices', word: 'prices', icon: 'prices', roles: null },
      { to: '/codes', word: 'codes', icon: 'codes', roles: staff },
      { to: '/ledger', word: 'ledger', icon: 'ledger', roles: staff },
    ],
  },
  {
    word: 'routing',
    pages: [
      { to: '/channels', word: 'channels', icon: 'channels', roles: staff, letter: 'c' },
      { to: '/providers', word: 'providers', icon: 'providers', roles: staff },
      { to: '/routes', word: 'routes', icon: 'routes', roles: staff },
      { to: '/limits', word: 'limits', icon: 'limits', roles: staff },
      { to: '/tiers', word: 'tiers', icon: 'tiers', roles: null },
    ],
  },
  {
    word: 'peopleGroup',
    pages: [
      { to: '/account', word: 'account', icon: 'account', roles: { account: 'viewer' }, letter: 'a' },
      { to: '/accounts', word: 'accounts', icon: 'accounts', roles: staff },
      { to: '/people', word: 'people', icon: 'people', roles: staff },
    ],
  },
  {
    word: 'site',
    pages: [
      { to: '/webhooks', word: 'webhooks', icon: 'webhooks', roles: manager },
      { to: '/tokens', word: 'tokens', icon: 'key', roles: manager },
      { to: '/audit', word: 'audit', icon: 'audit', roles: manager },
      { to: '/settings', word: 'settings', icon: 'settings', roles: staff },
      { to: '/system', word: 'system', icon: 'system', roles: staff },
    ],
  },
]
