// Settings that apply, and settings that stop the start with a message that says what to do.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { AddressInfo, Server } from 'node:net'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../support/database.ts'
import { until } from '../support/gateway.ts'
import { rawRequest } from '../support/raw.ts'
import { ask } from './asking.ts'
import type { Ran } from './weir-process.ts'
import { cleanUp, freshFolder, serve, shell, stopServed, stopStarting, weir, weirSays } from './weir-process.ts'

afterAll(cleanUp)

const listenAnywhere = async (): Promise<[Server, number]> => {
  const server = createServer(socket => void socket.destroy())
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return [server, (server.address() as AddressInfo).port]
}

const hasIPv6 = Object.values(networkInterfaces()).some(all => all?.some(({ address }) => address === '::1'))

describe('these settings apply:', () => {
  test('WEIR_DATA, HOST and PORT', async () => {
    const [server, port] = await listenAnywhere()
    const closeServer = (): Promise<unknown> => new Promise(resolve => server.close(resolve))
    // All of 127/8 is the machine itself, but only Linux listens there without configuration.
    const host = process.platform === 'linux' ? '127.0.0.2' : 'localhost'
    // On Linux the port stays taken at 127.0.0.1, so that no other process gets it meanwhile.
    if (host === 'localhost') await closeServer()
    const folder = join(freshFolder(), 'made', 'on', 'the', 'way')
    const served = await serve(folder, { HOST: host, PORT: String(port), WEIR_SITE_NAME: 'Rapids' })
    expect(served.url).toBe(`http://${host}:${port}`)
    expect(existsSync(join(folder, 'weir.db'))).toBe(true)
    const answer = await rawRequest(served.url, ask('GET', '/api/public/settings'))
    expect(JSON.parse(answer.body.toString())).toMatchObject({ name: 'Rapids' })
    if (host === '127.0.0.2') await expect(rawRequest(`http://127.0.0.1:${port}`, ask('GET', '/'))).rejects.toThrow()
    expect(await stopServed(served)).toBe(0)
    if (host === '127.0.0.2') await closeServer()
  })

  test.skipIf(!hasIPv6)('HOST that is written as in a URL', async () => {
    const served = await serve(freshFolder(), { HOST: '[::1]' })
    expect(served.url).toMatch(/^http:\/\/\[::1\]:\d+$/)
    expect(await stopServed(served)).toBe(0)
  })

  test('none whose name is misspelt, and the start says so', async () => {
    const served = await serve(freshFolder(), { WEIR_ATEMPTS: '2', OPENAI_APIKEY: 'sk-1' })
    const warning = (name: string, ours: string): string =>
      `weir: warning: ${name}: Weir has no setting of this name, so it has no effect. Did you mean ${ours}?\n`
    await until(() => served.logged().includes(warning('WEIR_ATEMPTS', 'WEIR_ATTEMPTS')), 'the first warning')
    await until(() => served.logged().includes(warning('OPENAI_APIKEY', 'OPENAI_API_KEY')), 'the second warning')
    expect(await stopServed(served)).toBe(0)
  })

  test("WEIR_DEMO=off and WEIR_PROVIDERS: only the operator's own providers exist", async () => {
    const providers = freshFolder()
    const provider = {
      id: 'brook',
      name: 'Brook',
      baseUrl: 'http://127.0.0.1:9/v1',
      keyEnv: 'BROOK_API_KEY',
      baseUrlEnv: 'BROOK_BASE_URL',
      speaks: { 'openai-chat': '/chat/completions' },
      sign: 'bearer',
      models: [{ id: 'trout', price: { input: '1', output: '2' } }],
    }
    writeFileSync(join(providers, 'brook.json'), JSON.stringify(provider))
    const env = { WEIR_DEMO: 'off', WEIR_PROVIDERS: providers, BROOK_API_KEY: 'sk-brook' }
    const served = await serve(freshFolder(), env)
    const answer = await rawRequest(served.url, ask('GET', '/v1/models'))
    const { data } = JSON.parse(answer.body.toString()) as { data: { id: string }[] }
    expect(data.map(model => model.id)).toEqual(['brook/trout', 'trout'])
    expect(await stopServed(served)).toBe(0)
  })
})

