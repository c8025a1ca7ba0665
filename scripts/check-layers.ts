// Checks the import graph of src/: imports point to lower layers, and no imports form a circle, not even of types.

import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const root = join(import.meta.dir, '..')

/** The folders of src/, from the bottom to the top. A folder may import from itself and from the layers below it. */
export const layers: readonly (readonly string[])[] = [
  ['base'],
  ['http', 'store'],
  ['billing', 'identity', 'limits', 'protocols', 'routing', 'upstreams', 'vault'],
  ['management', 'pipeline'],
  ['features'],
  ['server'],
  ['boot', 'config.ts'],
  ['main.ts'],
  ['cli'],
]

/** Folders of these layers may import their neighbours. Elsewhere a higher layer connects two folders of one layer. */
const OPEN_LAYER = layers.findIndex(layer => layer.includes('boot'))

/** Reached by a dynamic import only, so that a gateway in production does not load it. */
const FAKE_UPSTREAM = 'tools/fake-upstream/'

/** The files of src/ by their paths, each with its text. */
export type SourceFiles = ReadonlyMap<string, string>

interface Import {
  readonly from: string
  readonly to: string
}

export function readSources(): SourceFiles {
  const paths = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const code = paths.filter(path => path.endsWith('.ts') && !path.endsWith('.test.ts'))
  return new Map(code.map(path => [`src/${path}`, readFileSync(join(root, 'src', path), 'utf8')]))
}

const STATIC_IMPORT = /^(?:import|export)\b[^'"]*?['"](\.[^'"]+)['"]/gm

function importsOf(files: SourceFiles): readonly Import[] {
  return Array.from(files, ([from, text]) =>
    Array.from(text.matchAll(STATIC_IMPORT), ([, path]) => ({ from, to: join(dirname(from), path!) })),
  ).flat()
}

/** The folder directly below src/, or the file that lies there. */
const folderOf = (path: string): string => relative('src', path).split('/')[0]!

const layerOf = (path: string): number => layers.findIndex(layer => layer.includes(folderOf(path)))

function layerProblem({ from, to }: Import): string | undefined {
  if (to.startsWith(FAKE_UPSTREAM)) return undefined
  if (!to.startsWith('src/')) return /\.(json|md)$/.test(to) ? undefined : `${from} imports ${to}, outside of src/`
  const [user, used] = [layerOf(from), layerOf(to)]
  if (user < 0) return `${from}: src/${folderOf(from)} has no layer; add it to scripts/check-layers.ts`
  if (used < user || folderOf(from) === folderOf(to)) return undefined
  if (used === user && user >= OPEN_LAYER) return undefined
  const place = used === user ? 'beside it' : 'above it'
  return `${from} imports ${to}: src/${folderOf(to)} lies ${place}. Pass what is needed as an argument.`
}

/** Each circle once, as the files that form it. */
function circles(imports: readonly Import[]): readonly (readonly string[])[] {
  const next = new Map<string, string[]>()
  for (const { from, to } of imports) next.set(from, [...(next.get(from) ?? []), to])
  const found: string[][] = []
  const done = new Set<string>()
  const path: string[] = []
  function visit(file: string): void {
    const start = path.indexOf(file)
    if (start >= 0) found.push([...path.slice(start), file])
    if (start >= 0 || done.has(file)) return
    path.push(file)
    for (const to of next.get(file) ?? []) visit(to)
    path.pop()
    done.add(file)
  }
  for (const file of next.keys()) visit(file)
  return found
}

/** What is wrong with the imports, in one sentence each. */
export function layerProblems(files: SourceFiles): readonly string[] {
  const imports = importsOf(files)
  return [
    ...imports.flatMap(one => layerProblem(one) ?? []),
    ...circles(imports).map(files => `Import circle: ${files.join(' → ')}. Move what both need into a third file.`),
  ]
}

if (import.meta.main) {
  const files = readSources()
  const problems = layerProblems(files)
  for (const problem of problems) process.stderr.write(`${problem}\n`)
  process.stdout.write(`layers: ${files.size} files, ${problems.length} problems\n`)
  process.exit(problems.length === 0 ? 0 : 1)
}
