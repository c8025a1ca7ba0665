// Every page while the gateway is away, and after it has come back: the page says so, keeps what it showed and what was
// written, and then reads everything again.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page, Request } from 'playwright-core'
import type { ConsoleBuild } from '../../scripts/build-console.ts'
import { intercept, untilReady, Visitor } from './support/browser.ts'
import type { Line } from './support/line.ts'
import { openLine } from './support/line.ts'
import { pageAddresses } from './support/pages.ts'
import type { SeededSite } from './support/seed.ts'
import { startSeededSite } from './support/seed.ts'

let site: SeededSite
let visitor: Visitor
let line: Line

beforeAll(async () => {
  // A page shows one more figure after the first audit, which would come in the middle of the test.
  const seeded = await startSeededSite({ callsMax: 1, env: { WEIR_AUDIT_SECONDS: '0' } })
  line = await openLine(seeded.harness.url)
  // The browser knows the gateway by the address of the line.
  site = { ...seeded, harness: { ...seeded.harness, url: line.url } }
  visitor = await Visitor.open(site)
})
afterAll(async () => {
  await visitor.close()
  await line.cut()
  await site.harness.stop()
})

/** Several viewers look at pages at the same time, because a page asks only every three seconds whether the gateway is back. */
const viewers = [
  { as: 'owner', language: 'en' },
  { as: 'admin', language: 'en' },
  { as: 'support', language: 'en' },
  { as: 'owner', language: 'zh' },
  { as: 'admin', language: 'zh' },
  { as: 'support', language: 'zh' },
] as const

const built = JSON.parse(
  readFileSync(join(import.meta.dir, '..', '..', 'dist', 'console', 'build.json'), 'utf8'),
) as ConsoleBuild

/** The file of a module that is loaded later. */
const fileOf = (source: string): string => Object.keys(built.files).find(name => built.files[name]!.source === source)!

const AWAY = {
  en: 'The gateway cannot be reached.',
  zh: '无法连接网关',
} as const

/** All meet at a point before any goes on. Who has failed before is there, too. */
function meeting(count: number, then: () => Promise<void>): (who: string) => Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const arrived = new Set<string>()
  return who => {
    if (!arrived.has(who) && arrived.add(who).size === count) then().then(resolve, reject)
    return promise
  }
}

interface Shown {
  readonly heading: string
  readonly rows: number
  readonly alerts: number
}

const read = (page: Page): Promise<Shown> =>
  page.evaluate<Shown>(`({
    heading: document.querySelector('main h1').textContent,
    rows: document.querySelectorAll('main [data-row], main tr, main dd').length,
    alerts: document.querySelectorAll('main [role=alert]').length,
  })`)

/** As if the viewer came back to the tab after a minute: the page reads again what it shows. */
const comeBack = (page: Page): Promise<void> =>
  page.evaluate<void>(`(() => {
    const now = Date.now
    Date.now = () => now() + 60_000
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))
  })()`)

/** A page that has nothing to read notices by a search. */
async function search(page: Page, text: string): Promise<void> {
  await page.keyboard.press('ControlOrMeta+k')
  const ended = new Promise<void>(resolve => {
    const note = (request: Request): void => {
      if (new URL(request.url()).pathname === '/api/web/search') resolve()
    }
    page.on('requestfinished', note)
    page.on('requestfailed', note)
  })
  await page.locator('dialog[open] input').fill(text)
  await ended
  await page.keyboard.press('Escape')
  await page.locator('dialog[open]').waitFor({ state: 'detached' })
}

const FIELDS = 'main form :is(textarea, input:is(:not([type]), [type=text], [type=url], [type=email])):enabled:visible'
const WRITTEN = 'written while away'

const paths = Object.keys(pageAddresses)
const rounds = Array.from({ length: Math.ceil(paths.length / viewers.length) }, (_, at) =>
  paths.slice(at * viewers.length, (at + 1) * viewers.length),
)

interface Outage {
  cut(who: string): Promise<void>
  mend(who: string): Promise<void>
}

/** What is wrong with a page during the outage and after it, in words. */
async function survive(path: string, viewer: (typeof viewers)[number], { cut, mend }: Outage): Promise<string[]> {
  const found: string[] = []
  const expectSame = (what: string, before: unknown, after: unknown): void => {
    if (!Bun.deepEquals(before, after)) found.push(`${what}: ${JSON.stringify(before)}, then ${JSON.stringify(after)}`)
  }
  async function act(page: Page): Promise<void> {
    const asked = new Set<string>()
    page.on('request', request => asked.add(new URL(request.url()).pathname))
    const before = await read(page)
    const field = page.locator(FIELDS).first()
    const hasField = (await field.count()) > 0
    const banner = page.getByText(AWAY[viewer.language]).first()
    // The box of the search is loaded when it is first opened, or a moment after the page.
    await search(page, 'river')
    asked.clear()
    await cut(path)
    await comeBack(page)
    await search(page, 'stream')
    await banner.waitFor()
    if (hasField) await field.fill(WRITTEN)
    expectSame('while it was away', before, await read(page))
    const unanswered = [...asked].filter(name => name.startsWith('/api/') && name !== '/api/web/search')
    asked.clear()
    await mend(path)
    await banner.waitFor({ state: 'detached' })
    while (unanswered.some(name => !asked.has(name))) await page.evaluate('weirTexts.settled()')
    await untilReady(page)
    expectSame('after it came back', before, await read(page))
    if (hasField) expectSame('what was written', WRITTEN, await field.inputValue())
  }
  const options = { ...viewer, axe: false, failing: [/^net::ERR_/], act }
  const { problems } = await visitor.look(pageAddresses[path]!(site), options)
  return [...problems, ...found].map(problem => `${path}: ${problem}`)
}

test.each(rounds.map(round => [round.join(' '), round] as const))('%s', async (_, round) => {
  const outage: Outage = {
    cut: meeting(round.length, () => line.cut()),
    mend: meeting(round.length, () => line.mend()),
  }
  const wrong = await Promise.all(
    round.map((path, at) =>
      survive(path, viewers[at]!, outage)
        .catch(error => [`${path}: ${error}`])
        .finally(() => {
          void outage.cut(path)
          void outage.mend(path)
        }),
    ),
  )
  await line.mend()
  expect(wrong.flat()).toEqual([])
})

test('a part that cannot be loaded leaves the page and what is written there', async () => {
  const { problems } = await visitor.look('/settings', {
    axe: false,
    failing: [/^net::ERR_FAILED/],
    async act(page) {
      await intercept(page, `**/console/${fileOf('src/shell/palette.tsx')}`, route => route.abort())
      await page.reload()
      await untilReady(page)
      const field = page.locator(FIELDS).first()
      await field.fill(WRITTEN)
      // The message goes as soon as the gateway is reached again.
      await intercept(page, '**/health/live', route => route.abort())
      await page.keyboard.press('ControlOrMeta+k')
      await page.getByText(AWAY.en).waitFor()
      expect(await field.inputValue()).toBe(WRITTEN)
      await page.unrouteAll({ behavior: 'wait' })
    },
  })
  // React writes what it has caught.
  expect(problems.filter(problem => !problem.includes('dynamically imported module'))).toEqual([])
})
