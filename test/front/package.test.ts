// The package that `npm pack` writes: what is in it, and that its command starts where npm has installed it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { rawRequest } from '../support/raw.ts'
import { ask } from './asking.ts'
import { lockedPackages, shippedPackages } from './shipped-packages.ts'
import { cleanUp, freshFolder, programOf, serve, stopServed } from './weir-process.ts'

const ROOT = join(import.meta.dir, '..', '..')

interface Packed {
  readonly filename: string
  readonly files: readonly { readonly path: string; readonly mode: number }[]
}

let folder: string
let packed: Packed

async function run(command: readonly string[], cwd: string): Promise<string> {
  const env = { PATH: process.env.PATH, HOME: folder, npm_config_update_notifier: 'false' }
  const child = Bun.spawn([...command], { cwd, env, stdout: 'pipe', stderr: 'pipe' })
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}: ${stderr}`)
  return stdout
}

beforeAll(async () => {
  folder = freshFolder()
  const said = await run(['npm', 'pack', '--json', '--offline', '--pack-destination', folder], ROOT)
  packed = (JSON.parse(said) as [Packed])[0]
})
afterAll(cleanUp)

test('the package has the program, its data and its documents, and no tests, fixtures or settings of this checkout', () => {
  const paths = packed.files.map(({ path }) => path)
  const top = new Set(paths.map(path => path.split('/')[0]!))
  const documents = ['.env.example', 'CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json']
  expect([...top].sort()).toEqual([...documents, 'bin', 'deploy', 'dist', 'docs', 'providers', 'src', 'tools'].sort())
  const foreign =
    /\.test\.ts$|^tools\/(?!fake-upstream\/)|raw-client|(^|\/)(test|fixtures|golden|node_modules)\/|\.tgz$/
  expect(paths.filter(path => foreign.test(path))).toEqual([])
  const programs = packed.files
    .filter(({ path }) => path.startsWith('bin/'))
    .map(({ path, mode }) => [path, mode & 0o111])
  expect(programs.sort()).toEqual([
    ['bin/weir', 0o111],
    ['bin/weir-bun', 0o111],
  ])
})

test('every file of the checkout that the code imports is in the package', () => {
  const paths = new Set(packed.files.map(({ path }) => path))
  const imported = [...paths]
    .filter(path => /^(src|tools)\/.*\.ts$/.test(path))
    .flatMap(path => {
      const text = readFileSync(join(ROOT, path), 'utf8')
      return Array.from(text.matchAll(/(?:from |import\(|^import )'(\.[^']+)'/gm), ([, name]) =>
        join(dirname(path), name!),
      )
    })
  expect(imported.length).toBeGreaterThan(1_000)
  expect([...new Set(imported)].filter(path => !paths.has(path))).toEqual([])
})

// npm does not publish package-lock.json, so who installs the package gets what package.json says. Its versions are exact;
// this test keeps every package that is not in it, whose version would be open, out of the installation. A shrinkwrap would
// lock as well, but npm installs the packages of a shrinkwrap for all platforms.
test('package.json alone locks what a user installs: no dependency has dependencies', () => {
  const { '': self, ...locked } = lockedPackages()
  const shipped = Object.entries(locked).filter(([, { dev }]) => !dev)
  const versions = shipped.map(([path, { version }]) => [path.replace(/^node_modules\//, ''), version])
  expect(Object.fromEntries(versions)).toEqual({ ...self!.dependencies, ...self!.optionalDependencies })
  const open = shipped.filter(([, { dependencies, optionalDependencies }]) => dependencies ?? optionalDependencies)
  expect(open.map(([path]) => path)).toEqual([])
})

test('the command of the installed package starts a gateway', async () => {
  // As npm installs it: packages side by side, and a link to the command.
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, '.bin'), { recursive: true })
  await run(['tar', '-xzf', packed.filename], folder)
  await run(['mv', 'package', 'node_modules/weir'], folder)
  for (const path of shippedPackages()) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    symlinkSync(join(ROOT, path), join(folder, path))
  }
  symlinkSync('../weir/bin/weir', join(modules, '.bin', 'weir'))
  expect(existsSync(join(modules, 'weir', 'node_modules'))).toBe(false)

  const served = await serve(freshFolder(), {}, join(modules, '.bin', 'weir'))
  expect(programOf(served)).toEndWith('/node_modules/weir/dist/weir.js')
  expect((await rawRequest(served.url, ask('GET', '/health/ready'))).status).toBe(200)
  for (const page of ['/docs', '/console/']) expect((await rawRequest(served.url, ask('GET', page))).status).toBe(200)
  expect(await stopServed(served)).toBe(0)
})
