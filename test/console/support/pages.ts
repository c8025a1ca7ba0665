// The pages of the console, by the paths of their routes.

import type { SeededSite } from './seed.ts'

/** Pages whose path is their address. */
const plain = [
  '/',
  '/keys',
  '/playground',
  '/models',
  '/live',
  '/records',
  '/records/deletions',
  '/usage',
  '/losses',
  '/funds',
  '/account',
  '/me',
  '/accounts',
  '/people',
  '/channels',
  '/providers',
  '/routes',
  '/limits',
  '/tiers',
  '/prices',
  '/prices/backtest',
  '/codes',
  '/ledger',
  '/audit',
  '/webhooks',
  '/tokens',
  '/settings',
  '/system',
]

/** By the path of the route: the address of an example. */
export const pageAddresses: Readonly<Record<string, (site: SeededSite) => string>> = {
  ...Object.fromEntries(plain.map(path => [path, () => path])),
  '/keys/$key': ({ ids }) => `/keys/${ids.key}`,
  '/models/$': () => '/models/openai/gpt-4o-mini',
  '/records/$call': ({ ids }) => `/records/${ids.calls.lossy}`,
  '/accounts/$id': ({ ids }) => `/accounts/${ids.account}`,
  '/people/$id': ({ people }) => `/people/${people.viewer.id}`,
  '/channels/$id': ({ ids }) => `/channels/${encodeURIComponent(ids.failingChannel)}`,
  '/providers/$id': () => '/providers/openai',
  '/routes/$name': () => '/routes/steady',
  '/prices/$': () => '/prices/openai/gpt-4o-mini',
  '/webhooks/$id': ({ ids }) => `/webhooks/${ids.webhook}`,
}

/** Pages for people who are not signed in. */
export const openPages: Readonly<Record<string, string>> = {
  '/sign-in': '/sign-in',
  '/set-up': '/set-up',
  '/register': '/register',
  '/join': '/join',
  '/password': '/password',
  '/pricing': '/pricing',
}

/** How many requests to the management API opening a page may send. */
export const REQUESTS_MAX = 4
