// What the rules look at and what they say: files in memory in, findings out. Nothing here touches the disk.

import { tokenize } from './tokens.ts'
import type { Tokens } from './tokens.ts'

export interface SourceFile {
  /** From the root of the project, with forward slashes. */
  readonly path: string
  /** Empty for files whose content no rule reads. */
  readonly text: string
}

export interface Tree {
  readonly files: readonly SourceFile[]
  /** The codes of errorRows. They come as values because the table may be written in any way. */
  readonly errorCodes: readonly string[]
}

export interface Finding {
  readonly file: string
  readonly line: number
  /** What is wrong and what to do. */
  readonly message: string
  /** The word at fault, where an exception may be for one word only. */
  readonly subject?: string
}

export interface Rule {
  /** What holds, as the name of the test. */
  readonly says: string
  readonly check: (tree: Tree) => readonly Finding[]
}

const cache = new WeakMap<SourceFile, Tokens>()

/** Fifteen rules read the same files, so each is tokenized once. */
export function tokensOf(file: SourceFile): Tokens {
  const known = cache.get(file)
  if (known) return known
  const tokens = tokenize(file.text)
  cache.set(file, tokens)
  return tokens
}

export const isCode = (path: string): boolean => /\.(ts|tsx|mts|js|mjs)$/.test(path)

export const isTest = (path: string): boolean => /\.test\.ts$/.test(path)

export const isIn = (path: string, ...folders: readonly string[]): boolean =>
  folders.some(folder => path.startsWith(`${folder}/`))

export const ourCode = (tree: Tree): readonly SourceFile[] =>
  tree.files.filter(file => isCode(file.path) && isIn(file.path, 'src', 'test', 'bench', 'scripts'))

export const srcCode = (tree: Tree): readonly SourceFile[] =>
  tree.files.filter(file => isCode(file.path) && isIn(file.path, 'src'))

/** The code that ships: src/ without the tests beside it. */
export const shippedCode = (tree: Tree): readonly SourceFile[] => srcCode(tree).filter(file => !isTest(file.path))

export const fileAt = (tree: Tree, path: string): SourceFile | undefined =>
  tree.files.find(file => file.path === path)

export const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))

export const fileName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

export const show = (finding: Finding): string => `${finding.file}:${finding.line}  ${finding.message}`
