// Steps on SQLite; and that no step is left out: a step that is called without `yield*` does nothing, and the compiler
// does not notice it.

import { Database } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from './database.ts'
import { sqliteSteps } from './sqlite-steps.ts'
import type { Steps } from './steps.ts'
import { query, registeredTexts } from './steps.ts'

const db = new Database(':memory:', { strict: true, safeIntegers: true })
migrate(db)
afterAll(() => db.close())

const insert = query('INSERT INTO limit_debt (name, paid_ms, noted_ms) VALUES (?1, ?2, 0)')
const find = query<{ paid_ms: bigint }>('SELECT paid_ms FROM limit_debt WHERE name = ?1')
const list = query<{ name: string }>({
  sqlite: 'SELECT name FROM limit_debt WHERE paid_ms >= ?1 ORDER BY name',
  postgres: 'SELECT name FROM limit_debt WHERE paid_ms >= ?1 ORDER BY name COLLATE "C"',
})

test('an operation gets the results of its statements', () => {
  function* paidMs(name: string): Steps<number | undefined> {
    const row = yield* find.get(name)
    return row === undefined ? undefined : Number(row.paid_ms)
  }
  function* operation(): Steps<unknown> {
    const inserted = [yield* insert.run('a', 6), yield* insert.run('b', 4)]
    return [inserted, yield* paidMs('a'), yield* paidMs('c'), yield* list.all(5)]
  }
  expect(sqliteSteps(db)(operation())).toEqual([[1, 1], 6, undefined, [{ name: 'a' }]])
})

test('an error of a statement ends the operation', () => {
  function* operation(): Steps<string> {
    yield* insert.run('d', 6)
    yield* insert.run('d', 6)
    return 'not reached'
  }
  expect(() => sqliteSteps(db)(operation())).toThrow('UNIQUE')
})

test('a text is registered once, with parameters of each database', () => {
  query('SELECT paid_ms FROM limit_debt WHERE name = ?1')
  const texts = registeredTexts().filter(({ sqlite }) => /^SELECT (paid_ms|name) FROM limit_debt WHERE/.test(sqlite))
  expect(texts.map(({ postgres }) => postgres)).toEqual([
    'SELECT paid_ms FROM limit_debt WHERE name = $1',
    'SELECT name FROM limit_debt WHERE paid_ms >= $1 ORDER BY name COLLATE "C"',
  ])
})

const store = join(import.meta.dir, '..')
/** These define and run steps. */
const engine = ['engine/steps.ts', 'engine/operation-runner.ts']
const sources = readdirSync(store, { recursive: true, encoding: 'utf8' })
  .filter(path => path.endsWith('.ts') && !path.endsWith('.test.ts') && !engine.includes(path))
  .map(path => ({ path, text: readFileSync(join(store, path), 'utf8') }))

/** Functions and methods that return steps. */
const STEPS = /function\* (\w+)[<(]|const (\w+) = \([^=]*\): Steps<|^ {2,4}\*#?(\w+)\(/gm
/** Where the type checker does not notice that steps are not run: as a statement, and as a condition. */
const LEFT_OUT = /(?:^ *(?:await |void )?|(?:if|while) \(!?|[!&|] ?)(?:this\.#|[\w.]+\.)?$/
/** A function, a method or its type. */
const DEFINITION = /^ *\*?#?\w+\(.*\)(?:: .*| \{)$/

/** Calls in a file that create steps and do not use them. */
function unusedSteps(text: string, shared: ReadonlySet<string>): readonly string[] {
  const own = Array.from(text.matchAll(STEPS), ([, a, b, c]) => (a ?? b ?? c)!)
  const imported = Array.from(text.matchAll(/import \{([^}]*)\} from/g), ([, names]) => names!.split(','))
  const names = [...own, ...imported.flat().map(name => name.trim())].filter(name => shared.has(name))
  const queries = Array.from(text.matchAll(/const (\w+) = (?:query|postgresQuery)\b/g), ([, name]) => name!)
  const calls = [...new Set(names)].map(name => String.raw`\b${name}\(`)
  const asked = queries.map(name => String.raw`\b${name}\.(?:get|all|run)\(`)
  if (calls.length + asked.length === 0) return []
  const found = [...text.matchAll(new RegExp([...calls, ...asked].join('|'), 'g'))]
  return found.flatMap(({ index, 0: call }) => {
    const lineStart = text.lastIndexOf('\n', index) + 1
    const [line, before] = [text.slice(lineStart).split('\n', 1)[0]!, text.slice(lineStart, index)]
    return LEFT_OUT.test(before) && !DEFINITION.test(line) ? [`${before.trim()}${call}`] : []
  })
}

const shared = new Set(sources.flatMap(({ text }) => Array.from(text.matchAll(STEPS), ([, a, b, c]) => (a ?? b ?? c)!)))

test('no step is created and left out', () => {
  expect(shared.size).toBeGreaterThan(100)
  const unused = sources.flatMap(({ path, text }) => unusedSteps(text, shared).map(call => `${path}: ${call}`))
  expect(unused).toEqual([])
})

test('a step that is left out is found', () => {
  const text = `const find = query('SELECT 1')\nfunction* isKnown(): Steps<boolean> {\n  find.get()\n  return yield* find.get()\n}
    if (!isKnown()) return\n    if (!(yield* isKnown())) return\n`
  expect(unusedSteps(text, new Set(['isKnown']))).toEqual(['find.get(', 'if (!isKnown('])
})
