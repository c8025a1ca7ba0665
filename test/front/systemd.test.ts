// deploy/weir.service, without systemd: its programs and folders are those of Weir, and it stops Weir as Weir expects.

import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../../src/config.ts'
import { cleanUp, freshFolder, serve, stopServed } from './weir-process.ts'

const ROOT = join(import.meta.dir, '..', '..')
const text = readFileSync(join(ROOT, 'deploy', 'weir.service'), 'utf8')
const directives = Array.from(text.matchAll(/^(\w+)=(.*)$/gm), ([, name, value]) => [name!, value!] as const)
const valuesOf = (name: string): readonly string[] =>
  directives.filter(([key]) => key === name).map(([, value]) => value)

afterAll(cleanUp)

test('the unit starts the gateway of /opt/weir, with its data in the state directory', () => {
  const [program, ...args] = valuesOf('ExecStart')[0]!.split(' ')
  expect(existsSync(program!.replace('/opt/weir', ROOT))).toBe(true)
  expect(args).toEqual(['serve'])
  expect(valuesOf('Environment')).toEqual([`WEIR_DATA=/var/lib/${valuesOf('StateDirectory')[0]!}`])
  expect(valuesOf('StateDirectoryMode')).toEqual(['0700'])
  expect(valuesOf('EnvironmentFile')).toEqual(['-/etc/weir/weir.env'])
  expect(valuesOf('User')).toEqual(['weir'])
})

test('the unit lets active calls end, and sends the signal to the gateway alone', () => {
  expect(Number(valuesOf('TimeoutStopSec')[0]) * 1_000).toBeGreaterThan(readConfig({}).drainMs + 5_000)
  expect(valuesOf('KillMode')).toEqual(['mixed'])
  expect(valuesOf('Restart')).toEqual(['on-failure'])
})

test('the program of the unit becomes the gateway, so that the signal of systemd reaches it', async () => {
  const served = await serve(freshFolder())
  if (existsSync('/proc/self/cmdline')) {
    expect(readFileSync(`/proc/${served.pid}/cmdline`, 'utf8').split('\0')[0]).toMatch(/\/@oven\/bun-[\w-]+\/bin\/bun$/)
  }
  expect(await stopServed(served)).toBe(0)
})

test('the unit can write to the state directory only, and gains no rights', () => {
  expect(valuesOf('ProtectSystem')).toEqual(['strict'])
  expect(valuesOf('CapabilityBoundingSet')).toEqual([''])
  for (const name of ['NoNewPrivileges', 'ProtectHome', 'PrivateTmp', 'PrivateDevices', 'ProtectKernelTunables'])
    expect([name, ...valuesOf(name)]).toEqual([name, 'yes'])
  expect(valuesOf('ReadWritePaths')).toEqual([])
  expect(valuesOf('MemoryDenyWriteExecute')).toEqual([]) // Bun could not run
})

describe.skipIf(Bun.which('systemd-analyze') === null)('systemd-analyze', () => {
  test('knows every directive and value of the unit', async () => {
    const unit = join(freshFolder(), 'weir.service')
    await Bun.write(unit, text.replace(/^ExecStart=\S+/m, `ExecStart=${join(ROOT, 'bin', 'weir')}`))
    const { exitCode, stderr } = Bun.spawnSync(['systemd-analyze', 'verify', '--man=no', unit])
    const about = stderr
      .toString()
      .split('\n')
      .filter(line => line.includes('weir.service'))
    expect([exitCode, about]).toEqual([0, []])
  })
})
