// The chart of the page Usage has the days of the viewer's time zone, where the gateway can make them; else those of UTC.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasWholeHours } from '../../console/src/parts/zoned-time.ts'
import { DAY_MS } from '../../src/base/time.ts'
import { daysOfZone } from '../../src/management/services/zone-days.ts'
import type { Visitor } from './support/browser.ts'
import { openSite } from './support/browser.ts'

test('the console knows which zones the gateway has days of', () => {
  const wrong: string[] = []
  for (const zone of Intl.supportedValuesOf('timeZone')) {
    // Clocks that are put forward by half an hour, as on Lord Howe Island, show whole hours in one of them.
    for (const month of [0, 6]) {
      const range = { fromMs: Date.UTC(2026, month), beforeMs: Date.UTC(2026, month) + DAY_MS }
      const isOffered = daysOfZone(zone, range).done === 'found'
      if (hasWholeHours(zone, range.fromMs, range.beforeMs) !== isOffered) wrong.push(`${zone} ${month}`)
    }
  }
  expect(wrong).toEqual([])
})

describe('the chart of the page Usage', () => {
  let visitor: Visitor
  let close: () => Promise<void>

  beforeAll(async () => {
    ;({ visitor, close } = await openSite({ callsMax: 20 }))
  })
  afterAll(() => close())

  const old = `/usage?from=${new Date(Date.now() - 200 * DAY_MS).toISOString()}`
  const inUtc = 'Days are days in UTC: for this time, the statistics have no days in'
  const views = [
    ['Asia/Kolkata', 'en', `${inUtc} UTC+5:30.`, '/usage'],
    ['Asia/Kolkata', 'zh', '按 UTC 的日期统计：此时段没有按 UTC+5:30 日期的统计数据。', '/usage'],
    ['Asia/Shanghai', 'en', 'Days are days in UTC+8.', '/usage'],
    ['Asia/Shanghai', 'en', `${inUtc} UTC+8.`, old],
    ['UTC', 'en', 'Days are days in UTC+0.', old],
  ] as const

  // A visit fails if a request of the page fails.
  test.each(views)('in %s, %s, says: %s', async (zone, language, note, path) => {
    const times: string[] = []
    const act = async (page: Page): Promise<void> => {
      await page.getByText(note, { exact: true }).waitFor()
      await page.getByRole('button', { name: language === 'zh' ? '表格' : 'As a table' }).click()
      times.push(...(await page.locator('figure tbody td:first-child').allTextContents()))
    }
    await visitor.visit(path, { as: 'manager', zone, language, axe: false, act })
    expect(times.length).toBeGreaterThan(5)
    // The day that has not ended says so.
    expect(times.filter(text => !/ 00:00( \(.+\))?$/.test(text))).toEqual([])
  })
})