function expectSentence({ code, stdout, stderr }: Ran, words: RegExp): void {
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^weir: [^\n]+\n$/)
  expect(stderr).toMatch(words)
}

test('a start that is stopped ends cleanly, and its key, which was not printed yet, is printed by the next start', async () => {
  let folder: string
  let stopped: Ran
  do {
    folder = freshFolder()
    stopped = await stopStarting(folder)
    expect(stopped.code).toBe(0)
  } while (stopped.stdout !== '') // this process may be too slow, and the start is over when it sends the signal
  const served = await serve(folder)
  expect(served.said()).toContain('wk-')
  expect(await stopServed(served)).toBe(0)
})

describe('the start is stopped by', () => {
  let taken: Server
  let takenPort: number
  const results = new Map<string, Ran>()
  const broken = freshFolder()

  const cases: readonly [string, Record<string, string>, RegExp][] = [
    ['PORT that is no number', { PORT: 'abc' }, /PORT/],
    ['PORT beyond all ports', { PORT: '70000' }, /PORT/],
    ['PORT below them', { PORT: '-1' }, /PORT/],
    ['LOG_LEVEL', { LOG_LEVEL: 'loud' }, /LOG_LEVEL/],
    ['WEIR_TRUSTED_PROXIES', { WEIR_TRUSTED_PROXIES: 'everybody' }, /WEIR_TRUSTED_PROXIES/],
    ['WEIR_TRUSTED_PROXIES cut off', { WEIR_TRUSTED_PROXIES: '10.0.0.0/' }, /WEIR_TRUSTED_PROXIES/],
    ['WEIR_CORS_ORIGIN', { WEIR_CORS_ORIGIN: 'app.example' }, /WEIR_CORS_ORIGIN/],
    ['WEIR_DRAIN_SECONDS', { WEIR_DRAIN_SECONDS: 'soon' }, /WEIR_DRAIN_SECONDS/],
    ['WEIR_PEPPER that is too short', { WEIR_PEPPER: 'short' }, /32 characters/],
    ['WEIR_PROVIDERS that is not there', { WEIR_PROVIDERS: '/nowhere/providers' }, /\/nowhere\/providers/],
    ['WEIR_PROVIDERS with a broken file', { WEIR_PROVIDERS: broken }, /broken\.json.*JSON/],
    ['an invalid base URL of a vendor', { OPENAI_API_KEY: 'x', OPENAI_BASE_URL: 'nonsense' }, /OPENAI_BASE_URL/],
    [
      'WEIR_DATA that is a file',
      { WEIR_DATA: join(broken, 'broken.json') },
      /is not a folder, but a file\. Set WEIR_DATA/,
    ],
    [
      'WEIR_DATA below a file',
      { WEIR_DATA: join(broken, 'broken.json', 'x') },
      /cannot be created: .*\. Set WEIR_DATA/,
    ],
    ['WEIR_DATA too long for a socket', { WEIR_DATA: `/tmp/${'x'.repeat(120)}` }, /WEIR_DATA/],
    ['PORT that is taken', {}, /another program uses this port\. .*set another PORT/],
    ['HOST that is not ours', { HOST: '192.0.2.1' }, /192\.0\.2\.1:.* no such address .*Set HOST to an address/],
    ['HOST that is a URL', { HOST: 'http://127.0.0.1' }, /no such address .*Set HOST to an address/],
    ['METRICS_HOST that is no address', { METRICS_HOST: '999.1.1.1', METRICS_PORT: '0' }, /Set METRICS_HOST to/],
  ]

  beforeAll(async () => {
    writeFileSync(join(broken, 'broken.json'), '{')
    ;[taken, takenPort] = await listenAnywhere()
    const start = async ([name, env]: (typeof cases)[number]): Promise<void> => {
      const settings = name === 'PORT that is taken' ? { PORT: String(takenPort) } : env
      results.set(name, await weir(freshFolder(), 'serve', settings))
    }
    // A few at a time: each is a process that needs a core.
    for (let at = 0; at < cases.length; at += 4) await Promise.all(cases.slice(at, at + 4).map(start))
    await new Promise(resolve => taken.close(resolve))
  })

  test.each(cases)('%s', (name, _, words) => {
    expectSentence(results.get(name)!, words)
  })

  test('a damaged secret, instead of making every key invalid', async () => {
    const folder = freshFolder()
    const key = await weirSays(folder, 'keys create --credit 1')
    writeFileSync(join(folder, 'pepper'), 'x')
    expectSentence(await weir(folder, 'serve'), /pepper is damaged/)
    expectSentence(await weir(folder, `balance ${key}`), /pepper is damaged/)
  })

  test('a damaged database', async () => {
    const folder = freshFolder()
    await weirSays(folder, 'keys create --credit 1')
    expect(await stopServed(await serve(folder))).toBe(0) // the first start fills the price table
    const file = join(folder, 'weir.db')
    const db = openDatabase(file, { readwrite: true })
    db.run('PRAGMA wal_checkpoint(TRUNCATE)') // a page that is still in the log would repair the damaged one
    const table = db.query("SELECT rootpage AS page FROM sqlite_schema WHERE name = 'price'").get()
    db.close()
    const { page } = table as { page: number }
    const bytes = readFileSync(file)
    writeFileSync(file, bytes.fill(0xa5, (page - 1) * 4096, page * 4096))
    const words = /The database is damaged: .*\. Restore a backup: weir restore/
    expectSentence(await weir(folder, 'serve'), words)
    writeFileSync(file, 'no database at all, and long enough to be looked at')
    for (const command of ['serve', 'keys list', 'audit']) expectSentence(await weir(folder, command), words)
  })

  test('a data folder of a later version', async () => {
    const folder = freshFolder()
    await weirSays(folder, 'keys create --credit 1')
    const db = openDatabase(join(folder, 'weir.db'))
    db.run('PRAGMA user_version = 99')
    db.close()
    expectSentence(await weir(folder, 'serve'), /later version/)
  })
})

