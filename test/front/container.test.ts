// The Docker image, without Docker: the files that the Dockerfile copies, and only the packages that it installs, must
// be enough to serve a call, to pass the health check and to read every page that a message names, on a file system that
// can be written below the data folder only.

import { afterAll, describe, expect, test } from 'bun:test'
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { readConfig } from '../../src/config.ts'
import { rawRequest } from '../support/raw.ts'
import { ask, bearer, CHAT, goodBody } from './asking.ts'
import { shippedPackages } from './shipped-packages.ts'
import { cleanUp, freshFolder, programOf, serve, stopServed } from './weir-process.ts'

const ROOT = join(import.meta.dir, '..', '..')
const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8')

afterAll(cleanUp)

interface Instruction {
  readonly name: string
  readonly rest: string
}

/** The stages of the Dockerfile, each with its FROM as the first instruction. No instruction has more than one line. */
function readStages(): readonly (readonly Instruction[])[] {
  const lines = read('Dockerfile').split('\n')
  const instructions = lines.flatMap(line => {
    const [, name, rest] = /^([A-Z]+) (.+)$/.exec(line) ?? []
    return name === undefined ? [] : [{ name, rest: rest! }]
  })
  const starts = instructions.flatMap(({ name }, at) => (name === 'FROM' ? [at] : []))
  return starts.map((start, at) => instructions.slice(start, starts[at + 1]))
}

const stages = readStages()
const [install, final] = [stages[0]!, stages.at(-1)!]
const argumentsOf = (stage: readonly Instruction[], name: string): readonly string[] =>
  stage.filter(instruction => instruction.name === name).map(({ rest }) => rest)

interface CopiedFile {
  /** A path in the checkout. */
  readonly source: string
  /** The working directory of the instruction, and a path in it. */
  readonly folder: string
  readonly target: string
}

/** What the first stage copies from the checkout. */
function readCopies(): readonly CopiedFile[] {
  let folder = '/'
  return install.flatMap(({ name, rest }) => {
    if (name === 'WORKDIR') folder = rest
    if (name !== 'COPY') return []
    const [target, ...sources] = rest.split(' ').reverse()
    return sources.map(source => ({ source, folder, target: target === './' ? source : target! }))
  })
}

const copies = readCopies()

const ignoreLines = read('.dockerignore')
  .split('\n')
  .filter(line => line !== '' && !line.startsWith('#'))
/** The lines after the exceptions name what the exceptions let through although the image does not need it. */
const isIgnored = (path: string): boolean =>
  ignoreLines.some(line => !line.startsWith('!') && new Bun.Glob(line).match(path))

/** A package is linked. If the Dockerfile deletes folders of it, the rest is copied: a link would lead to those folders. */
function addPackage(path: string, image: string): void {
  const deleted = argumentsOf(install, 'RUN').flatMap(line => /^rm -r (.+)$/.exec(line)?.[1]?.split(' ') ?? [])
  mkdirSync(dirname(join(image, path)), { recursive: true })
  if (deleted.some(folder => folder.startsWith(`${path}/`))) {
    const filter = (source: string): boolean => !deleted.includes(source.slice(ROOT.length + 1))
    cpSync(join(ROOT, path), join(image, path), { recursive: true, filter })
  } else symlinkSync(join(ROOT, path), join(image, path))
}

function buildImage(): string {
  const image = freshFolder()
  for (const { source, folder, target } of copies) {
    if (folder !== '/weir') continue
    const filter = (path: string): boolean => path === join(ROOT, source) || !isIgnored(path.slice(ROOT.length + 1))
    cpSync(join(ROOT, source), join(image, target), { recursive: true, filter })
  }
  for (const path of shippedPackages()) addPackage(path, image)
  symlinkSync(join(ROOT, 'console', 'node_modules'), join(image, 'console', 'node_modules'))
  const builds = argumentsOf(install, 'RUN').filter(line => line.startsWith('bin/weir-bun scripts/build'))
  for (const build of builds) {
    const built = Bun.spawnSync(build.split(' '), { cwd: image, stdio: ['ignore', 'ignore', 'pipe'] })
    if (!built.success) throw new Error(built.stderr.toString())
  }
  for (const folder of ['scripts', 'console']) rmSync(join(image, folder), { recursive: true, force: true })
  return image
}

const image = buildImage()
const WEIR = join(image, 'bin', 'weir')

/** The environment of the image, for a data folder of this test. */
function imageEnvironment(data: string): Readonly<Record<string, string>> {
  const pairs = argumentsOf(final, 'ENV').flatMap(line =>
    line.split(' ').map(pair => pair.split('=') as [string, string]),
  )
  const { PATH, HOST, ...env } = Object.fromEntries(
    pairs.map(([name, value]) => [name, value.replace(/^\/data$/, data)]),
  )
  expect([PATH, HOST]).toEqual(['/weir/bin:$PATH', '0.0.0.0'])
  return { ...env, PORT: '0' }
}

