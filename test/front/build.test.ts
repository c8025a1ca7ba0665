// What scripts/build.ts writes, and when bin/weir runs it: in a copy of the checkout, whose Bun is replaced where a test
// only asks which program would run.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { cleanUp, freshFolder } from './weir-process.ts'

const ROOT = join(import.meta.dir, '..', '..')
const PARTS = ['bin', 'package.json', 'providers', 'scripts/build.ts', 'src', 'tools/fake-upstream']

let copy: string
const inCopy = (name: string): string => join(copy, name)

beforeAll(() => {
  copy = freshFolder()
  for (const part of PARTS) {
    mkdirSync(dirname(inCopy(part)), { recursive: true })
    cpSync(join(ROOT, part), inCopy(part), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), inCopy('node_modules'))
})
afterAll(cleanUp)

async function run(command: string, ...args: readonly string[]) {
  const child = Bun.spawn([inCopy(command), ...args], { cwd: copy, stdout: 'pipe', stderr: 'pipe' })
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  return { code, stdout, stderr }
}

const build = () => run('bin/weir-bun', 'scripts/build.ts')

/** Which program bin/weir would give to Bun for a command. */
async function chosen(...command: readonly string[]): Promise<string> {
  const bun = readFileSync(inCopy('bin/weir-bun'))
  writeFileSync(inCopy('bin/weir-bun'), '#!/bin/sh\necho "$1"\n')
  try {
    return (await run('bin/weir', ...command)).stdout.trim().replace(/^.*\/bin\/\.\.\//, '')
  } finally {
    writeFileSync(inCopy('bin/weir-bun'), bun)
  }
}

const BUNDLE = 'dist/weir.js'
const QUICK = 'dist/quick.js'
const SOURCE = 'src/cli/weir.ts'
const shippedHelp = (): string => readFileSync(join(ROOT, 'src/cli/help.ts'), 'utf8')
const later = (): Date => new Date(Date.now() + 60_000)

test('bin/weir runs the bundle while no source is newer', async () => {
  expect(await chosen('serve')).toBe(SOURCE)
  expect(await build()).toEqual({ code: 0, stdout: '', stderr: 'weir: building …\n' })
  expect(await chosen('serve')).toBe(BUNDLE)
  expect(await build()).toEqual({ code: 0, stdout: '', stderr: '' })

  utimesSync(inCopy('src/base/money/money.ts'), later(), later())
  expect(await chosen('serve')).toBe(SOURCE)
  utimesSync(inCopy('src/base/money/money.ts'), new Date(0), new Date(0))
  expect(await chosen('serve')).toBe(BUNDLE)

  // A source that was deleted changes its folder only.
  writeFileSync(inCopy('src/base/gone.ts'), '')
  rmSync(inCopy('src/base/gone.ts'))
  expect(await chosen('serve')).toBe(SOURCE)

  rmSync(inCopy('dist/built'))
  expect(await chosen('serve')).toBe(SOURCE)
})

test.each(['', 'help', 'help keys', '--help', '-h', 'version', '--version', 'completion zsh'])(
  'weir %s needs no gateway, so it is in a small file, and does what its source does',
  async line => {
    const command = line === '' ? [] : line.split(' ')
    expect((await build()).code).toBe(0)
    expect(await chosen(...command)).toBe(QUICK)
    const ran = await run('bin/weir', ...command)
    expect(ran).toEqual(await run('bin/weir-bun', SOURCE, ...command))
    expect([ran.code, ran.stderr]).toEqual([0, ''])
    expect(statSync(inCopy(QUICK)).size).toBeLessThan(statSync(inCopy(BUNDLE)).size / 10)
  },
)

test('the bundle can be moved, and each of its threads is beside it', async () => {
  expect((await build()).code).toBe(0)
  const files = readdirSync(inCopy('dist'))
  const texts = files.filter(name => name.endsWith('.js')).map(name => readFileSync(join(inCopy('dist'), name), 'utf8'))
  expect(texts.filter(text => text.includes(`${copy}/`))).toEqual([])
  const named = texts.flatMap(text => Array.from(text.matchAll(/"\.\/([\w-]+-thread\.js)"/g), ([, name]) => name!))
  expect(named).toContain('writer-thread.js')
  expect([...new Set(named)].filter(name => !files.includes(name))).toEqual([])
  const sources = new Bun.Glob('src/**/*.ts').scanSync(ROOT)
  const threads = [...sources].filter(name => /^(?!.*\.test\.ts$)/.test(name) && /new URL\('/.test(textOf(name)))
  expect(new Set(named).size).toBeGreaterThanOrEqual(threads.length)
})

const textOf = (name: string): string => readFileSync(join(ROOT, name), 'utf8')

test('bytecode that is cut off, of another build or missing is not used, and the command works', async () => {
  expect((await build()).code).toBe(0)
  const help = await run('bin/weir', 'help')
  expect(help.stdout).toContain('start the gateway')
  const bytecode = inCopy(`${QUICK}.jsc`)
  truncateSync(bytecode, 100_000)
  expect(await run('bin/weir', 'help')).toEqual(help)
  cpSync(inCopy('dist/writer-thread.js.jsc'), bytecode)
  expect(await run('bin/weir', 'help')).toEqual(help)
  rmSync(bytecode)
  expect(await run('bin/weir', 'help')).toEqual(help)
})

test('two builds at once leave one that works; the stack of an error names the source', async () => {
  const line =
    shippedHelp()
      .split('\n')
      .findIndex(text => text.includes('export function helpLines')) + 1
  expect(line).toBeGreaterThan(0)
  const planted = shippedHelp().replace(/(export function helpLines.*\{\n)/, "$1throw new Error('planted')\n")
  writeFileSync(inCopy('src/cli/help.ts'), planted)
  mkdirSync(inCopy('dist/.new-killed'))
  utimesSync(inCopy('dist/.new-killed'), new Date(0), new Date(0))
  const built = { code: 0, stdout: '', stderr: 'weir: building …\n' }
  const both = await Promise.all([build(), build()])
  expect(both).toContainEqual(built)
  // On a slow machine the second process may begin when the first has ended, and then has nothing to build.
  for (const one of both) expect([built, { ...built, stderr: '' }]).toContainEqual(one)
  expect(readdirSync(inCopy('dist')).filter(name => name.startsWith('.new-'))).toEqual([])
  expect(await chosen('serve')).toBe(BUNDLE)
  const { code, stderr } = await run('bin/weir', 'help')
  expect(code).toBe(1)
  expect(stderr).toContain('planted')
  expect(stderr).toContain(`src/cli/help.ts:${line + 1}:`)
})

test('a build that fails changes nothing', async () => {
  const before = readFileSync(inCopy(BUNDLE))
  writeFileSync(inCopy('src/cli/help.ts'), 'this is no program')
  const { code, stderr } = await build()
  expect([code, stderr]).toEqual([1, expect.stringContaining('help.ts')])
  expect(readFileSync(inCopy(BUNDLE))).toEqual(before)
  expect(readdirSync(inCopy('dist')).filter(name => name.startsWith('.new-'))).toEqual([])
  expect(existsSync(inCopy('dist/built'))).toBe(true)
  expect(await chosen('serve')).toBe(SOURCE)
})
