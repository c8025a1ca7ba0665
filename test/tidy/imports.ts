// Who imports whom, read from tokens, and the circles among them.

import type { SourceFile } from './source.ts'
import { folderOf, tokensOf } from './source.ts'
import type { Token } from './tokens.ts'
import { isPunct, isWord, literalText } from './tokens.ts'

export interface Import {
  readonly file: string
  readonly line: number
  readonly specifier: string
  /** Gone at run time. `import { type A }` is not: it still loads the module. */
  readonly typeOnly: boolean
  /** The path from the root of the project; undefined for packages. */
  readonly target: string | undefined
}

export function normalizePath(path: string): string {
  const kept: string[] = []
  for (const part of path.split('/')) {
    if (part === '..' && kept.length > 0 && kept.at(-1) !== '..') kept.pop()
    else if (part !== '.' && part !== '') kept.push(part)
  }
  return kept.join('/')
}

function resolve(file: string, specifier: string, known: ReadonlySet<string>): string | undefined {
  if (!specifier.startsWith('.')) return undefined
  const path = normalizePath(`${folderOf(file)}/${specifier}`)
  return [path, `${path}.ts`, `${path}/index.ts`].find(candidate => known.has(candidate)) ?? path
}

/** The module that the `import` or `export` at this index names, if it names one. */
function specifierAt(code: readonly Token[], at: number): { token: Token; typeOnly: boolean } | undefined {
  const isExport = isWord(code[at], 'export')
  const next = code[at + 1]
  if (isPunct(code[at - 1], '.') || isPunct(next, '.') || isPunct(next, ':')) return undefined
  if (isPunct(next, '(') && !isExport) {
    const token = code[at + 2]
    const typeOnly = [':', '<', '|', '&', 'typeof', 'as'].includes(code[at - 1]?.text ?? '')
    return token && literalText(token) !== undefined ? { token, typeOnly } : undefined
  }
  if (next?.kind === 'string') return isExport ? undefined : { token: next, typeOnly: false }
  const typed = isWord(next, 'type') && !isWord(code[at + 2], 'from') && !isPunct(code[at + 2], ',')
  const clause = code[typed ? at + 2 : at + 1]
  if (isExport && !isPunct(clause, '{') && !isPunct(clause, '*')) return undefined
  for (let index = at + 1; index < code.length; index++) {
    const token = code[index]!
    if (isWord(token, 'from') && code[index + 1]?.kind === 'string') return { token: code[index + 1]!, typeOnly: typed }
    const inClause = token.kind === 'word' || ['{', '}', ',', '*'].includes(token.text)
    if (!inClause || (isPunct(code[index - 1], '}') && !isWord(token, 'from'))) return undefined
  }
  return undefined
}

export function importsOf(files: readonly SourceFile[], known: ReadonlySet<string>): readonly Import[] {
  const found: Import[] = []
  for (const file of files) {
    const { code } = tokensOf(file)
    code.forEach((token, at) => {
      if (!isWord(token, 'import') && !isWord(token, 'export')) return
      const named = specifierAt(code, at)
      if (!named) return
      const specifier = literalText(named.token)!
      const target = resolve(file.path, specifier, known)
      found.push({ file: file.path, line: token.line, specifier, typeOnly: named.typeOnly, target })
    })
  }
  return found
}

/** Circles among files, each once, as the imports that close them. */
export function findCircles(imports: readonly Import[]): readonly (readonly Import[])[] {
  const outgoing = new Map<string, Import[]>()
  for (const edge of imports) {
    if (edge.target !== undefined) outgoing.set(edge.file, [...(outgoing.get(edge.file) ?? []), edge])
  }
  const circles: Import[][] = []
  const done = new Set<string>()
  const path: Import[] = []
  const visit = (file: string): void => {
    for (const edge of outgoing.get(file) ?? []) {
      const target = edge.target!
      const from = path.findIndex(step => step.file === target)
      if (target === file) circles.push([edge])
      else if (from >= 0) circles.push([...path.slice(from), edge])
      else if (!done.has(target)) {
        path.push(edge)
        visit(target)
        path.pop()
      }
    }
    done.add(file)
  }
  for (const file of outgoing.keys()) if (!done.has(file)) visit(file)
  return circles
}