describe('the Dockerfile', () => {
  test('pins its base images, has two stages, and ends as a numeric user', () => {
    expect(stages.length).toBe(2)
    for (const [from] of stages)
      expect(from!.rest).toMatch(/^[a-z]+:[\w.-]+\d[\w.-]*@sha256:[0-9a-f]{64}( AS install)?$/)
    expect(argumentsOf(final, 'USER')).toEqual(['10001:10001'])
    expect(argumentsOf(final, 'RUN')).toEqual(['mkdir -m 700 /data && chown 10001:10001 /data'])
    expect(argumentsOf(final, 'VOLUME')).toEqual(['/data'])
  })

  test('copies files that exist, and .dockerignore lets through exactly these', () => {
    const sources = new Set(copies.map(({ source }) => source))
    expect(Array.from(sources).filter(source => !existsSync(join(ROOT, source)))).toEqual([])
    const exceptions = ignoreLines.filter(line => line.startsWith('!')).map(line => line.slice(1))
    expect(exceptions.sort()).toEqual(Array.from(sources).sort())
    expect(ignoreLines[0]).toBe('*')
  })

  test('the second stage copies folders that the first one has filled', () => {
    expect(argumentsOf(final, 'COPY')).toEqual([
      '--from=install /packages/node_modules /weir/node_modules',
      '--from=install /weir /weir',
    ])
    expect(new Set(copies.map(({ folder }) => folder))).toEqual(new Set(['/packages', '/weir']))
  })

  test('starts a program that is in the image', () => {
    const [program] = JSON.parse(argumentsOf(final, 'ENTRYPOINT')[0]!) as [string]
    expect(program.replace(/^\/weir/, image)).toBe(WEIR)
    expect(existsSync(WEIR)).toBe(true)
  })
})

/** The exit code of the health check, for a gateway on this port. */
async function healthCheck(port: string): Promise<number> {
  const [, json] = / CMD (\[.+\])$/.exec(argumentsOf(final, 'HEALTHCHECK')[0]!)!
  const [program, ...args] = JSON.parse(json!) as [string, ...string[]]
  // A proxy that nobody runs: the check must not use it.
  const env = { PATH: process.env.PATH, PORT: port, HTTP_PROXY: 'http://127.0.0.1:9', http_proxy: 'http://127.0.0.1:9' }
  return await Bun.spawn([program.replace(/^\/weir/, image), ...args], { env, stdout: 'inherit', stderr: 'inherit' })
    .exited
}

test('the files of the image serve a call, and the health check agrees', async () => {
  const data = freshFolder()
  const served = await serve(data, imageEnvironment(data), WEIR)
  expect(programOf(served)).toBe(join(image, 'dist', 'weir.js'))
  const key = /wk-[0-9A-Za-z]{36}/.exec(served.said())![0]
  const answer = await rawRequest(served.url, ask('POST', CHAT, bearer(key), goodBody({ model: 'demo/echo' })))
  expect(answer.status).toBe(200)
  for (const page of ['/docs', '/console/']) expect((await rawRequest(served.url, ask('GET', page))).status).toBe(200)
  const { port } = new URL(served.url)
  expect(await healthCheck(port)).toBe(0)
  expect(await stopServed(served)).toBe(0)
  expect(await healthCheck(port)).toBe(1)
})

test('the token counter works without the folders that the Dockerfile deletes', async () => {
  const program = "console.log((await import('gpt-tokenizer/encoding/o200k_base')).countTokens('Hello, river'))"
  const child = Bun.spawn([join(image, 'bin', 'weir-bun'), '-e', program], { cwd: image, stdout: 'pipe' })
  expect([await child.exited, await child.stdout.text()]).toEqual([0, '3\n'])
})

const files = readdirSync(image, { recursive: true, encoding: 'utf8' })

test('the image has no tests', () => {
  expect(files.filter(name => /\.test\.ts$|raw-client/.test(name) && !name.startsWith('node_modules/'))).toEqual([])
})

test('every page that the code names is in the image', () => {
  const sources = files.filter(name => name.startsWith('src/') && name.endsWith('.ts'))
  const named = sources.flatMap(
    name => readFileSync(join(image, name), 'utf8').match(/docs\/[\w/-]+\.\w+|\.env\.example/g) ?? [],
  )
  expect(named.length).toBeGreaterThan(0)
  expect([...new Set(named)].filter(page => !existsSync(join(image, page)))).toEqual([])
})

// A mount namespace in which everything but the data folder is read-only. Not every machine lets a test create one.
const canMount = Bun.spawnSync(['unshare', '-rm', 'true']).success

