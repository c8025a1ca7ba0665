// The statement of an account says whether its closed days have the hashes that were written at their ends: the browser
// computes them from the lines that it shows.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { parseTextId } from '../../src/base/ids.ts'
import { DAY_MS } from '../../src/base/time.ts'
import { openWriter } from '../../src/store/engine/database.ts'
import { sqliteSnapshots } from '../../src/store/engine/sqlite-steps.ts'
import { spoil } from '../ledger/sample-books.ts'
import { closeDays } from '../support/day-closer.ts'
import type { Visitor } from './support/browser.ts'
import { openSite } from './support/browser.ts'
import type { SeededSite } from './support/seed.ts'

let site: SeededSite
let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ site, visitor, close } = await openSite({ callsMax: 1 }))
})
afterAll(() => close())

const AGREES = /The lines of \d closed days? have the hash/
const DIFFERS = /are not those that were hashed at the end of the day/

/** Runs on the database of the site beside its gateway. */
function withDatabase<T>(work: (db: ReturnType<typeof openWriter>) => T): T {
  const db = openWriter(join(site.harness.folder, 'weir.db'))
  try {
    return work(db)
  } finally {
    db.close()
  }
}

test('the browser agrees with the hashes of closed days, until a line of such a day is changed', async () => {
  await site.harness.idle()
  const account = parseTextId('acc', site.ids.account)!
  const db = openWriter(join(site.harness.folder, 'weir.db'))
  // The ledger has a clock of its own: all transfers of the site were made today. Two of the account are made older.
  const first = (count: number) =>
    `SELECT seq FROM transfer WHERE ${account} IN (debit, credit) ORDER BY seq LIMIT ${count}`
  spoil(db, `UPDATE transfer SET made_ms = made_ms - ${3 * DAY_MS} WHERE seq IN (${first(3)})`)
  await closeDays({ run: sqliteSnapshots(db), nowMs: Date.now() })
  db.close()

  await visitor.visit('/funds?tab=statement', {
    as: 'manager',
    widths: [1280, 390],
    act: async page => await page.getByText(AGREES).waitFor(),
  })
  await visitor.visit('/funds?tab=statement', {
    as: 'manager',
    language: 'zh',
    axe: false,
    act: async page => await page.getByText('个已结束日期的各行').waitFor(),
  })

  withDatabase(open => spoil(open, `UPDATE transfer SET amount = amount + 1 WHERE seq = (${first(1)})`))
  await visitor.visit('/funds?tab=statement', {
    as: 'manager',
    axe: false,
    async act(page) {
      await page.getByText(DIFFERS).waitFor()
      expect(await page.getByText(AGREES).count()).toBe(0)
    },
  })

  // The audit finds the same, and says so in the language of the viewer.
  await site.harness.weir('audit')
  for (const path of ['/ledger', '/system']) {
    await visitor.visit(path, {
      language: 'zh',
      axe: false,
      widths: [1280, 390],
      act: async page => await page.getByText('的转账与当日结束时计算哈希的转账不同').first().waitFor(),
    })
  }
})
