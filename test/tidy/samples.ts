// For each rule: files that break it, with the places it must name, and files that only look as if they did.

import type { RuleName } from './rules.ts'

/** Path to text. */
export type Files = Readonly<Record<string, string>>

export interface Violation {
  readonly files: Files
  /** Every place the rule must name, and no other. */
  readonly at: readonly string[]
}

export interface Sample {
  readonly bad: readonly Violation[]
  readonly good: readonly Files[]
  readonly errorCodes?: readonly string[]
}

const planted = (files: Files, ...at: readonly string[]): Violation => ({ files, at })
const lines = (count: number, text = 'const a = 1'): string => `${text}\n`.repeat(count)
const run = (count: number, name = 'step'): string =>
  Array.from({ length: count }, (_, index) => `${name}${index}(value, ${index})\n`).join('')

const PIPELINE = 'src/pipeline/pipeline.ts'

const stages: Files = {
  'src/pipeline/10-authenticate.ts': 'export const authenticate = (a: A) => a as Caller',
  'src/pipeline/20-limit-rate.ts': 'export const limitRate = (a: A) => a as unknown as Permit',
  'src/pipeline/30-route.ts': 'export const route = (a: A) => a as Route',
  'src/pipeline/35-hold.ts': 'export const hold = (a: A) => a as Hold',
  'src/pipeline/10-authenticate.test.ts': 'const forged = {} as Caller',
}
const pipeline = `import { authenticate } from './10-authenticate.ts'
import { before } from './before.ts'
export const stageOrder: readonly string[] = ['10-authenticate', '20-limit-rate', '30-route', '35-hold']
`
const before = `import type { Limit } from './20-limit-rate.ts'
import { route } from './30-route.ts'
import { hold } from './35-hold.ts'
`
const ordered: Files = { ...stages, [PIPELINE]: pipeline, 'src/pipeline/before.ts': before }

const drawing = (...rows: readonly string[]): string =>
  ['# House', '```', 'docs/  words', 'src/', ...rows, 'test/  tests', '  gone.ts  not ours', '```', ''].join('\n')
const house: Files = {
  'src/main.ts': '',
  'src/main.test.ts': '',
  'src/pipeline/pipeline.ts': '',
  'src/base/money.ts': '',
  'src/protocols/ark/request.ts': '',
}

const manifest = (fields: object): string => JSON.stringify(fields, null, 2)

const letters = Array.from('abcdefghijklmnop')

