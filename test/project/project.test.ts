// Rules about the project's files that no linter checks: documents that name code, secrets, SQL, stages.

import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { layerProblems, readSources } from '../../scripts/check-layers.ts'
import { errorRows } from '../../src/base/errors.ts'
import { stageOrder } from '../../src/pipeline/pipeline.ts'

const root = join(import.meta.dir, '../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const sources = readSources()

/** The text without comments: a rule about code does not judge comments. */
const codeOf = (text: string): string => text.replace(/\/\*[\s\S]*?\*\/|(^|\s)\/\/[^\n]*/g, '$1')

/** `file:line` for each line of code that matches the pattern. */
function linesWith(pattern: RegExp, files: Iterable<readonly [string, string]>): readonly string[] {
  return Array.from(files).flatMap(([path, text]) =>
    text.split('\n').flatMap((line, at) => (pattern.test(codeOf(line)) ? [`${path}:${at + 1}`] : [])),
  )
}

test('every error code has a row in docs/reference/errors.md, and is used', () => {
  const documented = Array.from(read('docs/reference/errors.md').matchAll(/^\| `([^`]+)` \|/gm), ([, code]) => code!)
  expect(documented.sort()).toEqual(Object.keys(errorRows).sort())
  const code = Array.from(sources)
    .filter(([path]) => path !== 'src/base/errors.ts')
    .map(([, text]) => text)
    .join('\n')
  expect(Object.keys(errorRows).filter(name => !code.includes(`'${name}'`))).toEqual([])
})

test('the stage files are the stages of the pipeline, in their order, and the pipeline imports each', () => {
  const files = readdirSync(join(root, 'src/pipeline')).flatMap(name => /^(\d\d-[a-z-]+)\.ts$/.exec(name)?.[1] ?? [])
  expect([...stageOrder] as string[]).toEqual(files.sort())
})

const proofs = { Caller: '10-authenticate', Permit: '20-limit-rate', Route: '30-route', Hold: '35-hold' } as const

for (const [proof, stage] of Object.entries(proofs)) {
  test(`only ${stage} makes a ${proof}`, () => {
    const casts = Array.from(sources).filter(([, text]) => new RegExp(`\\bas ${proof}\\b(?! *[,}])`).test(codeOf(text)))
    const others = casts.map(([path]) => path).filter(path => path !== `src/pipeline/${stage}.ts`)
    expect(casts.length).toBeGreaterThan(0)
    expect(others).toEqual([])
  })
}

test('src names no provider: it asks what a provider can do, never who it is', () => {
  const files = readdirSync(join(root, 'providers')).filter(name => name.endsWith('.json'))
  const ids = files.map(name => (JSON.parse(read(`providers/${name}`)) as { id: string }).id)
  const dialects = readdirSync(join(root, 'src/protocols'))
  const named = ids.filter(id => !dialects.includes(id))
  // The settings of other programs have words of their own, some of which are also names of providers here.
  const own = Array.from(sources).filter(([path]) => path !== 'src/cli/programs/programs.ts')
  expect(linesWith(new RegExp(`(['"\`])(${named.join('|')})\\1`), own)).toEqual([])
})

/** Where a secret may be read, and why. */
const revealing: readonly (readonly [RegExp, string])[] = [
  [/^src\/upstreams\/signing\.ts$/, 'signs requests to a provider'],
  [/^src\/upstreams\/channels\.ts$/, 'names a credential by its fingerprint'],
  [/^src\/http\/client\/proxy\.ts$/, 'signs in to a proxy'],
  [/^src\/base\/secrets\//, 'derives the key that seals envelopes'],
  [/^src\/identity\//, 'checks keys, tokens and passwords'],
  [/^src\/cli\//, 'shows an operator the key that was just created'],
  [/^src\/main\.ts$/, 'passes secrets of the configuration to the parts'],
  [/^src\/store\//, 'opens connections with credentials'],
  [/^src\/pipeline\/route\/conversation-key\.ts$/, 'derives the secret of conversation ids from the pepper'],
  [/^src\/management\/config-file\/subjects\.ts$/, 'sends the secret that a configuration file refers to'],
]

test('a secret is read only in the places that use it', () => {
  const others = Array.from(sources).filter(([path]) => !revealing.some(([place]) => place.test(path)))
  expect(linesWith(/\.reveal\(/, others)).toEqual([])
})

test('no SQL text is built from values: values are bound as parameters', () => {
  // columns.ts builds statements from the names of columns. Other files may use its lists, the condition of a scope, and constants
  // in capitals.
  const makesStatements = 'src/store/tables/columns.ts'
  const store = Array.from(sources).filter(([path]) => path.startsWith('src/store/') && path !== makesStatements)
  const fixed = /\$\{(selectList\(|sqlList\(|auditList\(|scopeSql\(|[A-Z_]+\})/g
  const plain = store.map(([path, text]) => [path, text.replace(fixed, '')] as const)
  const built = /(\.(query|prepare|run|exec)|\b(query|postgresQuery))(<[^(`]*>)?\(\s*`[^`]*\$\{/
  expect(linesWith(built, plain)).toEqual([])
})

test('only src/store knows that the store is SQLite: SQL, its driver, its error codes and its files are in no other folder', () => {
  const others = Array.from(sources).filter(([path]) => !path.startsWith('src/store/'))
  const sql = /\b(SELECT\b.*\bFROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE (TABLE|INDEX|TRIGGER)|PRAGMA)\b/
  const engine = /bun:sqlite|\bSQLITE_|\.db(-wal|-shm)?\b['"`]/
  const connection =
    /import \{[^}]*\b(openReader|openWriter|migrate|copyDatabase)\b[^}]*\} from '[^']*store\/engine\/database\.ts'/
  for (const pattern of [sql, engine, connection]) expect(linesWith(pattern, others)).toEqual([])
})

const tests = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
  .filter(path => path.endsWith('.ts') && !path.startsWith('types/'))
  .map(path => [`test/${path}`, read(`test/${path}`)] as const)

test('tests open databases with openDatabase, which waits for the writer of a gateway', () => {
  const others = tests.filter(([path]) => path !== 'test/support/database.ts')
  expect(linesWith(/\bnew Database\((?!':memory:'|\))/, others)).toEqual([])
})

test('the type checker is not silenced, except where a test expects its errors', () => {
  const silenced = [...sources, ...tests].filter(([, text]) =>
    /^\s*(\/\/|\/\*)\s*@ts-(ignore|expect-error|nocheck)/m.test(text),
  )
  expect(silenced.map(([path]) => path)).toEqual([])
})

/** The entries of the drawing below `src/` in ARCHITECTURE.md, as paths; folders end in a slash. */
function drawnPaths(): readonly string[] {
  const tree = /^src\/[^\n]*\n([\s\S]*?)^(?:\S|```)/m.exec(read('ARCHITECTURE.md'))![1]!
  const parents: string[] = []
  return tree
    .split('\n')
    .filter(Boolean)
    .map(line => {
      const depth = line.search(/\S/) / 2
      parents[depth] = `${depth > 1 ? parents[depth - 1] : 'src/'}${line.trim().split(/\s/)[0]}`
      return parents[depth]
    })
}

test('no two exported types have the same name: a search for a type finds one', () => {
  const files = new Map<string, string[]>()
  for (const [path, text] of sources) {
    for (const [, name] of text.matchAll(/^export (?:abstract )?(?:interface|type|class) (\w+)/gm)) {
      files.set(name!, [...(files.get(name!) ?? []), path])
    }
  }
  expect(Array.from(files).filter(([, paths]) => paths.length > 1)).toEqual([])
})

test('ARCHITECTURE.md draws the folders of src/, and the files directly in src/ and src/pipeline/', () => {
  const isDrawn = (path: string): boolean => /^src\/[^/]+(\/|\.ts)$|^src\/pipeline\/[^/]+(\/|\.ts)$/.test(path)
  const onDisk = new Set<string>()
  for (const path of sources.keys()) {
    const parts = path.split('/')
    parts.forEach((_, at) => onDisk.add(at === parts.length - 1 ? path : `${parts.slice(0, at + 1).join('/')}/`))
  }
  expect(drawnPaths().filter(isDrawn).sort()).toEqual(Array.from(onDisk).filter(isDrawn).sort())
})

test('dependencies have exact versions and a line in docs/reference/dependencies.md', () => {
  const docs = read('docs/reference/dependencies.md')
  const groups = ['dependencies', 'devDependencies', 'optionalDependencies']
  const all = ['package.json', 'console/package.json'].flatMap(path => {
    const json = JSON.parse(read(path)) as Record<string, Record<string, string>>
    return groups.flatMap(group => Object.entries(json[group] ?? {}))
  })
  const exact = /^(npm:(@[\w.-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(-[\w.-]+)?$/
  expect(all.filter(([, version]) => !exact.test(version))).toEqual([])
  const family = (name: string): boolean => docs.includes(`${name.replace(/-[a-z0-9]+(-[a-z0-9]+)*$/, '')}-*`)
  expect(all.map(([name]) => name).filter(name => !docs.includes(name) && !family(name))).toEqual([])
  for (const lock of ['package-lock.json', 'console/package-lock.json'])
    expect(read(lock)).not.toMatch(/"resolved"\s*:/)
})

test('the check of layers finds an import that points upwards, one to a neighbour, and a circle', () => {
  const problems = layerProblems(
    new Map([
      ['src/base/a.ts', "import { b } from '../http/b.ts'"],
      ['src/http/b.ts', "import type { c } from '../store/c.ts'"],
      ['src/store/c.ts', "import { d } from './d.ts'"],
      ['src/store/d.ts', "import type { c } from './c.ts'"],
    ]),
  )
  expect(problems.map(text => text.split(':')[0])).toEqual([
    'src/base/a.ts imports src/http/b.ts',
    'src/http/b.ts imports src/store/c.ts',
    'Import circle',
  ])
})

test('every assertion about a promise is awaited', () => {
  // The types of the test runner do not tell: an assertion that is not awaited comes too late to fail its test.
  const files = [...new Bun.Glob('{src,test,tools}/**/*.test.ts').scanSync(root)].map(
    path => [path, read(path)] as const,
  )
  expect(files.length).toBeGreaterThan(100)
  expect(linesWith(/\)\.(rejects|resolves)\./, files).length).toBeGreaterThan(10)
  expect(linesWith(/^(?!.*\b(await|return)\b).*\bexpect\(.*\)\.(rejects|resolves)\./, files)).toEqual([])
})
