// Writes dist/console/: the pages of the web console, which the gateway serves below /console. Every file but index.html
// has a hash of its content in its name, so that browsers can cache it for ever, and has compressed copies (.gz, .br).
// Does nothing if no source has changed.
//
// A page may import only types from src/, and the tables in SHARED.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'
import type { BunPlugin } from 'bun'

const root = join(import.meta.dir, '..')
const source = join(root, 'console')
const dist = join(root, 'dist')
const target = join(dist, 'console')
/** The tables that pages import from src/. */
const SHARED = ['src/base/errors.ts', 'src/base/text/export-lines.ts']
const BASE = '/console/'
/** The fonts that styles may name, and their files in packages. */
const FONTS: Readonly<Record<string, string>> = {
  'inter-latin.woff2': '@fontsource-variable/inter/files/inter-latin-wght-normal.woff2',
}

interface BuiltFile {
  readonly bytes: number
  readonly gzip: number
  readonly brotli: number
  /** The module whose page the file is, unless several files share it. */
  readonly source?: string
  /** The files that a browser loads with this one. */
  readonly imports?: readonly string[]
}

/** dist/console/build.json. */
export interface ConsoleBuild {
  /** Changes with any file. With it, open tabs notice that the console was upgraded. */
  readonly build: string
  /** A hash of all sources, with which a run decides whether dist/console/ is up to date. */
  readonly sources: string
  /** By the path below /console/. */
  readonly files: Readonly<Record<string, BuiltFile>>
}

const hashOf = (content: string | Uint8Array): string =>
  new Bun.CryptoHasher('sha256').update(content).digest('hex').slice(0, 10)

/** `assets/<name>-<hash>.<ending>`. */
function assetName(path: string, content: string | Uint8Array): string {
  const [, name, ending] = /^(.*)\.(\w+)$/.exec(basename(path))!
  return `assets/${name}-${hashOf(content)}.${ending}`
}

function hashSources(): string {
  const ours = ['*.*', 'src/**/*'].flatMap(pattern => [...new Bun.Glob(pattern).scanSync(source)]).sort()
  const hash = new Bun.CryptoHasher('sha256')
  for (const path of [...ours.map(name => join(source, name)), import.meta.path, ...SHARED.map(p => join(root, p))])
    hash.update(`${relative(root, path)}\n`).update(readFileSync(path))
  return hash.digest('hex')
}

function isUpToDate(sources: string): boolean {
  const path = join(target, 'build.json')
  return existsSync(path) && (JSON.parse(readFileSync(path, 'utf8')) as ConsoleBuild).sources === sources
}

const checkImports: BunPlugin = {
  name: 'check imports',
  setup(build) {
    build.onResolve({ filter: /\.css$/ }, ({ path, importer }) => {
      throw new Error(`${relative(root, importer)} imports ${path}: styles are imported by console/src/look/styles.css`)
    })
    build.onLoad({ filter: /\.tsx?$/ }, ({ path }) => {
      const name = relative(root, path)
      if (name.startsWith('console/') || SHARED.includes(name)) return undefined
      throw new Error(`${name} is imported by a page, which may import types from src/ only ("import type")`)
    })
  },
}

interface Metafile {
  readonly outputs: Readonly<
    Record<string, { readonly entryPoint?: string; readonly imports: readonly { path: string; kind: string }[] }>
  >
}

type Contents = Map<string, { readonly content: string | Uint8Array; readonly about?: Partial<BuiltFile> }>