describe('of the folder in which a command is typed,', () => {
  const WEIR = join(import.meta.dir, '..', '..', 'bin', 'weir')

  async function check(cwd: string, env: Record<string, string> = {}): Promise<string> {
    const path = { PATH: process.env.PATH, WEIR_DATA: freshFolder(), PORT: '0', ...env }
    const child = Bun.spawn([WEIR, 'check'], { cwd, env: path, stdout: 'pipe', stderr: 'pipe' })
    return (await child.stdout.text()) + (await child.stderr.text())
  }

  test('.env has settings, and the environment wins', async () => {
    const cwd = freshFolder()
    writeFileSync(join(cwd, '.env'), '\ufeffexport WEIR_ATTEMPTS="9" # too many\r\nWEIR_AUDIT_SECONDS=soon\r\n')
    const said = await check(cwd, { WEIR_AUDIT_SECONDS: '30' })
    expect(said).toContain('✗ WEIR_ATTEMPTS: WEIR_ATTEMPTS must be a whole number from 1 to 3.')
    expect(said).not.toContain('WEIR_AUDIT_SECONDS')
  })

  test('bunfig.toml, which can name programs to run, is not read', async () => {
    const cwd = freshFolder()
    writeFileSync(join(cwd, 'bunfig.toml'), 'preload = ["./other.ts"]\n')
    writeFileSync(join(cwd, 'other.ts'), 'console.log("the program of another ran")\n')
    expect(await check(cwd)).not.toContain('the program of another ran')
  })
})

