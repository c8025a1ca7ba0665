// The columns of a table can be made wider and narrower, by pointer and by keyboard, and stay so in this browser.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Locator, Page } from 'playwright-core'
import type { Visitor } from './support/browser.ts'
import { openSite, untilReady, untilTrue } from './support/browser.ts'

let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ visitor, close } = await openSite({ callsMax: 30 }))
})
afterAll(() => close())

/** The calls of the seed are older than a day. */
const RECORDS = '/records?range=7d'

const headOf = (page: Page, title: string): Locator => page.getByRole('columnheader', { name: title, exact: true })
const handleOf = (page: Page, title: string): Locator => headOf(page, title).getByRole('separator')
const widthOf = async (page: Page, title: string): Promise<number> =>
  Math.round((await headOf(page, title).boundingBox())!.width)

/** The width that a screen reader is told: it follows the column, a frame later. */
async function untilToldWidth(page: Page, title: string): Promise<void> {
  await untilTrue(
    page,
    `(() => {
      const handle = document.querySelector('th[aria-label="${title}"] [role=separator]')
      return Number(handle.getAttribute('aria-valuenow')) === Math.round(handle.closest('th').getBoundingClientRect().width)
    })()`,
  )
}

/** Pulls the edge of a column to the side, in many small steps. `between` is done while it is held. */
async function pull(page: Page, title: string, px: number, between?: () => Promise<void>): Promise<void> {
  const box = (await handleOf(page, title).boundingBox())!
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
  await page.mouse.move(x, y)
  await page.mouse.down()
  await page.mouse.move(x + px / 4, y, { steps: 2 })
  await between?.()
  await page.mouse.move(x + px, y, { steps: 10 })
}

const storedWidths = (page: Page): Promise<string | null> =>
  page.evaluate(`localStorage.getItem('weir-widths-records')`)

test('a column is pulled wider, and is as wide after the page was loaded again', async () => {
  await visitor.visit(RECORDS, {
    async act(page) {
      const before = await widthOf(page, 'Model')
      await pull(page, 'Model', 120)
      await page.mouse.up()
      expect(await widthOf(page, 'Model')).toBe(before + 120)
      await untilToldWidth(page, 'Model')
      await page.reload()
      await untilReady(page)
      expect(await widthOf(page, 'Model')).toBe(before + 120)
      // It is looked at with a column that cuts its title and its texts, and one that is far too wide.
      await pull(page, 'Account', -400)
      await page.mouse.up()
      expect(await widthOf(page, 'Account')).toBe(48)
      await pull(page, 'Model', 600)
      await page.mouse.up()
      expect(await widthOf(page, 'Model')).toBe(before + 720)
    },
    themes: ['light', 'dark'],
  })
})

test('while a column is pulled, no row is drawn again', async () => {
  await visitor.visit(RECORDS, {
    axe: false,
    async act(page) {
      await page.evaluate(`localStorage.removeItem('weir-widths-records')`)
      await page.reload()
      await untilReady(page)
      await pull(page, 'Outcome', 80, () =>
        page.evaluate(`{
          window.changes = 0
          new MutationObserver(records => { window.changes += records.length }).observe(
            document.querySelector('main tbody'), { subtree: true, childList: true, attributes: true, characterData: true })
        }`),
      )
      expect(await storedWidths(page)).not.toContain(String(await widthOf(page, 'Outcome')))
      expect(await page.evaluate<number>('window.changes')).toBe(0)
      await page.mouse.up()
      expect(await storedWidths(page)).toBe(JSON.stringify([['outcome', await widthOf(page, 'Outcome')]]))
    },
  })
})

test.each(['en', 'zh'] as const)(
  'the arrow keys move the edge, and Enter or a double click gives it back, %s',
  async language => {
    await visitor.visit(RECORDS, {
      language,
      as: 'support',
      async act(page) {
        const title = language === 'en' ? 'Model' : '模型'
        const handle = handleOf(page, title)
        expect(await handle.getAttribute('aria-label')).toBe(language === 'en' ? 'Width of Model' : '模型的宽度')
        const automatic = await widthOf(page, title)
        await untilToldWidth(page, title)
        await handle.focus()
        for (const key of ['ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowLeft']) await page.keyboard.press(key)
        expect(await widthOf(page, title)).toBe(automatic + 32)
        await untilToldWidth(page, title)
        await page.keyboard.press('Enter')
        expect(await widthOf(page, title)).toBe(automatic)
        await page.keyboard.press('ArrowLeft')
        expect(await widthOf(page, title)).toBe(automatic - 16)
        await handle.dblclick()
        expect(await widthOf(page, title)).toBe(automatic)
        expect(await storedWidths(page)).toBe('[]')
      },
    })
  },
)