/** Builds the modules, with one file for each page, which is loaded when the page is first opened. */
async function bundlePages(): Promise<Contents> {
  const { outputs, metafile } = await Bun.build({
    entrypoints: [join(source, 'src/main.tsx')],
    root: source,
    target: 'browser',
    splitting: true,
    minify: true,
    metafile: true,
    naming: { entry: 'assets/[name]-[hash].[ext]', chunk: 'assets/[name]-[hash].[ext]' },
    publicPath: BASE,
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [checkImports],
  })
  const described = (metafile as unknown as Metafile).outputs
  const files: Contents = new Map()
  for (const output of outputs) {
    const name = output.path.replace(/^\.\//, '')
    const { entryPoint, imports = [] } = described[output.path] ?? described[name] ?? {}
    const together = imports.filter(({ kind }) => kind === 'import-statement').map(({ path }) => below(path))
    const about = { imports: together, ...(entryPoint && { source: relative(source, join(root, entryPoint)) }) }
    files.set(name, { content: await output.text(), about })
  }
  return files
}

const below = (path: string): string => path.replace(/^(\.\/|\/console\/)/, '')

interface Tailwind {
  compile(css: string, options: object): Promise<{ build(candidates: readonly string[]): string }>
  optimize(css: string, options: { readonly minify: boolean }): { readonly code: string }
}
interface Oxide {
  readonly Scanner: new (options: { sources: readonly object[] }) => { scan(): readonly string[] }
}

/** All styles in one file, with the fonts that it names. */
async function bundleStyles(): Promise<Contents> {
  const path = join(source, 'src/look/styles.css')
  // They are packages of the console, not of the gateway.
  const { compile, optimize } = (await import(Bun.resolveSync('@tailwindcss/node', source))) as Tailwind
  const { Scanner } = (await import(Bun.resolveSync('@tailwindcss/oxide', source))) as Oxide
  const options = { base: dirname(path), from: path, onDependency: () => {} }
  const compiler = await compile(readFileSync(path, 'utf8'), options)
  const scanner = new Scanner({ sources: [{ base: join(source, 'src'), pattern: '**/*', negated: false }] })
  const files: Contents = new Map()
  const css = optimize(compiler.build(scanner.scan()), { minify: true }).code.replaceAll(
    /url\(["']?([^)"']+\.woff2)["']?\)/g,
    (_, font: string) => {
      const file = FONTS[basename(font)]
      if (file === undefined) throw new Error(`styles name ${font}; the fonts are ${Object.keys(FONTS).join(', ')}`)
      const content = readFileSync(Bun.resolveSync(file, source))
      const name = assetName(font, content)
      files.set(name, { content })
      return `url(${BASE}${name})`
    },
  )
  return files.set(assetName('styles.css', css), { content: css })
}

/** The script that runs before the first paint. It is not a module. */
async function bundleScript(name: string): Promise<Contents> {
  const { outputs } = await Bun.build({
    entrypoints: [join(source, name)],
    target: 'browser',
    format: 'iife',
    minify: true,
  })
  const content = await outputs[0]!.text()
  return new Map([[assetName(name, content), { content }]])
}

function addIcon(): Contents {
  const content = readFileSync(join(source, 'icon.svg'))
  return new Map([[assetName('icon.svg', content), { content }]])
}

/** index.html names its files as they are called in console/; here they get their built names. */
function writeIndex(files: Contents): string {
  const find = (stem: string): string => {
    const named = [...files.keys()].filter(key => new RegExp(`^assets/${stem}-\\w+\\.\\w+$`).test(key))
    // Modules that pages share are named after the entry, too; only the file of the entry itself names its source.
    const name = named.find(key => files.get(key)!.about?.source !== undefined) ?? named[0]
    if (name === undefined) throw new Error(`console/index.html names ${stem}, which was not built`)
    return name
  }
  const html = readFileSync(join(source, 'index.html'), 'utf8').replaceAll(
    /(href|src)="(?!\/|https?:|data:|#)([^"]+)"/g,
    (_, attribute: string, path: string) => `${attribute}="${BASE}${find(basename(path).replace(/\.\w+$/, ''))}"`,
  )
  const preloaded = files.get(find('main'))!.about?.imports ?? []
  const links = preloaded.map(name => `<link rel="modulepreload" href="${BASE}${name}" />`)
  return html.replace('</head>', `${links.join('')}</head>`)
}

const packBrotli = promisify(brotliCompress)

/** Writes a file and its compressed copies, unless compression saves nothing. */
async function writePacked(folder: string, name: string, content: string | Uint8Array): Promise<BuiltFile> {
  const bytes = Buffer.from(content)
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  writeFileSync(join(folder, name), bytes)
  if (name.endsWith('.woff2')) return { bytes: bytes.length, gzip: bytes.length, brotli: bytes.length }
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
  const packing = packBrotli(bytes, { params })
  // Smaller by 3 % than the gzip of zlib.
  const gz = Bun.gzipSync(bytes, { library: 'libdeflate', level: 12 })
  const br = await packing
  writeFileSync(join(folder, `${name}.gz`), gz)
  writeFileSync(join(folder, `${name}.br`), br)
  return { bytes: bytes.length, gzip: gz.length, brotli: br.length }
}

async function build(folder: string, sources: string): Promise<void> {
  const parts = await Promise.all([bundlePages(), bundleStyles(), bundleScript('theme.js'), addIcon()])
  const contents: Contents = new Map(parts.flatMap(part => [...part]))
  contents.set('index.html', { content: writeIndex(contents) })
  const names = [...contents.keys()].sort()
  const packed = await Promise.all(
    names.map(async name => {
      const { content, about } = contents.get(name)!
      return [name, { ...(await writePacked(folder, name, content)), ...about }] as const
    }),
  )
  const written: ConsoleBuild = {
    build: hashOf(names.map(name => hashOf(contents.get(name)!.content)).join()),
    sources,
    files: Object.fromEntries(packed),
  }
  writeFileSync(join(folder, 'build.json'), `${JSON.stringify(written, undefined, 1)}\n`)
}

/** The error, with its place in the source if it is known. */
function explain(fault: unknown): string {
  const faults = fault instanceof AggregateError ? fault.errors : [fault]
  return faults
    .map(
      (one: {
        message?: string
        position?: { file: string; line: number; column: number; lineText: string } | null
      }) => {
        const at = one.position
        if (!at?.file) return `  ${one.message ?? String(one)}`
        return `  ${relative(root, at.file)}:${at.line}:${at.column}: ${one.message}\n    ${at.lineText.trim()}`
      },
    )
    .join('\n')
}

/** Whether dist/console/ is up to date now. */
export async function buildConsole(): Promise<boolean> {
  const sources = hashSources()
  if (isUpToDate(sources)) return true
  mkdirSync(dist, { recursive: true })
  const folder = mkdtempSync(join(dist, '.new-'))
  try {
    await build(folder, sources)
    rmSync(target, { recursive: true, force: true })
    renameSync(folder, target)
    return true
  } catch (fault) {
    process.stderr.write(`weir: the console could not be built:\n${explain(fault)}\n`)
    return false
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (import.meta.main) process.exit((await buildConsole()) ? 0 : 1)
