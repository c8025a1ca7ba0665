// The Docker image, without Docker: the files that the Dockerfile copies, and only the packages that it installs, must
// be enough to serve a call and to read every page that a message names.

import { afterAll, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { rawRequest } from '../support/raw.ts'
import { ask, bearer, CHAT, goodBody } from './asking.ts'
import { cleanUp, freshFolder, serve, stopServed } from './weir-process.ts'

const ROOT = join(import.meta.dir, '..', '..')
const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8')

afterAll(cleanUp)

/** The sources and the target of each COPY line that copies files of the checkout into the final image. */
function copied(): readonly (readonly [from: string, to: string])[] {
  const final = read('Dockerfile')
    .split(/^FROM .*\n/m)
    .at(-1)!
  return [...final.matchAll(/^COPY (?!--from)(.+) (\S+)$/gm)].flatMap(([, from, to]) =>
    from!.split(' ').map(source => [source, to === './' ? source : to!] as const),
  )
}

/** The folders of node_modules that `npm ci --omit=dev` installs. */
function shippedPackages(): readonly string[] {
  const lock = JSON.parse(read('package-lock.json')) as { packages: Record<string, { dev?: boolean }> }
  return Object.keys(lock.packages).filter(path => path !== '' && !lock.packages[path]!.dev)
}

function buildImage(): string {
  const image = freshFolder()
  for (const [from, to] of copied()) cpSync(join(ROOT, from), join(image, to), { recursive: true })
  for (const path of shippedPackages().filter(name => existsSync(join(ROOT, name)))) {
    mkdirSync(dirname(join(image, path)), { recursive: true })
    symlinkSync(join(ROOT, path), join(image, path))
  }
  return image
}

const image = buildImage()

test('the files of the image serve a call', async () => {
  const served = await serve(freshFolder(), {}, join(image, 'bin', 'weir'))
  const key = /wk-[0-9A-Za-z]{36}/.exec(served.said())![0]
  const answer = await rawRequest(served.url, ask('POST', CHAT, bearer(key), goodBody({ model: 'demo/echo' })))
  expect(answer.status).toBe(200)
  expect((await rawRequest(served.url, ask('GET', '/docs'))).status).toBe(200)
  expect(await stopServed(served)).toBe(0)
})

test('every page that the code names is in the image', () => {
  const names = readdirSync(join(image, 'src'), { recursive: true, encoding: 'utf8' })
  const files = names.filter(name => name.endsWith('.ts'))
  const named = files.flatMap(name => readFileSync(join(image, 'src', name), 'utf8').match(/docs\/[\w/-]+\.\w+/g) ?? [])
  expect(named.length).toBeGreaterThan(0)
  expect([...new Set(named)].filter(page => !existsSync(join(image, page)))).toEqual([])
})

test('compose.yaml passes on every setting of .env, and no .env file goes into the image', () => {
  interface Compose {
    services: { weir: { env_file: unknown; environment: Record<string, string> } }
  }
  const { weir } = (Bun.YAML.parse(read('compose.yaml')) as Compose).services
  expect(weir.env_file).toEqual([{ path: '.env', required: false }])
  expect(Object.keys(weir.environment).sort()).toEqual(['HOST', 'PORT', 'WEIR_DATA'])
  expect(read('.dockerignore').split('\n')).toContain('.env')
})
