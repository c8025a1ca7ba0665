// Reads the project's files for the rules. What git ignores by folder is not ours.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isCode } from './source.ts'
import type { SourceFile } from './source.ts'

const ROOTS = ['src', 'test', 'bench', 'scripts', 'providers', 'docs']
const isRead = (path: string): boolean =>
  isCode(path) || /^providers\/[^/]+\.json$|\.md$|^package(-lock)?\.json$/.test(path)

function ignoredFolders(root: string): ReadonlySet<string> {
  const rows = readFileSync(join(root, '.gitignore'), 'utf8').split('\n')
  const folders = rows.filter(row => /^\/?[^/*!#]+\/$/.test(row))
  return new Set(['node_modules', ...folders.map(row => row.replaceAll('/', ''))])
}

export function readTree(root: string): readonly SourceFile[] {
  const ignored = ignoredFolders(root)
  const files: SourceFile[] = []
  const add = (path: string): void => {
    files.push({ path, text: isRead(path) ? readFileSync(join(root, path), 'utf8') : '' })
  }
  const walk = (folder: string): void => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`
      if (entry.name.startsWith('.')) continue
      if (entry.isDirectory() && !ignored.has(entry.name)) walk(path)
      else if (entry.isFile()) add(path)
    }
  }
  for (const entry of readdirSync(root, { withFileTypes: true })) {
    if (entry.isDirectory() && ROOTS.includes(entry.name)) walk(entry.name)
    else if (entry.isFile() && /\.(md|json)$/.test(entry.name)) add(entry.name)
  }
  return files.sort((a, b) => (a.path < b.path ? -1 : 1))
}
