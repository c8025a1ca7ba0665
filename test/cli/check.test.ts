// weir check: each thing that keeps a gateway from starting, or from doing what was meant, is told with what to do; all
// of them at once; and nothing is told of what is well.

import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { editDistance, nearestName } from '../../src/base/text/nearest-name.ts'
import { runChecks } from '../../src/cli/checks/check.ts'
import type { CheckFinding } from '../../src/cli/checks/findings.ts'
import { checkDisk, checkFiles, checkLauncher } from '../../src/cli/checks/machine.ts'
import { cleanUp, freshFolder, serve, stopServed, weir } from '../front/weir-process.ts'
import { openDatabase } from '../support/database.ts'

let home: string
let folder: string
let env: Record<string, string>

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'weir-check-'))
  folder = join(home, 'data')
  env = {
    WEIR_DATA: folder,
    PORT: '0',
    WEIR_CALLS_MAX: '100',
    BUN_CONFIG_MAX_HTTP_REQUESTS: '20000',
    OPENAI_API_KEY: 'sk-canary-check-0123456789',
    HOME: home,
    PATH: '/bin',
    OPENAI_ORG_ID: 'x',
    LANG: 'C',
    WAI_API_KEY: 'another vendor',
  }
})
afterEach(() => rmSync(home, { recursive: true, force: true }))
afterAll(cleanUp)

const SECRET = 'x'.repeat(40)

/** As a start has left it. */
function makeFolder(): void {
  mkdirSync(folder, { mode: 0o700 })
  for (const name of ['pepper', 'jwt-secret', 'encryption-key']) secret(name)
}

const secret = (name: string, text = name + SECRET): void => writeFileSync(join(folder, name), text, { mode: 0o600 })

function providerFile(text: string): void {
  const own = join(home, 'providers')
  mkdirSync(own)
  writeFileSync(join(own, 'river.json'), text)
  env.WEIR_PROVIDERS = own
}

const river = {
  id: 'river',
  name: 'River',
  baseUrl: 'https://{RIVER_HOST}/v1',
  keyEnv: 'RIVER_API_KEY',
  baseUrlEnv: 'RIVER_BASE_URL',
  speaks: { 'openai-chat': '/chat/completions' },
  sign: { 'openai-chat': 'bearer' },
  models: [],
}

/** Of a start that went well, stopped. */
async function realFolder(): Promise<void> {
  const { openStore } = await import('../../src/boot/open-store.ts')
  const { readConfig } = await import('../../src/config.ts')
  await (
    await openStore(readConfig({ WEIR_DATA: folder, WEIR_BALLAST_MB: '0', WEIR_LOCAL_SERVERS: 'off' }), {
      writeLog: () => {},
    })
  ).close()
}

function sql(text: string): void {
  const db = openDatabase(join(folder, 'weir.db'))
  db.run('PRAGMA ignore_check_constraints = ON')
  db.run(text)
  db.close()
}

const problems = async (): Promise<readonly CheckFinding[]> =>
  (await runChecks(env)).filter(({ weight }) => weight === 'problem')

test('nothing is wrong with a folder that is not there yet, and none is made', async () => {
  expect(await runChecks(env)).toEqual([])
  expect(existsSync(folder)).toBe(false)
})

test('nor with one that a start has made, and nothing in it is touched', async () => {
  await realFolder()
  const before = readdirSync(folder).map(name => [name, statSync(join(folder, name)).mtimeMs])
  expect(await runChecks(env)).toEqual([])
  const files = before.map(([name]) => name as string).filter(name => !name.includes('-'))
  expect(readdirSync(folder).filter(name => !name.includes('-'))).toEqual(files)
})

