// Tests that every setting reaches the configuration, and that .env.example names every setting with its default.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from './config.ts'

const settings = {
  HOST: ['0.0.0.0', { host: '0.0.0.0' }],
  PORT: ['81', { port: 81 }],
  WEIR_DATA: ['/d', { dataFolder: '/d' }],
  LOG_LEVEL: ['warn', { logLevel: 'warn' }],
  WEIR_ACCESS_LOG: ['on', { accessLog: true }],
  WEIR_PROVIDERS: ['/a:/b', { providerFolders: ['/a', '/b'] }],
  WEIR_CORS_ORIGIN: ['none', { corsOrigin: '' }],
  WEIR_DRAIN_SECONDS: ['7', { drainMs: 7_000 }],
  WEIR_DRAIN_DELAY_SECONDS: ['3', { drainDelayMs: 3_000 }],
  WEIR_CALLS_MAX: ['12', { callsMax: 12 }],
  WEIR_MEMORY_MB: ['4', { memoryBytesMax: 4_194_304 }],
  WEIR_SILENCE_SECONDS: ['8', { silenceMs: 8_000 }],
  WEIR_DEMO: ['off', { demo: false }],
  WEIR_CONSOLE: ['off', { console: false }],
  WEIR_SITE_NAME: ['Rapids', { siteName: 'Rapids' }],
  WEIR_SECURE_COOKIES: ['on', { secureCookies: true }],
  WEIR_BODIES_DAYS: ['0', { bodiesDays: 0 }],
  WEIR_RESPONSES_MB: ['64', { responsesBytesMax: 67_108_864 }],
  WEIR_RESPONSES_DAYS: ['7', { responsesDays: 7 }],
  WEIR_CHECKPOINT_SECONDS: ['9', { checkpointMs: 9_000 }],
  WEIR_BALLAST_MB: ['2', { ballastBytes: 2_097_152 }],
  WEIR_DATABASE_MB: ['3', { databaseBytesMax: 3_145_728 }],
  WEIR_AUDIT_SECONDS: ['0', { auditMs: 0 }],
  METRICS_PORT: ['9464', { metrics: { host: '127.0.0.1', port: 9_464 } }],
} as const

test.each(Object.entries(settings))('the setting %s=%j is read', (name, [value, expected]) => {
  expect(readConfig({})).not.toMatchObject(expected)
  expect(readConfig({ [name]: value })).toMatchObject(expected)
})

test('a value that a setting does not know is refused, and is not taken for its default', () => {
  for (const name of ['WEIR_DEMO', 'WEIR_CONSOLE', 'WEIR_ACCESS_LOG']) {
    for (const value of ['no', 'OFF', 'false', '0']) {
      expect(() => readConfig({ [name]: value })).toThrow(`${name} must be on or off.`)
    }
  }
  for (const value of ['true', 'ON', 'off']) {
    expect(() => readConfig({ WEIR_SECURE_COOKIES: value })).toThrow('WEIR_SECURE_COOKIES must be on or auto.')
  }
})

test('quotes around a value are named, for every setting', () => {
  for (const [name, [value]] of Object.entries(settings)) {
    for (const quoted of [`"${value}"`, `'${value}'`, ` "${value}" `]) {
      expect(() => readConfig({ [name]: quoted })).toThrow(`${name} has quotes around its value.`)
    }
  }
  expect(readConfig({ WEIR_SITE_NAME: `Anna's "Rapids"` }).siteName).toBe(`Anna's "Rapids"`)
})

test('a path that only a shell understands is refused', () => {
  for (const name of ['WEIR_DATA', 'WEIR_CONFIG', 'WEIR_PROVIDERS']) {
    for (const path of ['~', '~/weir']) expect(() => readConfig({ [name]: path })).toThrow(`${name} has a ~`)
  }
  expect(() => readConfig({ WEIR_PROVIDERS: '/a:~/b' })).toThrow('WEIR_PROVIDERS has a ~')
  expect(readConfig({ WEIR_DATA: '/srv/~weir' }).dataFolder).toBe('/srv/~weir')
})