describe.skipIf(!canMount)('on a read-only root file system', () => {
  const script = 'mount --bind "$WEIR_DATA" "$WEIR_DATA" && mount -o remount,bind,ro / && exec "$@"'

  async function runReadOnly(data: string, command: readonly string[]): Promise<readonly [code: number, said: string]> {
    const child = Bun.spawn(['unshare', '-rm', 'sh', '-c', script, 'sh', ...command], {
      env: { PATH: process.env.PATH, HOME: '/', ...imageEnvironment(data), WEIR_DATA: data },
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [code, said, errors] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
    return [code, said + errors]
  }

  test('the file system is read-only', async () => {
    expect((await runReadOnly(freshFolder(), ['touch', join(image, 'written')]))[0]).toBe(1)
  })

  test('the gateway serves a call', async () => {
    const data = freshFolder()
    const program = join(freshFolder(), 'weir')
    writeFileSync(program, `#!/bin/sh\nexec unshare -rm sh -c '${script}' sh ${WEIR} "$@"\n`, { mode: 0o755 })
    const served = await serve(data, { ...imageEnvironment(data), HOME: '/' }, program)
    const key = /wk-[0-9A-Za-z]{36}/.exec(served.said())![0]
    const answer = await rawRequest(served.url, ask('POST', CHAT, bearer(key), goodBody({ model: 'demo/echo' })))
    expect(answer.status).toBe(200)
    expect(await stopServed(served)).toBe(0)
  })

  test('commands create a database, a key and a backup', async () => {
    const data = freshFolder()
    expect(await runReadOnly(data, [WEIR, 'keys', 'create', '--credit', '1'])).toEqual([
      0,
      expect.stringMatching(/^wk-/),
    ])
    expect(await runReadOnly(data, [WEIR, 'backup', join(data, 'copy')])).toEqual([0, expect.stringContaining('agree')])
  })

  test('a data folder that cannot be written is reported, with its path and what to do', async () => {
    const other = freshFolder()
    const [code, said] = await runReadOnly(freshFolder(), ['env', `WEIR_DATA=${other}`, WEIR, 'keys', 'create'])
    expect([code, said]).toEqual([1, expect.stringContaining(`weir: The data folder ${other} cannot be written: `)])
    expect(said).toContain('read-only file system')
    expect(said).toEndWith('. Set WEIR_DATA to another folder.\n')
    expect(said).not.toContain('    at ')
  })

  // Only root can give a file to somebody else. In the namespace, root has no rights over such a file.
  test.skipIf(process.getuid?.() !== 0)('a secret of another user is reported, with what to do', async () => {
    const data = freshFolder()
    const pepper = join(data, 'pepper')
    writeFileSync(pepper, 'x'.repeat(43), { mode: 0o600 })
    chownSync(pepper, 10_001, 10_001)
    const text = `weir: This user may not read ${pepper}. Give the data folder to the user that runs Weir: chown -R 0 ${data}\n`
    expect(await runReadOnly(data, [WEIR, 'keys', 'create'])).toEqual([1, text])
  })

  test.skipIf(process.getuid?.() !== 0)('a data folder of another user is reported, with what to do', async () => {
    const data = join(freshFolder(), 'data')
    mkdirSync(data, { mode: 0o700 })
    chownSync(data, 10_001, 10_001)
    const run = (...command: string[]) => runReadOnly(tmpdir(), ['env', `WEIR_DATA=${data}`, WEIR, ...command])
    const closed = `weir: This user may not open the data folder ${data}. Run the command as the user that runs Weir`
    for (const command of [['keys', 'list'], ['doctor']]) {
      expect(await run(...command)).toEqual([1, expect.stringContaining(closed)])
    }
    const [code, said] = await run('serve')
    expect([code, said]).toEqual([1, expect.stringContaining(`(chown 0 ${data}), or set WEIR_DATA`)])
  })

  test('SQLite can sort more than fits into its memory', async () => {
    const numbers = 'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100000)'
    const query = `${numbers} SELECT max(a) FROM (SELECT hex(randomblob(40)) AS a FROM c ORDER BY a LIMIT 90000)`
    const program = `new (require('bun:sqlite').Database)(':memory:').query(${JSON.stringify(query)}).get()`
    expect(await runReadOnly(freshFolder(), [join(image, 'bin', 'weir-bun'), '-e', program])).toEqual([0, ''])
  })
})

interface Compose {
  services: { weir: Record<string, unknown> & { environment: Record<string, string>; stop_grace_period: string } }
  volumes: Record<string, unknown>
}

describe('compose.yaml', () => {
  const { services, volumes } = Bun.YAML.parse(read('compose.yaml')) as Compose
  const { weir } = services

  test('passes on every setting of .env', () => {
    expect(weir.env_file).toEqual([{ path: '.env', required: false }])
    expect(Object.keys(weir.environment).sort()).toEqual(['HOST', 'PORT', 'WEIR_DATA'])
  })

  test('keeps the data in a volume, and lets the container write nothing else', () => {
    expect(weir.volumes).toEqual(['weir-data:/data'])
    expect(weir.environment.WEIR_DATA).toBe('/data')
    expect(Object.keys(volumes)).toEqual(['weir-data'])
    expect(weir).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] })
  })

  test('waits for active calls before it kills the gateway', () => {
    expect(Number.parseInt(weir.stop_grace_period, 10) * 1_000).toBeGreaterThan(readConfig({}).drainMs + 5_000)
  })
})