const rows: Record<string, readonly [bring: () => unknown, about: string | RegExp, remedy: RegExp]> = {
  'a number that is none': [
    () => (env.WEIR_DRAIN_SECONDS = 'soon'),
    'WEIR_DRAIN_SECONDS',
    /Correct WEIR_DRAIN_SECONDS/,
  ],
  'a level that is none': [() => (env.LOG_LEVEL = 'loud'), 'LOG_LEVEL', /Correct LOG_LEVEL/],
  'a proxy that is none': [() => (env.WEIR_PROXY = 'socks5://gate'), 'WEIR_PROXY', /Correct WEIR_PROXY/],
  'private hosts that are none': [
    () => (env.WEIR_PRIVATE_HOSTS = 'a b'),
    'WEIR_PRIVATE_HOSTS',
    /Correct WEIR_PRIVATE_HOSTS/,
  ],
  'a setting that is misspelt': [() => (env.WEIR_ATEMPTS = '2'), 'WEIR_ATEMPTS', /Did you mean WEIR_ATTEMPTS\?/],
  'a setting that nobody knows': [() => (env.WEIR_FASTER = 'on'), 'WEIR_FASTER', /^Remove it/],
  "a vendor's variable that is misspelt": [() => (env.GEMINI_APIKEY = 'x'), 'GEMINI_APIKEY', /GEMINI_API_KEY\?/],
  'letters swapped in it': [() => (env.OPENAI_BASE_ULR = 'x'), 'OPENAI_BASE_ULR', /Did you mean OPENAI_BASE_URL\?/],
  'a folder of providers that is not there': [() => (env.WEIR_PROVIDERS = '/nowhere'), 'WEIR_PROVIDERS', /can read/],
  'a provider file that is no JSON': [() => providerFile('{'), /river\.json$/, /docs\/reference\/providers\.md/],
  'an address that may not be used': [
    () => (env.OPENAI_BASE_URL = 'ftp://x'),
    /openai\.json$/,
    /Correct the file, or remove it/,
  ],
  'a key whose address is not known': [
    () => {
      providerFile(JSON.stringify(river))
      env.RIVER_API_KEY = 'x'
    },
    'RIVER_API_KEY',
    /Set RIVER_HOST, or RIVER_BASE_URL/,
  ],
  'a secret of the environment that is too short': [() => (env.WEIR_PEPPER = 'short'), 'WEIR_PEPPER', /^$/],
  'a secret in a file that is damaged': [
    () => {
      makeFolder()
      secret('jwt-secret', 'half')
    },
    /jwt-secret$/,
    /^$/,
  ],
  'a secret that others may read': [
    () => {
      makeFolder()
      chmodSync(join(folder, 'pepper'), 0o644)
    },
    /pepper$/,
    /chmod 600/,
  ],
  'a folder that others may read': [
    () => {
      makeFolder()
      chmodSync(folder, 0o755)
    },
    /data$/,
    /chmod 700/,
  ],
  'a restore that was cut off': [
    () => {
      makeFolder()
      mkdirSync(join(folder, 'restoring'))
      writeFileSync(join(folder, 'restoring', 'aside'), 'x')
    },
    'WEIR_DATA',
    /weir restore/,
  ],
  'a database that is none': [
    () => {
      makeFolder()
      writeFileSync(join(folder, 'weir.db'), 'x'.repeat(5_000), { mode: 0o600 })
    },
    /weir\.db$/,
    /weir restore/,
  ],
  'a secret that is gone': [
    async () => {
      await realFolder()
      rmSync(join(folder, 'pepper'))
    },
    /pepper$/,
    /Restore the file, or set WEIR_PEPPER/,
  ],
  'data of a later version': [
    async () => {
      await realFolder()
      sql('PRAGMA user_version = 99')
    },
    /weir\.db$/,
    /Start that version/,
  ],
  'rules that cannot be used': [
    async () => {
      await realFolder()
      sql(`INSERT INTO model_route (name, policy, members, author, changed_ms)
           VALUES ('a', 'balanced', '[]', 'x', 0)`)
    },
    'rules',
    /^$/,
  ],
  'the same port twice': [
    () => {
      env.PORT = '1'
      env.METRICS_PORT = '1'
    },
    'METRICS_PORT',
    /another/,
  ],
  'a launcher that was passed by': [() => delete env.BUN_CONFIG_MAX_HTTP_REQUESTS, /^BUN_/, /bin\/weir/],
}

