// Every page of the console in a real browser: in both languages, on a screen and a phone, light and dark. What
// people of other roles see is in roles.test.ts.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Visitor } from './support/browser.ts'
import { openSite } from './support/browser.ts'
import { openPages, pageAddresses, REQUESTS_MAX } from './support/pages.ts'
import type { SeededSite } from './support/seed.ts'

let site: SeededSite
let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ site, visitor, close } = await openSite())
})
afterAll(() => close())

test('every route has a row here', () => {
  const router = readFileSync(join(import.meta.dir, '..', '..', 'console', 'src', 'router.tsx'), 'utf8')
  const routes = Array.from(router.matchAll(/\bpath: '([^']+)'/g), ([, path]) =>
    path === '/' ? path : path!.replace(/\/$/, ''),
  )
  expect([...Object.keys(pageAddresses), ...Object.keys(openPages)].sort()).toEqual([...new Set(routes)].sort())
})

const states = { widths: [1280, 390], themes: ['light', 'dark'] } as const
/** Longer words may need more room, but colours are the same in both languages. */
const inChinese = { ...states, themes: ['light'], axe: false, language: 'zh' } as const
/** Each theme and each width once. */
const axe = (width: number, theme: string): boolean => (width === 1280) === (theme === 'light')

describe.each(Object.keys(pageAddresses))('%s', path => {
  test('as the owner, in both languages', async () => {
    const address = pageAddresses[path]!(site)
    const [english, chinese] = await Promise.all([
      visitor.look(address, { ...states, axe }),
      visitor.look(address, { ...inChinese, moves: true }),
    ])
    expect([english.problems, chinese.problems]).toEqual([[], []])
    expect(english.requests.slice(REQUESTS_MAX)).toEqual([])
  })
})

test.each(Object.entries(openPages))('%s, for people who are not signed in', async (_path, address) => {
  const english = await visitor.look(address, { ...states, axe, as: 'nobody' })
  const chinese = await visitor.look(address, { ...inChinese, as: 'nobody' })
  expect([english.problems, chinese.problems]).toEqual([[], []])
})

// An account that may use few models has the longest lists of those that it may not use.
test('no page sends more requests for an account that staff have chosen', async () => {
  const { account } = site.ids
  await site.harness.manage('POST', '/api/web/channels', { provider: 'openrouter', credentials: ['sk-or-0123456789'] })
  await site.harness.manage('PATCH', `/api/web/accounts/${account}`, { allows: ['openai/gpt-4o', 'demo/*'] })
  const many: string[] = []
  for (const path of Object.keys(pageAddresses)) {
    const address = pageAddresses[path]!(site)
    const { problems, requests } = await visitor.look(`${address}?account=${account}`, { as: 'support', axe: false })
    many.push(...problems, ...(requests.length > REQUESTS_MAX ? [`${path}: ${requests}`] : []))
  }
  expect(many).toEqual([])
})
