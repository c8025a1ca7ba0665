// Writes dist/: the program in one file with its bytecode, and each thread in another, so that a start neither parses nor
// compiles several hundred files; and the commands that need no gateway in a small file. bin/weir runs these files, unless
// a source is newer; then it runs the sources. Does nothing if dist/ is up to date.
//
// If it is killed at any point, it leaves a program that works: files are replaced whole, and Bun compares the bytecode
// with its file and parses the file if they do not belong together. The mark, whose time bin/weir reads, is replaced
// last.

import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { BunPlugin } from 'bun'

const root = join(import.meta.dir, '..')
const dist = join(root, 'dist')
const MARK = 'built'
/** The web console, which scripts/build-console.ts writes. */
const CONSOLE = 'console'
/** The folder in which a build is written begins with this. */
const NEW = '.new-'
const HOUR_MS = 3_600_000
/** The entries of the bundle. Migrations and provider files are read from their folders, as without a build. */
const SOURCES = ['package.json', 'package-lock.json', 'scripts/build.ts', 'src', 'tools/fake-upstream']

/** Its tables are large, and only the thread that counts tokens reads them. */
const UNBUNDLED = ['gpt-tokenizer']

const say = (line: string): void => void process.stderr.write(`weir: ${line}\n`)

function isUpToDate(): boolean {
  if (!existsSync(join(dist, MARK))) return false
  const sources = SOURCES.filter(name => existsSync(join(root, name)))
  const { status, stdout } = spawnSync('find', [...sources, '-newer', join(dist, MARK), '-print', '-quit'], {
    cwd: root,
  })
  return status === 0 && stdout.length === 0
}

const THREAD_URL = /new URL\('\.\/([\w-]+)\.ts', import\.meta\.url\)/g

/** The files of all threads that a source starts. */
function findThreads(): readonly string[] {
  const files = [...new Bun.Glob('{src,tools}/**/*.ts').scanSync(root)].filter(name => !name.endsWith('.test.ts'))
  return files.flatMap(name => {
    const text = readFileSync(join(root, name), 'utf8')
    return Array.from(text.matchAll(THREAD_URL), ([, thread]) => join(root, dirname(name), `${thread}.ts`))
  })
}

/**
 * In the bundle, `import.meta` would be that of the machine that built it. Its folders become relative to the bundle, and
 * its threads are beside it.
 */
const relocate: BunPlugin = {
  name: 'relocate',
  setup(build) {
    build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8')
      if (!text.includes('import.meta')) return undefined
      const folder = JSON.stringify(`/../${relative(dist, dirname(path))}`)
      const contents = text
        .replace(THREAD_URL, "new URL('./$1.js', Bun.pathToFileURL(Bun.main))")
        .replaceAll('import.meta.dir', `(Bun.main + ${folder})`)
      return { contents, loader: 'ts' }
    })
  },
}

/**
 * Leaves out what a command imports only when it runs (`await import`), which is nearly all. The commands for which bin/weir
 * chooses this bundle import nothing in that way, and start in half the time.
 */
const leaveOutLateImports: BunPlugin = {
  name: 'leave out late imports',
  setup(build) {
    build.onResolve({ filter: /^\./ }, ({ kind, path }) =>
      kind === 'dynamic-import' ? { path, external: true } : undefined,
    )
  },
}

interface BundleParts {
  readonly entrypoints: string[]
  /** Without its ending. */
  readonly name: string
  readonly plugins: BunPlugin[]
}

async function bundle(folder: string, { entrypoints, name, plugins }: BundleParts): Promise<void> {
  await Bun.build({
    entrypoints,
    outdir: folder,
    naming: `${name}.[ext]`,
    target: 'bun',
    format: 'cjs', // bytecode needs it
    bytecode: true,
    external: UNBUNDLED.map(unbundled => `${unbundled}/*`),
    // Names stay, because messages of errors and the handling of errors use them.
    minify: { whitespace: true, syntax: true, identifiers: false },
    sourcemap: 'linked',
    plugins,
  })
}

