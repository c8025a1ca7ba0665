// The documents that must stay true: the errors, the tree that is drawn, and the dependencies that are described.

import type { Finding, Rule, SourceFile, Tree } from './source.ts'
import { fileAt, isIn, isTest, shippedCode, tokensOf } from './source.ts'
import { literalText } from './tokens.ts'

const ERRORS = 'src/base/errors.ts'
const ERROR_DOCS = 'docs/errors.md'

function errorRows(tree: Tree): readonly Finding[] {
  const documented = new Map<string, number>()
  fileAt(tree, ERROR_DOCS)?.text.split('\n').forEach((text, index) => {
    const code = /^\| `([^`]+)` \|/.exec(text)?.[1]
    if (code !== undefined) documented.set(code, index + 1)
  })
  const used = new Set<string>()
  for (const file of shippedCode(tree)) {
    if (file.path === ERRORS) continue
    for (const token of tokensOf(file).code) used.add(literalText(token) ?? '')
  }
  const rowLines = fileAt(tree, ERRORS)?.text.split('\n') ?? []
  const rowLine = (code: string): number => rowLines.findIndex(text => text.trim().startsWith(`${code}:`)) + 1 || 1
  const found: Finding[] = []
  for (const code of tree.errorCodes) {
    const row = { file: ERRORS, line: rowLine(code) }
    if (!documented.has(code)) found.push({ ...row, message: `${code} has no line in ${ERROR_DOCS}; npm run docs` })
    if (!used.has(code)) found.push({ ...row, message: `${code} is used nowhere; use it or delete the row` })
  }
  for (const [code, line] of documented) {
    if (tree.errorCodes.includes(code)) continue
    found.push({ file: ERROR_DOCS, line, message: `${code} is no row of ${ERRORS}; npm run docs` })
  }
  return found
}

interface Entry {
  readonly path: string
  readonly line: number
}

/** The entries below `src/` in the fenced tree of ARCHITECTURE.md, as paths; folders end in a slash. */
function drawnTree(text: string): readonly Entry[] | undefined {
  const entries: Entry[] = []
  const above: string[] = []
  let inside = false
  let fenced = false
  for (const [index, line] of text.split('\n').entries()) {
    if (line.startsWith('```')) {
      if (inside) return entries
      fenced = !fenced
    } else if (fenced && /^src\/(\s|$)/.test(line)) inside = true
    else if (inside && /^\S/.test(line)) return entries
    else if (inside) {
      const depth = Math.floor((line.length - line.trimStart().length) / 2)
      // More than one name may stand on a line; the comment begins at the first field that is none.
      const fields = line.trim().split(/\s{2,}/)
      const end = fields.findIndex(field => !/^\S+(\/|\.ts)$/.test(field))
      const names = end < 0 ? fields : fields.slice(0, end)
      const parent = depth > 1 ? (above[depth - 1] ?? '?/') : 'src/'
      for (const name of names) entries.push({ path: `${parent}${name}`, line: index + 1 })
      if (names.at(-1)?.endsWith('/')) above[depth] = `${parent}${names.at(-1)}`
    }
  }
  return inside ? entries : undefined
}

/** Folders of src/, and the files directly in src/ and src/pipeline/. */
const isDrawn = (path: string): boolean =>
  /^src\/[^/]+(\/|\.ts)$|^src\/pipeline\/[^/]+\.ts$/.test(path) && !isTest(path)

function architectureTree(tree: Tree): readonly Finding[] {
  const file = fileAt(tree, 'ARCHITECTURE.md')
  const drawn = file && drawnTree(file.text)?.filter(entry => isDrawn(entry.path))
  if (!drawn) return [{ file: 'ARCHITECTURE.md', line: 1, message: 'draw the tree in a fenced block, below "src/"' }]
  const paths = tree.files.filter(({ path }) => isIn(path, 'src')).map(({ path }) => path)
  const folders = paths.flatMap(path => /^src\/[^/]+\//.exec(path)?.[0] ?? [])
  const onDisk = new Set([...folders, ...paths].filter(isDrawn))
  const listed = new Set(drawn.map(entry => entry.path))
  const start = file.text.slice(0, Math.max(0, file.text.search(/^src\/(\s|$)/m))).split('\n').length
  return [
    ...drawn
      .filter(entry => !onDisk.has(entry.path))
      .map(({ path, line }) => ({ file: file.path, line, message: `${path} is drawn, but not on disk` })),
    ...[...onDisk]
      .filter(path => !listed.has(path))
      .map(path => ({ file: file.path, line: start, message: `${path} is on disk, but not drawn; add its line` })),
  ]
}

const DEPENDENCIES_MAX = 15
const GROUPS = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'] as const
type PackageJson = Partial<Record<(typeof GROUPS)[number], Record<string, string>>>

const lineOf = (file: SourceFile, text: string): number =>
  file.text.slice(0, Math.max(0, file.text.indexOf(text))).split('\n').length

/** A name stands by itself, or as a family such as `@scope/name-*`. */
function isDescribed(name: string, docs: string): boolean {
  return (docs.match(/[@\w][\w@./-]*\*?/g) ?? []).some(word =>
    word.endsWith('*') && word.length > 3 ? name.startsWith(word.slice(0, -1)) : word.replace(/[./]+$/, '') === name,
  )
}

function dependencies(tree: Tree): readonly Finding[] {
  const file = fileAt(tree, 'package.json')
  if (!file) return [{ file: 'package.json', line: 1, message: 'is missing' }]
  const json = JSON.parse(file.text) as PackageJson
  const docs = fileAt(tree, 'docs/dependencies.md')?.text ?? ''
  const count = Object.keys(json.dependencies ?? {}).length
  const found: Finding[] = []
  const say = (text: string, message: string): void => {
    found.push({ file: file.path, line: lineOf(file, `"${text}"`), message })
  }
  if (count > DEPENDENCIES_MAX) say('dependencies', `${count} dependencies, at most ${DEPENDENCIES_MAX}`)
  for (const [name, version] of GROUPS.flatMap(group => Object.entries(json[group] ?? {}))) {
    if (!/^(npm:(@[\w.-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(-[\w.-]+)?$/.test(version)) {
      say(name, `${name} must have one exact version, not "${version}"`)
    }
    if (!isDescribed(name, docs)) say(name, `${name} needs a line in docs/dependencies.md: what for, and why this one`)
  }
  const lock = fileAt(tree, 'package-lock.json')
  const message = 'a resolved address ties the lock to one registry; install with omit-lockfile-registry-resolved'
  lock?.text.split('\n').forEach((text, index) => {
    if (/"resolved"\s*:/.test(text)) found.push({ file: lock.path, line: index + 1, message })
  })
  return found
}

export const documentRules = {
  'error-rows': { says: 'every error is a row, documented and used', check: errorRows },
  'architecture-tree': { says: 'ARCHITECTURE.md draws the tree that is there', check: architectureTree },
  'dependencies': { says: 'dependencies are few, exact and described', check: dependencies },
} satisfies Record<string, Rule>
