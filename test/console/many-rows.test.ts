// The lists of calls with 100,000 rows and calls that end meanwhile: what a browser keeps of them is bounded, and rows stay
// where a reader looks at them. How long frames take is printed by scripts/proof/console-frames.ts.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import type { Visitor } from './support/browser.ts'
import { openSite } from './support/browser.ts'
import { heapMib, ManyRows, scrollThrough } from './support/many-rows.ts'
import { isWhole } from './support/whole.ts'

const MANY = 100_000
const BATCH = 10_000
/** Of the study; the console alone needs about ten. */
const HEAP_MIB_MAX = 80
const ROWS_MAX = 200
/** These tests read very much: they hang only after this time. */
const LONG_MS = 600_000

let visitor: Visitor
let rows: ManyRows
let close: () => Promise<void>

beforeAll(async () => {
  const opened = await openSite({ callsMax: 1 })
  ;({ visitor, close } = opened)
  rows = new ManyRows(opened.site)
})
afterAll(() => close())

const rowCount = (page: Page): Promise<number> => page.locator('[data-row]').count()

/** The note that says how many calls the page has. */
const keptCalls = async (page: Page): Promise<number> =>
  Number(/([\d,]+) calls? since/.exec(await page.locator('main').innerText())?.[1]?.replaceAll(',', ''))

test(
  'the live list keeps little of 100,000 calls',
  async () => {
    await visitor.visit('/live', {
      as: 'support',
      axe: false,
      async act(page) {
        await page.locator('main header .text-ok').waitFor()
        for (let written = 0; written < MANY; written += BATCH) {
          const last = rows.add(BATCH)
          await page.locator(`[data-row="${last}"]`).waitFor()
          expect(await rowCount(page)).toBeLessThan(ROWS_MAX)
        }
        expect(await keptCalls(page)).toBe(2_000)
        expect(await heapMib(page)).toBeLessThan(HEAP_MIB_MAX)
      },
    })
  },
  LONG_MS,
)

interface Place {
  readonly id: string
  readonly index: number
  readonly top: number
}

/** Where a row is: of this id, or the first one in the lower half of the window. */
const placeOf = (page: Page, id?: string): Promise<Place | null> =>
  page.evaluate<Place | null>(`(() => {
    const all = [...document.querySelectorAll('[data-row]')]
    const row = all.find(one => ${id === undefined ? 'one.getBoundingClientRect().top > innerHeight / 2' : `one.dataset.row === '${id}'`})
    if (row === undefined) return null
    return { id: row.dataset.row, index: Number(row.getAttribute('aria-rowindex') ?? row.getAttribute('aria-posinset')), top: row.getBoundingClientRect().top }
  })()`)

test.each([1280, 390])('rows that arrive do not move those that are read, %p pixels wide', async width => {
  await visitor.visit('/live', {
    as: 'support',
    axe: false,
    widths: [width],
    async act(page) {
      await page.locator('main header .text-ok').waitFor()
      const last = rows.add(1_000)
      await page.locator(`[data-row="${last}"]`).waitFor()
      await page.evaluate('scrollTo(0, 9000)')
      await page.evaluate('weirTexts.settled()')
      const before = (await placeOf(page))!
      rows.add(7)
      let after = before
      while (after.index !== before.index + 7) {
        await page.evaluate('weirTexts.settled()')
        after = (await placeOf(page, before.id))!
      }
      expect(Math.abs(after.top - before.top)).toBeLessThanOrEqual(1)
      expect(await rowCount(page)).toBeLessThan(ROWS_MAX)
    },
  })
})

/** Sets the clock of the page forward by a minute. */
const later = (page: Page): Promise<void> =>
  page.evaluate<void>('{ const now = Date.now; Date.now = () => now() + 60_000 }')

test('a list does not begin anew with each minute, while somebody scrolls in it', async () => {
  const asked: URLSearchParams[] = []
  await visitor.visit('/records', {
    axe: false,
    async act(page) {
      page.on('request', request => {
        const { pathname, searchParams } = new URL(request.url())
        if (pathname === '/api/web/records') asked.push(searchParams)
      })
      await later(page)
      while (asked.length < 5) {
        await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
        await page.evaluate('weirTexts.settled()')
      }
    },
  })
  expect(asked.filter(one => !one.has('after'))).toEqual([])
})

/** The calls of a millisecond. */
const SOME = 8_192
const timeText = (ms: number): string => new Date(ms).toISOString()
const someRecords = (): string => `/records?from=${timeText(rows.firstMs - 1_000)}&before=${timeText(rows.firstMs + 1)}`

test.each([
  isWhole ? [1280, MANY, () => '/records'] : [1280, SOME, someRecords],
  // A phone draws other rows; it needs no more of them to show it.
  [390, SOME, someRecords],
] as const)(
  'a page of %p pixels scrolls through %p records',
  async (width, count, address) => {
    await visitor.visit(address(), {
      as: 'owner',
      axe: false,
      widths: [width],
      async act(page) {
        let asked = 0
        page.on('request', request => {
          if (new URL(request.url()).pathname === '/api/web/records') asked++
        })
        // While somebody scrolls, a minute passes.
        await later(page)
        const { rowsMost } = await scrollThrough(page)
        expect(rowsMost).toBeLessThan(ROWS_MAX)
        // The first page is small, the others have 200 rows. All of them were read, and none twice.
        expect(asked).toBeGreaterThanOrEqual(Math.floor(count / 200))
        expect(asked).toBeLessThan(count / 200 + 20)
        expect(await heapMib(page)).toBeLessThan(HEAP_MIB_MAX)
        // Who comes back to the window later does not read all of them again.
        asked = 0
        await later(page)
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))")
        // Pages would be asked for one after the other, beside these.
        await page.evaluate("(async () => { for (let at = 0; at < 50; at++) await fetch('/health/live') })()")
        expect(asked).toBe(0)
      },
    })
  },
  LONG_MS,
)
