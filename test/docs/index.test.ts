// Every page of the documentation can be reached from its first page, every link leads to a page and a heading, and every
// file that a page names exists.

import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const ROOT = join(import.meta.dir, '..', '..')
const DOCS = join(ROOT, 'docs')
const pages = readdirSync(DOCS, { encoding: 'utf8', recursive: true }).filter(name => name.endsWith('.md'))
const rootPages = readdirSync(ROOT).filter(name => name.endsWith('.md'))
const paths = [...pages.map(name => join(DOCS, name)), ...rootPages.map(name => join(ROOT, name))]

test('docs/README.md links to every page', () => {
  const index = readFileSync(join(DOCS, 'README.md'), 'utf8')
  expect(pages.filter(name => name !== 'README.md' && !index.includes(`](${name})`))).toEqual([])
})

/** The anchors of a page, as GitHub makes them from its headings. */
function anchorsOf(path: string): ReadonlySet<string> {
  const headings = readFileSync(path, 'utf8').matchAll(/^#+ (.+)$/gm)
  const anchor = (heading: string): string =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-')
  return new Set(Array.from(headings, ([, heading]) => anchor(heading!)))
}

test.each(paths.map(path => [relative(ROOT, path), path]))('the links of %s lead to something', (_name, path) => {
  const text = readFileSync(path, 'utf8').replace(/^```[^]*?^```/gm, '')
  const links = Array.from(text.matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)/g))
  const broken = links.filter(([, file = '', anchor]) => {
    const target = file === '' ? path : join(dirname(path), file)
    return !existsSync(target) || (anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).has(anchor))
  })
  expect(broken.map(([link]) => link)).toEqual([])
})

const current = paths.filter(path => !path.endsWith('CHANGELOG.md')) // it names files as they were

test.each(current.map(path => [relative(ROOT, path), path]))('the files that %s names exist', (_name, path) => {
  const text = readFileSync(path, 'utf8')
  const named = text.matchAll(/`((?:src|test|scripts|tools|providers|bench|bin)\/[\w./-]+)`/g)
  expect(Array.from(named, ([, file]) => file!).filter(file => !existsSync(join(ROOT, file)))).toEqual([])
})
