// Which queries the commands send, and how they parse their input.

import { expect, test } from 'bun:test'
import { idAtMs, textId } from '../../base/ids.ts'
import type { BudgetView } from '../../store/ledger/books-reader.ts'
import { periodOf } from '../../store/ledger/budgets.ts'
import type { RecordFilter } from '../../store/records/record-search.ts'
import type { OperatorParts } from '../command.ts'
import type { ManagementParts } from '../management-parts.ts'
import { accountCommands } from './accounts.ts'
import { recordCommands } from './records.ts'

const DAY_MS = 86_400_000
const dayMs = Date.UTC(2026, 5, 1)

function filterOf(input: Record<string, unknown>): Promise<RecordFilter> {
  const asked = Promise.withResolvers<RecordFilter>()
  const ask = async (_: string, { filter }: { filter: RecordFilter }) => {
    asked.resolve(filter)
    return { rows: [], next: null }
  }
  recordCommands({ queryWorker: { query: ask } } as unknown as OperatorParts).records!(input).catch(asked.reject)
  return asked.promise
}

test('a day lasts from its midnight to the next, on every page', async () => {
  const [from, end] = [idAtMs(dayMs), idAtMs(dayMs + DAY_MS)]
  expect(await filterOf({ day: '2026-06-01' })).toMatchObject({ from, before: end })
  expect(await filterOf({ day: '2026-06-01', before: textId('req', end + 5) })).toMatchObject({ from, before: end })
  expect(await filterOf({ day: '2026-06-01', before: textId('req', end - 5) })).toMatchObject({ from, before: end - 5 })
  expect(await filterOf({ before: textId('req', end) })).toMatchObject({ from: undefined, before: end })
})

test('a budget whose period is over is shown as unspent', async () => {
  const id = 5_000
  const row = { scope_id: BigInt(id), span: 'day', cap: 9_000_000_000n, spent: 4_000_000_000n, held: 1_000_000_000n }
  const books = {
    account: () => ({ id: BigInt(id) }),
    key: () => undefined,
    budgets: () => [{ ...row, period: periodOf('day', dayMs) } as BudgetView],
  }
  const shownAt = async (nowMs: number) => {
    const commands = accountCommands({ books, dateMs: () => nowMs } as unknown as ManagementParts)
    return (await commands['budgets-show']!({ scope: textId('acc', id) })).budgets
  }
  const shown = { of: textId('acc', id), span: 'day', cap: '9.00', held: '1.00' }
  expect(await shownAt(dayMs + DAY_MS - 1)).toEqual([{ ...shown, spent: '4.00', left: '4.00' }])
  expect(await shownAt(dayMs + DAY_MS)).toEqual([{ ...shown, spent: '0.00', left: '8.00' }])
})