test('private hosts and the proxy are read, and invalid values are refused with the name of the setting', () => {
  const env = { WEIR_PRIVATE_HOSTS: 'ollama, 10.0.0.0/8', WEIR_PROXY: 'http://u:p@gate:81' }
  const { privateHosts, proxy } = readConfig(env)
  expect([
    privateHosts.hasName('OLLAMA.'),
    privateHosts.hasAddress('10.1.2.3'),
    privateHosts.hasAddress('11.1.2.3'),
  ]).toEqual([true, true, false])
  expect(proxy!.reveal()).toBe('http://u:p@gate:81')
  const refused: Record<string, readonly string[]> = {
    WEIR_PRIVATE_HOSTS: ['169.254.169.254', 'metadata.google.internal', 'a b', '10.0.0.0/33', '127.1', 'http://x', '*'],
    WEIR_PROXY: ['gate:81', 'https://gate', 'socks5://gate', 'http://gate/x', 'http://gate?x', 'http://169.254.1.1'],
  }
  for (const [name, values] of Object.entries(refused)) {
    for (const value of values) expect(() => readConfig({ [name]: value })).toThrow(name)
  }
  expect(() => readConfig({ WEIR_PROXY: 'https://u:hush@gate' })).toThrow(/^(?!.*hush)/)
})

test('the URL of the database is read, and an invalid one is refused without showing it', () => {
  const url = 'postgres://weir:hush@db:5432/weir'
  expect(readConfig({ WEIR_DATABASE_URL: url }).databaseUrl!.reveal()).toBe(url)
  expect(readConfig({ WEIR_DATABASE_URL: ' ' }).databaseUrl).toBeUndefined()
  for (const invalid of ['mysql://u:hush@db/weir', 'hush', 'postgres://u:hush@db', 'postgres://u:hush@db/'])
    expect(() => readConfig({ WEIR_DATABASE_URL: invalid })).toThrow(/^WEIR_DATABASE_URL (?!.*hush)/)
})

test('the address of Redis is a secret, and an invalid one is refused without showing it', () => {
  const database = { WEIR_DATABASE_URL: 'postgres://db/weir' }
  const config = readConfig({ ...database, WEIR_REDIS_URL: 'rediss://default:hush@redis.example.com:6380/2' })
  expect(config.redisUrl!.reveal()).toContain('hush')
  expect(JSON.stringify({ ...config, env: {} })).not.toContain('hush')
  expect(readConfig({ ...database, WEIR_REDIS_URL: 'redis+unix:///run/redis/redis.sock' }).redisUrl).toBeDefined()
  for (const url of ['hush', 'redis.example.com:hush', 'http://:hush@host', 'redis://', 'redis+unix://', 'rediss:']) {
    expect(() => readConfig({ ...database, WEIR_REDIS_URL: url })).toThrow(/^WEIR_REDIS_URL must be (?!.*hush)/)
  }
  expect(() => readConfig({ WEIR_REDIS_URL: 'redis://host' })).toThrow('set WEIR_DATABASE_URL')
})

test('metrics have their own host, and none without a port', () => {
  expect(readConfig({ METRICS_PORT: '1', METRICS_HOST: '::1' }).metrics).toEqual({ host: '::1', port: 1 })
  expect(readConfig({ METRICS_HOST: '::1' }).metrics).toBeUndefined()
})

test('.env.example names every setting with its default', () => {
  const text = readFileSync(join(import.meta.dir, '..', '.env.example'), 'utf8')
  const examples = new Map([...text.matchAll(/^# ([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [name!, value!]))
  const matches = [...readFileSync(join(import.meta.dir, 'config.ts'), 'utf8').matchAll(/'([A-Z]+(?:_[A-Z]+)*)'/g)]
  const names = matches.map(([, name]) => name!)
  expect(names.length).toBeGreaterThan(15)
  expect(names.filter(name => !examples.has(name))).toEqual([])
  for (const name of names) {
    const config = readConfig({ [name]: examples.get(name) })
    expect([name, { ...config, env: {} }]).toEqual([name, { ...readConfig({}), env: {} }])
  }
})
