// weir check reports everything that keeps a gateway from starting or from working as configured, all at once and with a
// remedy. It reports nothing for a correct configuration.

import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { editDistance, nearestName } from '../../src/base/text/nearest-name.ts'
import { runChecks } from '../../src/cli/checks/check.ts'
import { checkDisk, checkFiles, checkLauncher } from '../../src/cli/checks/machine.ts'
import type { CheckFinding } from '../../src/management/doctor/finding.ts'
import { cleanUp, freshFolder, serve, stopServed, weir } from '../front/weir-process.ts'
import { openDatabase } from '../support/database.ts'
import { freePort } from '../support/free-port.ts'

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

/** A data folder with secrets, as a start leaves it. */
function makeFolder(): void {
  mkdirSync(folder, { mode: 0o700 })
  for (const name of ['pepper', 'jwt-secret', 'encryption-key']) secret(name)
}

const secret = (name: string, text = name + SECRET): void => writeFileSync(join(folder, name), text, { mode: 0o600 })

function providerFile(text: string): void {
  const ownFolder = join(home, 'providers')
  mkdirSync(ownFolder)
  writeFileSync(join(ownFolder, 'river.json'), text)
  env.WEIR_PROVIDERS = ownFolder
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

/** A data folder with a database, as a successful start leaves it. */
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

test('reports nothing for a data folder that does not exist yet, and does not create it', async () => {
  expect(await runChecks(env)).toEqual([])
  expect(existsSync(folder)).toBe(false)
})

test('reports nothing for a data folder that a start has created, and adds no file to it', async () => {
  await realFolder()
  const before = readdirSync(folder).map(name => [name, statSync(join(folder, name)).mtimeMs])
  expect(await runChecks(env)).toEqual([])
  const files = before.map(([name]) => name as string).filter(name => !name.includes('-'))
  expect(readdirSync(folder).filter(name => !name.includes('-'))).toEqual(files)
})

test('notes variables of other programs for what a setting is for, and none that Weir itself reads', async () => {
  Object.assign(env, { METRICS_HOST: '0.0.0.0', WEIR_KEY: 'wk-1', WEIR_URL: 'http://weir', WEIR_TOKEN: 'x' })
  expect(await runChecks(env)).toEqual([])
  Object.assign(env, { GOOGLE_API_KEY: 'x', HTTPS_PROXY: 'http://gate', MISTRAL_KEY: 'x', OPENAI_API_BASE: 'x' })
  const remedyOf = (ours: string): string => `Set ${ours} if it is for Weir.`
  expect((await runChecks(env)).map(({ weight, about, remedy }) => [weight, about, remedy])).toEqual([
    ['note', 'GOOGLE_API_KEY', remedyOf('GEMINI_API_KEY')],
    ['note', 'HTTPS_PROXY', remedyOf('WEIR_PROXY')],
    ['note', 'MISTRAL_KEY', remedyOf('MISTRAL_API_KEY')],
    ['note', 'OPENAI_API_BASE', remedyOf('OPENAI_BASE_URL')],
  ])
  Object.assign(env, { GEMINI_API_KEY: 'x', WEIR_PROXY: 'http://gate:1', MISTRAL_API_KEY: 'x' })
  expect((await runChecks(env)).map(({ about }) => about)).toEqual(['OPENAI_API_BASE'])
})

const rows: Record<string, readonly [bring: () => unknown, about: string | RegExp, remedy: RegExp]> = {
  'a setting that is not a number': [
    () => (env.WEIR_DRAIN_SECONDS = 'soon'),
    'WEIR_DRAIN_SECONDS',
    /Correct WEIR_DRAIN_SECONDS/,
  ],
  'an unknown log level': [() => (env.LOG_LEVEL = 'loud'), 'LOG_LEVEL', /Correct LOG_LEVEL/],
  'a local server that is misspelt': [
    () => (env.WEIR_LOCAL_SERVERS = 'vllm=8001,olama=11500'),
    'WEIR_LOCAL_SERVERS',
    /^Did you mean ollama\?/,
  ],
  'a local server that does not exist': [
    () => (env.WEIR_LOCAL_SERVERS = 'openai=11500'),
    'WEIR_LOCAL_SERVERS',
    /^Local servers are .*\bollama\b/,
  ],
  'an invalid proxy': [() => (env.WEIR_PROXY = 'socks5://gate'), 'WEIR_PROXY', /Correct WEIR_PROXY/],
  'invalid private hosts': [() => (env.WEIR_PRIVATE_HOSTS = 'a b'), 'WEIR_PRIVATE_HOSTS', /Correct WEIR_PRIVATE_HOSTS/],
  'a setting that is misspelt': [() => (env.WEIR_ATEMPTS = '2'), 'WEIR_ATEMPTS', /Did you mean WEIR_ATTEMPTS\?/],
  'an unknown setting': [() => (env.WEIR_FASTER = 'on'), 'WEIR_FASTER', /^Remove it/],
  'a setting with a prefix that it does not have': [() => (env.WEIR_PORT = '80'), 'WEIR_PORT', /^Did you mean PORT\?$/],
  'a key with our prefix': [() => (env.WEIR_OPENAI_API_KEY = 'x'), 'WEIR_OPENAI_API_KEY', /mean OPENAI_API_KEY\?$/],
  'a setting whose prefix is misspelt': [() => (env.WIER_DEMO = 'off'), 'WIER_DEMO', /^Did you mean WEIR_DEMO\?$/],
  'a setting in lower case': [() => (env.weir_demo = 'off'), 'weir_demo', /^Did you mean WEIR_DEMO\?$/],
  'a host that is not of this machine': [() => (env.HOST = '192.0.2.1'), 'HOST', /^Set HOST to an address/],
  'a host that is a URL': [() => (env.HOST = 'http://127.0.0.1'), 'HOST', /^Set HOST to an address/],
  'a host of metrics that is no address': [
    () => Object.assign(env, { METRICS_HOST: '999.1.1.1', METRICS_PORT: '0' }),
    'METRICS_HOST',
    /^Set METRICS_HOST to an address/,
  ],
  'a number of a process without a database': [() => (env.WEIR_PROCESS = '1'), 'WEIR_PROCESS', /Correct WEIR_PROCESS,/],
  "a vendor's variable that is misspelt": [() => (env.GEMINI_APIKEY = 'x'), 'GEMINI_APIKEY', /GEMINI_API_KEY\?/],
  'a variable of a vendor with two letters swapped': [
    () => (env.OPENAI_BASE_ULR = 'x'),
    'OPENAI_BASE_ULR',
    /Did you mean OPENAI_BASE_URL\?/,
  ],
  'a folder of providers that does not exist': [() => (env.WEIR_PROVIDERS = '/nowhere'), 'WEIR_PROVIDERS', /can read/],
  'a provider file that is not JSON': [() => providerFile('{'), /river\.json$/, /docs\/reference\/providers\.md/],
  'a base URL that is not allowed': [
    () => (env.OPENAI_BASE_URL = 'ftp://x'),
    'OPENAI_BASE_URL',
    /Correct OPENAI_BASE_URL, or remove it/,
  ],
  'a key in quotes': [() => (env.OPENAI_API_KEY = '"sk-1"'), 'OPENAI_API_KEY', /Correct OPENAI_API_KEY/],
  'a key with a sign that no header can carry': [
    () => (env.OPENAI_API_KEY = 'sk-1,sk-…'),
    'OPENAI_API_KEY',
    /Correct OPENAI_API_KEY/,
  ],
  'a key with the name of its scheme': [
    () => (env.OPENAI_API_KEY = 'Bearer sk-1'),
    'OPENAI_API_KEY',
    /Correct OPENAI_API_KEY/,
  ],
  'a key of a provider whose address is not known': [
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
  'a data folder that is a file': [() => writeFileSync(folder, 'x'), 'WEIR_DATA', /^Set WEIR_DATA to another folder/],
  'a data folder below a file': [
    () => {
      writeFileSync(join(home, 'file'), 'x', { mode: 0o644 })
      env.WEIR_DATA = join(home, 'file', 'data')
    },
    'WEIR_DATA',
    /^Set WEIR_DATA to another folder/,
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
  'a file that is not a database': [
    () => {
      makeFolder()
      writeFileSync(join(folder, 'weir.db'), 'x'.repeat(5_000), { mode: 0o600 })
    },
    /weir\.db$/,
    /weir restore/,
  ],
  'a secret that is missing': [
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
  'the same port for calls and metrics': [
    () => {
      env.PORT = '1'
      env.METRICS_PORT = '1'
    },
    'METRICS_PORT',
    /another/,
  ],
  'a start without the launcher': [() => delete env.BUN_CONFIG_MAX_HTTP_REQUESTS, /^BUN_/, /bin\/weir/],
}

describe('weir check reports as the only problem, with a remedy,', () => {
  test.each(Object.entries(rows))('%s', async (_, [cause, about, remedy]) => {
    await cause()
    const found = await problems()
    expect(found).toHaveLength(1)
    expect(found[0]!.about).toMatch(typeof about === 'string' ? new RegExp(`^${about}$`) : about)
    expect(found[0]!.remedy).toMatch(remedy)
    expect(JSON.stringify(found)).not.toContain('canary')
  })

  test('a port that is taken, unless by the gateway itself', async () => {
    const taken = Bun.listen({ hostname: '127.0.0.1', port: freePort(), socket: { data() {} } })
    env.PORT = String(taken.port)
    const found = await problems()
    taken.stop(true)
    expect(found).toMatchObject([{ about: 'PORT', remedy: expect.stringContaining('PORT') }])
    expect(await problems()).toEqual([])
  })

  test('too little disk space, too few open files, and a low limit of the launcher', () => {
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

test('reports rules for missing models, an older schema and a missing key as notes', async () => {
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

test('reports several problems at once, and exits with 1', async () => {
  const bad = { ...env, LOG_LEVEL: 'loud', WEIR_CALLS_MAX: 'x', WEIR_ATEMPTS: '2', OPENAI_APIKEY: 'x' }
  const { code, stdout, stderr } = await weir(folder, 'check --json', bad)
  expect([code, stderr]).toEqual([1, ''])
  const { well, troubles } = JSON.parse(stdout) as { well: boolean; troubles: CheckFinding[] }
  const about = troubles.filter(({ weight }) => weight === 'problem').map(one => one.about)
  expect([well, about]).toEqual([false, ['LOG_LEVEL', 'WEIR_CALLS_MAX', 'WEIR_ATEMPTS', 'OPENAI_APIKEY']])
  const text = await weir(folder, 'check', bad)
  expect(text.code).toBe(1)
  expect(text.stdout).toContain('✗ WEIR_ATEMPTS: Weir has no setting of this name')
  expect(text.stdout).toContain('    Did you mean WEIR_ATTEMPTS?')
})

test('does not report the port of the gateway that runs on the same data folder', async () => {
  const data = freshFolder()
  const served = await serve(data, { WEIR_BALLAST_MB: '0', WEIR_LOCAL_SERVERS: 'off' })
  const port = new URL(served.url).port
  const { code, stdout } = await weir(data, 'check', { PORT: port, WEIR_CALLS_MAX: '100' })
  expect([code, stdout]).toEqual([0, expect.stringContaining('Weir can start with these settings.')])
  expect(await stopServed(served)).toBe(0)
  expect((await weir(data, 'check now', {})).code).toBe(2)
})

test('editDistance counts edits up to a limit, and nearestName finds the nearest name', () => {
  expect([
    editDistance('abc', 'abc', 2),
    editDistance('abc', 'acb', 2),
    editDistance('abc', 'ab', 2),
    editDistance('abc', 'x', 2),
  ]).toEqual([0, 1, 1, 3])
  expect(nearestName('OPEN_AI_API_KEY', ['OPENAI_API_KEY', 'OPENAI_BASE_URL'])).toBe('OPENAI_API_KEY')
  expect(nearestName('SOMETHING', ['OPENAI_API_KEY'])).toBeUndefined()
})
