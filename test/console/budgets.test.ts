// How much a browser loads, in KiB as gzip. A page that grows beyond its budget is found here and not by people on slow
// lines.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ConsoleBuild } from '../../scripts/build-console.ts'

const KIB = 1024
const built = JSON.parse(
  readFileSync(join(import.meta.dir, '..', '..', 'dist', 'console', 'build.json'), 'utf8'),
) as ConsoleBuild
const names = Object.keys(built.files)

/** The file of a module, and the files that a browser loads with it. */
function loadedWith(name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found
  found.add(name)
  for (const other of built.files[name]!.imports ?? []) loadedWith(other, found)
  return found
}

const fileOf = (source: string): string => {
  const name = names.find(one => built.files[one]!.source === source)
  if (name === undefined) throw new Error(`nothing was built for ${source}`)
  return name
}
const sizeOf = (files: Iterable<string>): number => {
  const bytes = Array.from(files, name => built.files[name]!.gzip).reduce((sum, size) => sum + size, 0)
  return Math.round((bytes / KIB) * 10) / 10
}

const alwaysLoaded = names.filter(name => /^index\.html$|\.css$|\/theme-/.test(name))
const start = new Set([...loadedWith(fileOf('src/main.tsx')), ...alwaysLoaded])
/** With the frame around the pages of people who are signed in. */
const frame = new Set([...start, ...loadedWith(fileOf('src/shell/shell.tsx'))])
const lazy = names.filter(name => name.endsWith('.js') && !start.has(name))

test('what every page loads is small', () => {
  expect(sizeOf(start)).toBeLessThanOrEqual(120)
  expect(sizeOf(frame)).toBeLessThanOrEqual(131)
})

const withFrame = (name: string): number => sizeOf(new Set([...frame, ...loadedWith(name)]))

test('the first pages of people are small, with all that they load', () => {
  expect(sizeOf(new Set([...start, ...loadedWith(fileOf('src/pages/sign-in.tsx'))]))).toBeLessThanOrEqual(128)
  for (const page of ['src/pages/overview.tsx', 'src/pages/keys.tsx', 'src/pages/records.tsx']) {
    const size = withFrame(fileOf(page))
    expect({ page, size, isSmall: size <= 148 }).toMatchObject({ isSmall: true })
  }
})

test('no page is large, with all that it loads', () => {
  const pages = names.filter(name => built.files[name]!.source?.startsWith('src/pages/'))
  expect(pages.length).toBeGreaterThan(30)
  const large = pages
    .map(name => [built.files[name]!.source, withFrame(name)] as const)
    .filter(([, size]) => size > 164)
  expect(large).toEqual([])
})

test('no file that is loaded later is large', () => {
  const large = lazy
    .map(name => [built.files[name]!.source ?? name, sizeOf([name])] as const)
    .filter(([, size]) => size > 40)
  expect(large).toEqual([])
})

test('the Chinese texts are one small file, and one for what the gateway says', () => {
  const sources = names.map(name => built.files[name]!.source).filter(source => source?.startsWith('src/words/zh/'))
  expect(sources.sort()).toEqual(['src/words/zh/all.ts', 'src/words/zh/hints.ts'])
  expect(sizeOf([fileOf('src/words/zh/all.ts')])).toBeLessThanOrEqual(29)
  expect(sizeOf([fileOf('src/words/zh/hints.ts')])).toBeLessThanOrEqual(14)
})

test('the Chinese texts are loaded with nothing else', () => {
  expect([...frame].filter(name => built.files[name]!.source?.startsWith('src/words/zh/'))).toEqual([])
})