async function bundleAll(folder: string): Promise<void> {
  const program = join(root, 'src/cli/weir.ts')
  await bundle(folder, { entrypoints: [program, ...findThreads()], name: '[name]', plugins: [relocate] })
  await bundle(folder, { entrypoints: [program], name: 'quick', plugins: [leaveOutLateImports, relocate] })
  for (const name of readdirSync(folder)) {
    const text = name.endsWith('.jsc') ? '' : readFileSync(join(folder, name), 'utf8')
    if (name.endsWith('.js') && text.includes(`${root}/src/`))
      throw new Error(`${name} contains the path of this checkout`)
    if (name.endsWith('.map')) writeFileSync(join(folder, name), shrinkMap(text))
  }
}

/** The licences of the packages in the bundle, which must accompany it. */
function writeLicences(folder: string): void {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const bundled = Object.keys(dependencies).filter(name => !UNBUNDLED.includes(name))
  const licences = bundled.map(name => {
    const [file] = new Bun.Glob('LICENSE*').scanSync(join(root, 'node_modules', name))
    return `${name}\n\n${readFileSync(join(root, 'node_modules', name, file!), 'utf8')}`
  })
  writeFileSync(join(folder, 'licences.txt'), licences.join('\n\n'))
}

/**
 * Bun reads a whole map into memory when it needs a line of it, which the garbage collector can cause. So the map has
 * neither the sources, although Bun wants their list, nor more than one place for each line of them.
 */
function shrinkMap(text: string): string {
  const map = JSON.parse(text) as { sources: readonly string[]; sourcesContent: readonly string[]; mappings: string }
  return JSON.stringify({ ...map, sourcesContent: map.sources.map(() => ''), mappings: onePlacePerLine(map.mappings) })
}

/** A place is four numbers: the column in the bundle, the source, its line and its column, each minus the one before. */
function onePlacePerLine(mappings: string): string {
  const place = [0, 0, 0, 0]
  const kept = [0, 0, 0, 0]
  const shrink = (line: string): string => {
    place[0] = kept[0] = 0
    return line
      .split(',')
      .flatMap((segment, index) => {
        readNumbers(segment).forEach((value, at) => (place[at]! += value))
        if (segment === '' || (index > 0 && place[1] === kept[1] && place[2] === kept[2])) return []
        const written = place.map((value, at) => writeNumber(value - kept[at]!)).join('')
        place.forEach((value, at) => (kept[at] = value))
        return [written]
      })
      .join(',')
  }
  return mappings.split(';').map(shrink).join(';')
}

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** Each digit has five bits of a number, the lowest first, and whether more follow. The lowest bit of all is the sign. */
function readNumbers(segment: string): readonly number[] {
  const numbers: number[] = []
  let [value, shift] = [0, 0]
  for (const character of segment) {
    const digit = DIGITS.indexOf(character)
    value += (digit & 31) << shift
    shift += 5
    if (digit >= 32) continue
    numbers.push(value & 1 ? -(value >> 1) : value >> 1)
    ;[value, shift] = [0, 0]
  }
  return numbers
}

function writeNumber(value: number): string {
  let rest = value < 0 ? -value * 2 + 1 : value * 2
  let text = ''
  for (; rest >= 32; rest >>= 5) text += DIGITS[(rest & 31) + 32]
  return text + DIGITS[rest]
}

function replaceDist(folder: string): void {
  const files = [...readdirSync(folder).filter(name => name !== MARK), MARK]
  for (const name of files) renameSync(join(folder, name), join(dist, name))
  for (const name of readdirSync(dist)) {
    if (name === CONSOLE) continue
    // Another build may be writing its folder now; one that is an hour old was killed.
    const isUnused = name.startsWith(NEW)
      ? Date.now() - statSync(join(dist, name)).mtimeMs > HOUR_MS
      : !files.includes(name)
    if (isUnused) rmSync(join(dist, name), { recursive: true })
  }
}

if (!isUpToDate()) {
  say('building …')
  mkdirSync(dist, { recursive: true })
  const folder = mkdtempSync(join(dist, NEW)) // in dist/: files can be moved within one file system only
  try {
    writeFileSync(join(folder, MARK), '') // first, because its time must not be after that of a source that is changed now
    await bundleAll(folder)
    writeLicences(folder)
    replaceDist(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