export const samples: Readonly<Record<RuleName, Sample>> = {
  'line-columns': {
    bad: [planted({ 'src/a.ts': `// ok\n// ${'x'.repeat(118)}\n`, 'bench/b.ts': 'x'.repeat(121) },
      ...['src/a.ts:2', 'bench/b.ts:1'])],
    good: [{ 'src/a.ts': `// ${'x'.repeat(117)}\n// ${'😀'.repeat(117)}\n`, 'docs/a.md': 'x'.repeat(300) }],
  },
  'repeated-runs': {
    bad: [
      planted({ 'src/a.ts': run(8), 'src/b.ts': `{\n  ${run(8).replaceAll('\n', ' // why\n\n  ')}}` }, 'src:1'),
      planted({ 'src/a.ts': `${run(9)}between()\n${run(9)}` }, 'src:1'),
    ],
    good: [
      { 'src/a.ts': run(7), 'src/b.ts': run(7) },
      { 'src/a.ts': run(8), 'src/a.test.ts': run(8), 'test/b.ts': run(8) },
      { 'src/a.ts': lines(9, "import { a } from 'a'"), 'src/b.ts': lines(9, "import { a } from 'a'") },
      { 'src/a.ts': lines(9, '// same'), 'src/b.ts': `${lines(9, '// same')}${lines(9, '})')}` },
      { 'src/a.ts': run(8) + run(400, 'else'), 'src/b.ts': run(8) },
    ],
  },
  'head-comment': {
    bad: [
      planted({ 'src/a.ts': 'const a = 1\n// late', 'src/b.ts': '//\nx' }, 'src/a.ts:1', 'src/b.ts:1'),
      planted({ 'src/c.ts': '/* x */', 'src/d.ts': '' }, 'src/c.ts:1', 'src/d.ts:1'),
    ],
    good: [{ 'src/a.ts': '// What for.\n', 'src/cli/b.ts': '#!/usr/bin/env x\n// What for.\n', 'src/a.test.ts': 'x' }],
  },
  'any': {
    bad: [
      planted({ 'src/a.ts': 'let a: any\nf(b as any)\nf<any>(c)' }, 'src/a.ts:1', 'src/a.ts:2', 'src/a.ts:3'),
      planted({ 'src/a.ts': 'let d: Map<string, any>\nlet e: any[] = []' }, 'src/a.ts:1', 'src/a.ts:2'),
      planted({ 'test/a.ts': 'type A = B | any\nconst c = d ? e as any : f' }, 'test/a.ts:1', 'test/a.ts:2'),
      planted({ 'src/a.ts': 'const a = `${b as any}`' }, 'src/a.ts:1'),
    ],
    good: [
      { 'src/a.ts': "const a = 'x: any' // as any\nconst c = /: any/\nconst d = `e as any`" },
      { 'src/a.ts': 'Promise.any(b)\nf({ any: 1 })\nlet many: B' },
    ],
  },
  'silenced-checker': {
    bad: [
      planted({ 'src/a.ts': 'x\n// @ts-ignore\ny' }, 'src/a.ts:2'),
      planted({ 'test/b.ts': '/* @ts-expect-error: no */' }, 'test/b.ts:1'),
    ],
    good: [{ 'test/types/a.ts': '// @ts-expect-error a Caller is no Permit', 'src/a.ts': "const a = '// @ts-ignore'" }],
  },
  'leftovers': {
    bad: [planted({ 'src/a.ts': 'x // TODO: y', 'bench/b.ts': '/*\n FIXME */' }, 'src/a.ts:1', 'bench/b.ts:1')],
    good: [{ 'src/a.ts': "const a = 'TODO' // todos are listed here\nconst b = /FIXME/" }],
  },
  'skipped-tests': {
    bad: [
      planted({ 'src/a.test.ts': 'test.skip("a")\ndescribe.only.each(b)' }, 'src/a.test.ts:1', 'src/a.test.ts:2'),
      planted({ 'test/b.ts': 'test.todo("c")' }, 'test/b.ts:1'),
    ],
    good: [
      { 'src/a.test.ts': "test('test.skip(x)', b) // .only(\nrow.skip = 1\nskip(a)" },
      { 'src/a.ts': 'input.skip(3)' },
    ],
  },
  'default-exports': {
    bad: [
      planted({ 'src/a.ts': 'x\nexport default y' }, 'src/a.ts:2'),
      planted({ 'test/b.ts': 'export { c as default }' }, 'test/b.ts:1'),
    ],
    good: [
      { 'src/a.ts': "import { default as a } from 'b'\nswitch (c) { default: d }" },
      { 'src/a.ts': "'export default e' // export default" },
    ],
  },
  'console': {
    bad: [planted({ 'src/a.ts': 'console.log(1)', 'src/http/b.ts': '\nconsole.error(2)' },
      ...['src/a.ts:1', 'src/http/b.ts:2'])],
    good: [
      { 'src/a.ts': "a.console.b\nconst c = 'console.log(1)' // console.log(2)" },
      { 'src/cli/b.ts': 'console.log(1)', 'scripts/c.ts': 'console.log(1)' },
    ],
  },
  'runtime-apis': {
    bad: [
      planted({ 'src/routing/a.ts': "import { x } from 'bun:sqlite'\nimport type { Y } from 'bun'" },
        ...['src/routing/a.ts:1', 'src/routing/a.ts:2']),
      planted({ 'src/base/a.ts': 'Bun.sleep(1)\nglobalThis.Bun.gc()' }, 'src/base/a.ts:1', 'src/base/a.ts:2'),
      planted({ 'src/endpoints.ts': "await import('bun:ffi')" }, 'src/endpoints.ts:1'),
    ],
    good: [
      { 'src/http/a.ts': 'Bun.serve(b)', 'src/main.ts': "import { x } from 'bun'" },
      { 'src/routing/a.ts': "const a = 'bun' // Bun.serve\nconst b = 'Bun.serve'\nc.Bun.d" },
      { 'src/routing/a.test.ts': "import { test } from 'bun:test'\nBun.sleep(1)" },
    ],
  },
  'provider-ids': {
    bad: [
      planted({
        'providers/groq.json': '{ "id": "groq" }',
        'providers/file.json': '{ "id": "open-corp" }',
        'src/a.ts': "if (a === 'groq') b()\nc(\"open-corp\")\nd(`groq`)",
      }, 'src/a.ts:1', 'src/a.ts:2', 'src/a.ts:3'),
    ],
    good: [{
      'providers/groq.json': '{ "id": "groq" }',
      'providers/ark.json': '{ "id": "ark" }',
      'src/protocols/ark/request.ts': "const name = 'ark'",
      'src/a.ts': "// 'groq'\nconst a = 'groq-like' + 'file'\nconst b = `is groq`",
      'src/a.test.ts': "ask('groq')",
      'test/b.ts': "ask('groq')",
    }],
  },
  'revealed-secrets': {
    bad: [planted({ 'src/pipeline/a.ts': '\nkey.reveal()', 'src/upstreams/b.ts': 'key?.reveal()' },
      ...['src/pipeline/a.ts:2', 'src/upstreams/b.ts:1'])],
    good: [
      { 'src/upstreams/signing.ts': 'key.reveal()', 'src/identity/a.ts': 'key.reveal()' },
      { 'src/cli/b.ts': 'key.reveal()', 'src/main.ts': 'key.reveal()', 'src/store/c.ts': 'key.reveal()' },
      { 'src/base/secret.ts': 'class Secret {\n  reveal() {}\n}', 'src/a.ts': "'key.reveal()' // key.reveal()" },
      { 'src/pipeline/a.test.ts': 'key.reveal()' },
    ],
  },
  'bound-sql': {
    bad: [
      planted({ 'src/store/a.ts': '\ndb.query(`select ${b}`)' }, 'src/store/a.ts:2'),
      planted({ 'src/store/a.ts': "db.run('delete ' + b)" }, 'src/store/a.ts:1'),
      planted({ 'src/store/a.ts': 'db\n  .prepare(\n    `a ${`b`} c`, d)' }, 'src/store/a.ts:2'),
      planted({ 'src/store/a.ts': "sql.unsafe(b + 'c')" }, 'src/store/a.ts:1'),
    ],
    good: [
      { 'src/store/a.ts': "db.query(`select 1`).all(`${b}`)\ndb.run('a' + 'b', [`${c}%`])\ndb.exec(text)" },
      { 'src/store/a.ts': "// db.run(`${x}`)\nconst a = 'db.run(`${x}`)'" },
      { 'src/http/b.ts': 'parser.exec(`${c}`)', 'src/store/a.test.ts': 'db.exec(`drop ${c}`)' },
    ],
  },
  'names': {
    bad: [
      planted({ 'src/utils.ts': '', 'src/common/a.ts': '' }, 'src/utils.ts:1', 'src/common/a.ts:1'),
      planted({ 'src/fooBar.ts': '', 'test/http-helpers.ts': '' }, 'src/fooBar.ts:1', 'test/http-helpers.ts:1'),
    ],
    good: [
      { 'src/a-b/c-2.test.ts': '', 'src/store/0001-house.sql': '', 'src/utility-bill.ts': '' },
      { 'docs/README.md': '', 'test/samples/Some_data.json': '' },
    ],
  },
  'dependencies': {
    bad: [
      planted({
        'package.json': manifest({ dependencies: { a: '^1.0.0' }, devDependencies: { b: '1.0.0' } }),
        'docs/dependencies.md': '| `a` | why |',
      }, 'package.json:3', 'package.json:6'),
      planted({ 'package.json': '{}', 'package-lock.json': '{\n"resolved": "x" }' }, 'package-lock.json:2'),
      planted({
        'package.json': manifest({ dependencies: Object.fromEntries(letters.map(name => [name, '1.0.0'])) }),
        'docs/dependencies.md': letters.join('\n'),
      }, 'package.json:2'),
      planted({}, 'package.json:1'),
    ],
    good: [{
      'package.json': manifest({
        dependencies: { '@a/b': '1.0.0', c: 'npm:d@2.0.0' },
        optionalDependencies: { '@e/f-linux': '1.2.3-rc.1', '@e/f-mac': '1.0.0' },
      }),
      'docs/dependencies.md': '- `@a/b`: why\n- c, as above\n- @e/f-*: one a system',
      'package-lock.json': '{ "resolver": "resolved" }',
    }],
  },
  'import-direction': {
    bad: [
      planted({ 'src/base/a.ts': "import type { B } from '../http/b.ts'" }, 'src/base/a.ts:1'),
      planted({ 'src/routing/a.ts': "\nexport * from '../limits/b.ts'" }, 'src/routing/a.ts:2'),
      planted({ 'src/store/a.ts': "import '../http/b.ts'" }, 'src/store/a.ts:1'),
      planted({ 'src/management/a.ts': "import type { C } from '../config.ts'" }, 'src/management/a.ts:1'),
      planted({ 'src/base/a.test.ts': "import '../http/b.ts'" }, 'src/base/a.test.ts:1'),
      planted({ 'src/http/a.ts': "import '../../test/world.ts'" }, 'src/http/a.ts:1'),
      planted({ 'src/novel/a.ts': '' }, 'src/novel/a.ts:1'),
    ],
    good: [
      { 'src/main.ts': "import './endpoints.ts'\nimport './cli/a.ts'\nimport './base/b.ts'" },
      { 'src/pipeline/a.ts': "import '../protocols/ark/b.ts'\nimport './c.ts'\nimport 'jose'\nimport '../../d.json'" },
      { 'src/routing/a.ts': "// import '../limits/b.ts'\nconst a = \"import '../limits/b.ts'\"" },
      { 'src/routing/a.test.ts': "import '../limits/b.ts'\nimport '../../test/world.ts'" },
      { 'src/main.test.ts': "import './main.ts'" },
    ],
  },
  'import-circles': {
    bad: [
      planted({ 'src/base/a.ts': "\nimport './b.ts'", 'src/base/b.ts': "export * from './a.ts'" }, 'src/base/a.ts:2'),
      planted({ 'src/config.ts': "import type { A } from './main.ts'", 'src/main.ts': "import './config.ts'" },
        ...['src/config.ts:1']),
    ],
    good: [
      { 'src/base/a.ts': "import type { B } from './b.ts'", 'src/base/b.ts': "import './a.ts'" },
      { 'src/base/a.ts': "// import './b.ts'", 'src/base/b.ts': "import './a.ts'" },
    ],
  },
  'stage-order': {
    bad: [
      // Left out of the order, and not imported either.
      planted({ ...ordered, 'src/pipeline/40-adapt.ts': '' }, `${PIPELINE}:3`, `${PIPELINE}:3`),
      planted({ ...ordered, [PIPELINE]: pipeline.replace("'30-", "'31-") }, `${PIPELINE}:3`, `${PIPELINE}:3`),
      planted({ ...ordered, [PIPELINE]: pipeline.replace(/('30-route'), ('35-hold')/, '$2, $1') }, `${PIPELINE}:3`),
      planted({ ...ordered, 'src/pipeline/before.ts': '' }, `${PIPELINE}:3`, `${PIPELINE}:3`, `${PIPELINE}:3`),
      planted({ ...ordered, [PIPELINE]: "const stageOrder = ['10-a']" }, `${PIPELINE}:1`),
    ],
    good: [ordered],
  },
  'proofs': {
    bad: [
      planted({ ...stages, 'src/http/a.ts': '\nf(b as Caller)\n// c as Hold' }, 'src/http/a.ts:2'),
      // Makes another's proof, and not its own.
      planted({ ...stages, 'src/pipeline/30-route.ts': 'const route = {} as Hold' },
        ...['src/pipeline/30-route.ts:1', 'src/pipeline/30-route.ts:1']),
    ],
    good: [
      { ...stages, 'src/a.ts': "import { Row as Route, b } from './c.ts'\nexport type { d as Hold } from './e.ts'" },
      { ...stages, 'src/a.ts': "const a = b as CallerRow\nconst c: Caller = d\nconst e = 'f as Caller'" },
    ],
  },
  'error-rows': {
    errorCodes: ['key_missing', 'model_unknown'],
    bad: [
      planted({
        'src/base/errors.ts': "const rows = {\n  key_missing: ['x'],\n  model_unknown: ['model_unknown'],\n}",
        'src/a.ts': "throw new Refusal('key_missing')\n// 'model_unknown'",
        'src/a.test.ts': "'model_unknown'",
        'docs/errors.md': 'See `x`.\n\n| `model_unknown` | 404 |\n| `gone` | 400 |\n',
      }, 'src/base/errors.ts:2', 'src/base/errors.ts:3', 'docs/errors.md:4'),
    ],
    good: [{
      'src/base/errors.ts': "const rows = {\n  key_missing: ['x'],\n  model_unknown: ['y'],\n}",
      'src/a.ts': "throw new Refusal('key_missing')\nconst a = { 404: 'model_unknown' }",
      'docs/errors.md': '| code | status |\n|---|---|\n| `key_missing` | 401 |\n| `model_unknown` | 404 |\n',
    }],
  },
  'architecture-tree': {
    bad: [
      planted(
        { ...house, 'ARCHITECTURE.md': drawing('  main.ts  parts', '  pipeline/  stages', '    gone.ts', '  base/') },
        ...['ARCHITECTURE.md:7', 'ARCHITECTURE.md:4', 'ARCHITECTURE.md:4'],
      ),
      planted({ ...house, 'ARCHITECTURE.md': '# House\nsrc/ is described elsewhere' }, 'ARCHITECTURE.md:1'),
      planted(house, 'ARCHITECTURE.md:1'),
    ],
    good: [{
      ...house,
      'ARCHITECTURE.md': drawing(
        ...['  main.ts     parts, see a.ts', '  pipeline/   stages', '    pipeline.ts  order'],
        ...['  protocols/', '    ark/  gemini/  each a folder', '      request.ts', '  base/  money.ts and more'],
      ),
    }],
  },
}
