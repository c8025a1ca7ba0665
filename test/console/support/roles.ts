// What people of each role may see of the console, and whether a page shows it to them.

import type { Page } from 'playwright-core'
import type { Language, VisitOptions, Visitor } from './browser.ts'
import { pageAddresses } from './pages.ts'
import type { Role, SeededSite } from './seed.ts'
import { roles } from './seed.ts'

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
export const navigation: Readonly<Record<Role, readonly string[]>> = {
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

export interface Seen {
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

/** `forbidden` and `notThere` of console/src/words/…/states.ts, which only a browser can load. */
const wordsIn: Readonly<Record<Language, { readonly forbidden: string; readonly notThere: string }>> = {
  en: { forbidden: 'You may not see this', notThere: 'Not found' },
  zh: { forbidden: '您无权查看此内容', notThere: '未找到' },
}

export interface LookedAs {
  readonly seen: Seen
  /** What is wrong with the page for this role, in words. */
  readonly wrong: readonly string[]
  readonly requests: readonly string[]
}

/** Opens a page as somebody of this role, who may see it, may not, or for whom there is no such thing. */
export async function lookAs(
  { visitor, site }: { readonly visitor: Visitor; readonly site: SeededSite },
  as: Role,
  path: string,
  options: VisitOptions = {},
): Promise<LookedAs> {
  const isSeen = others[path]?.seenBy.includes(as) ?? navigation[as].includes(path)
  const isMissing = others[path]?.missingFor?.includes(as) ?? false
  const failing = isMissing ? [/^404 \/api\/web\//] : []
  const { page, problems, requests } = await visitor.look(pageAddresses[path]!(site), { ...options, as, failing })
  const seen = await read(page)
  const wrong = [...problems]
  const { forbidden, notThere } = wordsIn[options.language ?? 'en']
  const isForbidden = seen.heading === forbidden
  if (isForbidden === isSeen) wrong.push(isForbidden ? 'it may not be seen' : 'it may be seen')
  if (isForbidden && requests.length > 0) wrong.push(`it asks for ${requests}`)
  if (isMissing !== seen.alerts.some(text => text.startsWith(notThere))) {
    wrong.push(isMissing ? 'it does not say that there is no such thing' : 'it says that there is no such thing')
  }
  return { seen, wrong, requests }
}
