// A model name that is set while another process sets another one.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { TestBooks } from '../../../test/support/books.ts'
import { openTestBooks } from '../../../test/support/books.ts'
import { Seal } from '../../base/secrets/seal.ts'
import { buildSecretRing } from '../../base/secrets/secret-ring.ts'
import { checkAliases } from '../../routing/model-aliases.ts'
import { bindReads } from '../../store/engine/reads.ts'
import { sqliteSnapshots } from '../../store/engine/sqlite-steps.ts'
import { LiveRules } from '../../store/rules/live-rules.ts'
import type { RouteRow } from '../../store/rules/rules.ts'
import { buildRulesReads } from '../../store/rules/rules-reader.ts'
import { setRoute } from './model-names.ts'

let books: TestBooks
let rules: LiveRules
beforeEach(() => {
  books = openTestBooks()
  const reader = bindReads(buildRulesReads(), sqliteSnapshots(books.db))
  const seal = new Seal(buildSecretRing('e'.repeat(32)))
  rules = new LiveRules({ reader, seal, onError() {} })
})
afterEach(() => books.close())

const author = { actor: 'ann' }
const route = (name: string, model: string): RouteRow => ({
  name,
  policy: 'balanced',
  members: [{ model, priority: 0, weight: 1 }],
})
const write = (row: RouteRow) => books.run.setRoute({ ...row, author: 'other process' })

/** Each write comes after one of another process, as long as there are any. */
function set(row: RouteRow, ...before: readonly RouteRow[]) {
  const catalogue = { providers: new Map([['p', { openModels: true }]]), channelsOf: () => [{}] }
  const others = [...before]
  const run = async (_name: string, input: RouteRow & { author: string; others: string }) => {
    const other = others.shift()
    if (other !== undefined) write(other)
    return books.run.setRoute(input)
  }
  const parts = { rules, catalogue: () => catalogue, writer: { run } }
  return setRoute(parts as unknown as Parameters<typeof setRoute>[0], author, row)
}

async function storedRoutes(): Promise<readonly RouteRow[]> {
  await rules.reload()
  return rules.current.routes
}

test('is checked again with the other one, so that both together can be used', async () => {
  for (const name of ['a', 'b']) write(route(name, 'p/x'))
  // Each of them is right, and together they are a circle, with which no gateway would start any more.
  const failed = await set(route('a', 'b'), route('b', 'a')).catch((fault: Error) => fault)
  expect(failed).toMatchObject({ code: 'field_invalid' })
  expect(() => checkAliases(rules.current.routes)).not.toThrow()
  expect(await storedRoutes()).toEqual([route('a', 'p/x'), route('b', 'a')])
})

test('is written if it is right with the other one, and is refused if others are changed again and again', async () => {
  await set(route('a', 'p/x'), route('b', 'p/y'))
  expect(await storedRoutes()).toEqual([route('a', 'p/x'), route('b', 'p/y')])
  const failed = await set(route('a', 'p/z'), route('c', 'p/1'), route('c', 'p/2'), route('c', 'p/3')).catch(
    (fault: Error) => fault,
  )
  expect(failed).toMatchObject({ code: 'version_stale' })
  expect(await storedRoutes()).toEqual([route('a', 'p/x'), route('b', 'p/y'), route('c', 'p/3')])
})
