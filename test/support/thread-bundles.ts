// Each gateway of a test starts threads, and at each start Bun reads and compiles all modules of a thread again. So `npm test`
// bundles the threads once, with their bytecode, and the threads of the tests start from the bundles. Where the variable is
// not set, as in a single run of `bun test`, they start from their sources.

import { readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { BunPlugin } from 'bun'

const source = join(import.meta.dir, '..', '..', 'src')

/** The folder of the bundles. The name does not begin as those of settings do: `weir check` reports unknown settings. */
export const BUNDLES_VARIABLE = 'TEST_THREAD_BUNDLES'

/** A bundle lies elsewhere than its sources, which find files and other threads by their own place. */
const keepPlaces: BunPlugin = {
  name: 'keep places',
  setup(build) {
    build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8')
      if (!text.includes('import.meta')) return undefined
      const contents = text
        .replaceAll('import.meta.dir', JSON.stringify(dirname(path)))
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
      return { contents, loader: 'ts' }
    })
  },
}

export async function bundleThreads(outdir: string): Promise<void> {
  const entrypoints = [...new Bun.Glob('**/*-thread.ts').scanSync(source)].map(name => join(source, name))
  await Bun.build({
    entrypoints,
    outdir,
    naming: '[name].[ext]',
    target: 'bun',
    format: 'cjs', // bytecode needs it
    bytecode: true,
    packages: 'external',
    minify: { whitespace: true, syntax: true, identifiers: false },
    sourcemap: 'linked',
    plugins: [keepPlaces],
  })
}

/** From now on, a thread whose file is in `src` starts from its bundle. */
export function startThreadsFromBundles(folder: string): void {
  const Original = globalThis.Worker
  const inSource = pathToFileURL(`${source}/`).href
  const bundleOf = (url: string): string =>
    url.startsWith(inSource) && url.endsWith('-thread.ts')
      ? join(folder, basename(fileURLToPath(url)).replace(/ts$/, 'js'))
      : url
  globalThis.Worker = class extends Original {
    constructor(url: string | URL, options?: WorkerOptions) {
      super(bundleOf(String(url)), options)
    }
  }
}