test('the column menu has buttons that make a column wider and narrower, for those who cannot drag', async () => {
  await visitor.visit(RECORDS, {
    as: 'admin',
    async act(page) {
      await page.evaluate(`localStorage.removeItem('weir-widths-records')`)
      await page.reload()
      await untilReady(page)
      const before = await widthOf(page, 'Model')
      await page.getByRole('button', { name: 'Columns' }).click()
      for (const name of ['Wider: Model', 'Wider: Model', 'Narrower: Model'])
        await page.getByRole('button', { name }).click()
      expect(await widthOf(page, 'Model')).toBe(before + 48)
      expect(await storedWidths(page)).toContain('model')
    },
  })
})

test('a phone has no columns, and keeps the widths for a wide screen', async () => {
  await visitor.visit(RECORDS, {
    as: 'admin',
    async act(page) {
      await handleOf(page, 'Key').press('ArrowRight')
      const width = await widthOf(page, 'Key')
      await page.setViewportSize({ width: 390, height: 900 })
      await page.locator('main ul [data-row]').first().waitFor()
      expect(await page.getByRole('separator').count()).toBe(0)
      await page.setViewportSize({ width: 1280, height: 900 })
      await headOf(page, 'Key').waitFor()
      expect(await widthOf(page, 'Key')).toBe(width)
    },
    widths: [1280, 390],
  })
})

test.each([
  '{',
  'null',
  '7',
  '[["model"],7,["key","wide"],["model",1e999]]',
  '{"zone":"Mars/Olympus","language":"tlh","theme":7}',
])('a page is shown although the browser has stored %s', async text => {
  await visitor.visit(RECORDS, {
    axe: false,
    async act(page) {
      await page.evaluate(`for (const name of ['weir-widths-records', 'weir-columns-records', 'weir-preferences'])
        localStorage.setItem(name, ${JSON.stringify(text)})`)
      await page.reload()
      await untilReady(page)
      expect(await widthOf(page, 'Model')).toBeLessThan(600)
    },
  })
})

/** Texts in cells that are cut without an ellipsis. A part of a line that is a box of its own needs one of its own. */
const cutWithout = (page: Page): Promise<readonly string[]> =>
  page.evaluate<readonly string[]>(`(() => {
    const found = []
    for (const cell of document.querySelectorAll('main tbody td > div')) {
      const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)
      for (let text = walker.nextNode(); text !== null; text = walker.nextNode()) {
        const range = document.createRange()
        range.selectNode(text)
        if (range.getBoundingClientRect().right <= cell.getBoundingClientRect().right + 1) continue
        let box = text.parentElement
        while (/^(inline|contents)$/.test(getComputedStyle(box).display)) box = box.parentElement
        if (getComputedStyle(box).textOverflow !== 'ellipsis') found.push(text.data)
      }
    }
    return [...new Set(found)]
  })()`)

test.each([
  [RECORDS, 'records', []],
  ['/keys', 'keys', []],
  ['/channels', 'channels', []],
  // These addresses have open names, which look like texts with an empty place.
  ['/providers', 'providers', ['baseUrl']],
  ['/people', 'people', []],
])('what a narrow column cuts ends with an ellipsis, %s', async (address, name, hidden) => {
  await visitor.visit(address, {
    as: 'owner',
    language: 'zh',
    axe: false,
    async act(page) {
      await page.evaluate(`localStorage.setItem('weir-columns-${name}', '${JSON.stringify(hidden)}')`)
      await page.reload()
      await untilReady(page)
      await page.evaluate(`{
        const heads = [...document.querySelectorAll('main th[data-column]')]
        localStorage.setItem('weir-widths-${name}', JSON.stringify(heads.map(({ dataset }) => [dataset.column, 48])))
      }`)
      await page.reload()
      await untilReady(page)
      expect(await page.locator('main tbody td > div').count()).toBeGreaterThan(0)
      expect(await cutWithout(page)).toEqual([])
    },
  })
})