describe('commands', () => {
  const folder = freshFolder()

  test.each([
    ['keys create --tier nobody', /Unknown tier "nobody"/],
    ['keys create --credit lots', /--credit/],
    ['keys create --credit=-5', /--credit/],
    ['keys create --qpm 0', /--qpm/],
    ['keys create --name a\u001b[2J', /--name is not valid: it must not contain control characters/],
    ['prices set demo/echo /', /neither JSON nor a file that can be read/],
    ['keys revoke key_00000000001', /Unknown key/],
    ['keys show wk-nonsense', /Unknown key/],
    ['balance wk-nonsense', /Unknown account/],
    ['balance key_00000000001', /Unknown account/],
  ] as const)('%s prints an error', async (command, words) => {
    expectSentence(await weir(folder, command), words)
  })

  test('on a folder without data only create a key; all others would report on a ledger that does not exist', async () => {
    const empty = join(freshFolder(), 'typo')
    for (const command of [
      'audit',
      'records',
      'balance key_00000000001',
      'prices show',
      'codes create --count 1 --amount 2',
    ]) {
      expectSentence(await weir(empty, command), /There is no data of Weir in /)
    }
    const named = await weir(empty, 'audit', { WEIR_DATA: 'no-such-folder' })
    expectSentence(named, new RegExp(`There is no data of Weir in ${join(process.cwd(), 'no-such-folder')}\\.`))
    expect(existsSync(empty)).toBeFalse()
    await weirSays(empty, 'keys create')
    expect(await weirSays(empty, 'prices show')).toBe('no prices')
    expect(readdirSync(empty).filter(name => name.startsWith('ballast'))).toEqual([])
  })

  test('that fail do not repeat a key', async () => {
    const foreignKey = 'wk-0oYAcdndvX1aetSk5RxD8SUjNfvr8A4Om7Xs'
    expect((await weir(folder, `balance ${foreignKey}`)).stderr).not.toContain(foreignKey)
  })

  test('say so when their output cannot be written', async () => {
    const { code, stderr } = await shell(`bin/weir help > /dev/full`, folder)
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^weir: The output cannot be written: ENOSPC.*\n$/)])
  })

  test('are listed by help', async () => {
    const help = await weir(folder, 'help')
    expect(help.code).toBe(0)
    for (const command of ['serve', 'keys create', 'keys revoke', 'balance', 'token', 'setup']) {
      expect(help.stdout).toContain(`  ${command}`)
    }
  })

  test.each([
    ['keys create --colour red', /colour/],
    ['keys revoke', /Usage: weir keys revoke <key or key id>/],
    ['backup', /Usage: weir backup <folder>/],
    ['restore', /Usage: weir restore <backup folder>/],
    ['serve now', /Usage: weir serve/],
    ['prices check demo', /Usage: weir prices check/],
    ['dance', /Unknown command "dance"\. See: weir help/],
    ['keys dance', /Unknown command "keys dance"\. Commands of "keys": create, list, show, set, rotate, revoke\.$/m],
    ['keys creat', /Unknown command "keys creat"\. Did you mean: weir keys create\? See: weir help keys$/m],
    ['kyes create', /Unknown command "kyes create"\. Did you mean: weir keys create\? See: weir help keys$/m],
    ['chanels', /Unknown command "chanels"\. Did you mean: weir channels\? See: weir help channels$/m],
    ['wk-0oYAcdndvX1aetSk5RxD8SUjNfvr8A4Om7Xs', /Unknown command\./],
  ] as const)('%s prints an error and exits with the code for a usage error', async (command, words) => {
    const { code, stdout, stderr } = await weir(folder, command)
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expect.stringMatching(words) })
    expect(stderr).toMatch(/^weir: [^\n]+\n$/)
  })

  test('with --help print their usage', async () => {
    expect(await weirSays(folder, 'top-up --help')).toMatch(/^weir top-up <account or key> <usd> .*\n +add money/)
  })
})
