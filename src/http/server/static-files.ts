// Files that are built once and served from memory, each also packed as gzip and brotli. A build is read whole, so that a
// later build in the same folder never mixes with it.

import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { bounds } from '../../base/bounds.ts'

export interface StaticFiles {
  /** Changes with any file. */
  readonly build: string
  /** By their path in the folder. */
  readonly files: ReadonlyMap<string, StaticFile>
}

export interface StaticFile {
  readonly contentType: string
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly gzip: Uint8Array<ArrayBuffer> | undefined
  readonly brotli: Uint8Array<ArrayBuffer> | undefined
}

export type LoadStaticFiles = () => Promise<StaticFiles | undefined>

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** Reads the folder when the files are first asked for, and again for each later request until it is there. */
export function staticFilesIn(folder: string): LoadStaticFiles {
  let loading: Promise<StaticFiles | undefined> | undefined
  return async () => {
    loading ??= readBuild(folder)
    const files = await loading
    if (files === undefined) loading = undefined
    return files
  }
}

/** Undefined where nothing was built. */
async function readBuild(folder: string): Promise<StaticFiles | undefined> {
  try {
    const { build } = JSON.parse(await readFile(join(folder, 'build.json'), 'utf8')) as { build: string }
    const names = await readdir(folder, { recursive: true })
    const contents = new Map<string, Uint8Array<ArrayBuffer>>()
    for (const name of names) {
      if (extname(name) !== '') contents.set(name, new Uint8Array(await readFile(join(folder, name))))
    }
    const files = new Map<string, StaticFile>()
    for (const [name, bytes] of contents) {
      const contentType = contentTypes[extname(name)]
      if (contentType === undefined) continue
      files.set(name, { contentType, bytes, gzip: contents.get(`${name}.gz`), brotli: contents.get(`${name}.br`) })
    }
    return { build, files }
  } catch (fault) {
    if ((fault as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw fault
  }
}

/** The file in the smallest form that the client accepts. */
export function replyWithFile(
  file: StaticFile,
  acceptEncoding: string | undefined,
  headers: Readonly<Record<string, string>>,
): Response {
  const accepts = (name: string): boolean => acceptsEncoding(acceptEncoding, name)
  const [body, encoding] =
    file.brotli !== undefined && accepts('br')
      ? [file.brotli, 'br']
      : file.gzip !== undefined && accepts('gzip')
        ? [file.gzip, 'gzip']
        : [file.bytes, undefined]
  return new Response(body, {
    headers: {
      'content-type': file.contentType,
      'vary': 'accept-encoding',
      ...(encoding !== undefined && { 'content-encoding': encoding }),
      ...headers,
    },
  })
}

const acceptsEncoding = (header: string | undefined, name: string): boolean =>
  (header ?? '').split(',', bounds.headerPartsMax).some(entry => {
    const [coding, quality] = entry.toLowerCase().replaceAll(' ', '').split(';q=')
    return coding === name && Number(quality ?? 1) > 0
  })