describe('each is told, alone, with what to do', () => {
  test.each(Object.entries(rows))('%s', async (_, [bring, about, remedy]) => {
    await bring()
    const found = await problems()
    expect(found).toHaveLength(1)
    expect(found[0]!.about).toMatch(typeof about === 'string' ? new RegExp(`^${about}$`) : about)
    expect(found[0]!.remedy).toMatch(remedy)
    expect(JSON.stringify(found)).not.toContain('canary')
  })

  test('a port that is taken, unless by the gateway itself', async () => {
    const taken = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
    env.PORT = String(taken.port)
    const found = await problems()
    taken.stop(true)
    expect(found).toMatchObject([{ about: 'PORT', remedy: expect.stringContaining('PORT') }])
    expect(await problems()).toEqual([])
  })

  test('little room on the disk, and few open files', () => {
    expect(checkDisk({ dataFolder: home, ballastBytes: 0 })).toEqual([])
    expect(checkDisk({ dataFolder: home, ballastBytes: 2 ** 60 })).toMatchObject([{ weight: 'problem' }])
    expect(checkFiles(100, 456)).toEqual([])
    expect(checkFiles(100, 455)).toMatchObject([{ weight: 'note' }])
    expect(checkFiles(100, 355)).toMatchObject([{ weight: 'problem' }])
    expect(checkFiles(100, undefined)).toEqual([])
    const [low] = checkLauncher({ BUN_CONFIG_MAX_HTTP_REQUESTS: '256' })
    expect(low!.says).toContain('256')
  })
})

test('what is only to be known is a note: rules for what is not there, an older schema, no key at all', async () => {
  await realFolder()
  sql(`INSERT INTO model_route (name, policy, members, author, changed_ms)
       VALUES ('a', 'balanced', '[{"model":"gone/x","priority":0,"weight":1}]', 'x', 0)`)
  expect(await runChecks(env)).toMatchObject([
    { weight: 'note', about: 'rules', says: expect.stringContaining('gone/x') },
  ])
  sql('PRAGMA user_version = 3')
  expect(await runChecks(env)).toMatchObject([{ weight: 'note', about: join(folder, 'weir.db') }])
  delete env.OPENAI_API_KEY
  expect(await runChecks(env)).toMatchObject([{ weight: 'note', about: 'providers' }, {}])
})

test('all at once, and the exit code says so', async () => {
  const bad = { ...env, LOG_LEVEL: 'loud', WEIR_CALLS_MAX: 'x', WEIR_ATEMPTS: '2', OPENAI_APIKEY: 'x' }
  const { code, stdout, stderr } = await weir(folder, 'check --json', bad)
  expect([code, stderr]).toEqual([1, ''])
  const { well, troubles } = JSON.parse(stdout) as { well: boolean; troubles: CheckFinding[] }
  const about = troubles.filter(({ weight }) => weight === 'problem').map(one => one.about)
  expect([well, about]).toEqual([false, ['LOG_LEVEL', 'WEIR_CALLS_MAX', 'WEIR_ATEMPTS', 'OPENAI_APIKEY']])
  const told = await weir(folder, 'check', bad)
  expect(told.code).toBe(1)
  expect(told.stdout).toContain('✗ WEIR_ATEMPTS: Weir has no setting of this name')
  expect(told.stdout).toContain('    Did you mean WEIR_ATTEMPTS?')
})

test('beside a gateway that runs, its own port is not held against it; a start agrees with the check', async () => {
  const data = freshFolder()
  const served = await serve(data, { WEIR_BALLAST_MB: '0', WEIR_LOCAL_SERVERS: 'off' })
  const port = new URL(served.url).port
  const { code, stdout } = await weir(data, 'check', { PORT: port, WEIR_CALLS_MAX: '100' })
  expect([code, stdout]).toEqual([0, expect.stringContaining('Weir can start with these settings.')])
  expect(await stopServed(served)).toBe(0)
  expect((await weir(data, 'check now', {})).code).toBe(2)
})

test('how far names are apart', () => {
  expect([
    editDistance('abc', 'abc', 2),
    editDistance('abc', 'acb', 2),
    editDistance('abc', 'ab', 2),
    editDistance('abc', 'x', 2),
  ]).toEqual([0, 1, 1, 3])
  expect(nearestName('OPEN_AI_API_KEY', ['OPENAI_API_KEY', 'OPENAI_BASE_URL'])).toBe('OPENAI_API_KEY')
  expect(nearestName('SOMETHING', ['OPENAI_API_KEY'])).toBeUndefined()
})
