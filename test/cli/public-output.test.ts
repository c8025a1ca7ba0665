// Keys and set-up tokens are printed into every file, with a warning when other users of the machine can read it.

import { afterAll, expect, test } from 'bun:test'
import { chmodSync, closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cleanUp, freshFolder } from '../front/weir-process.ts'
import { until } from '../support/gateway.ts'

const WEIR = join(import.meta.dir, '../../bin/weir')

const WARNING = 'others can read the file it goes to'

afterAll(cleanUp)

function startInto(output: string, mode: number, folder: string, args: readonly string[], env: Record<string, string>) {
  writeFileSync(output, '')
  chmodSync(output, mode)
  const stdout = openSync(output, 'w')
  const child = Bun.spawn([WEIR, ...args], {
    env: { PATH: process.env.PATH, WEIR_DATA: folder, WEIR_LOCAL_SERVERS: 'off', PORT: '0', ...env },
    stdout,
    stderr: 'pipe',
  })
  closeSync(stdout)
  return child
}

test.each([
  ['others can read', 0o644, true],
  ['its group can read', 0o640, true],
  ['only its owner can read', 0o600, false],
] as const)('a log that %s', async (_who, mode, isWarned) => {
  const folder = freshFolder()
  const log = join(folder, 'weir.log')
  const file = (name: string): string => {
    const path = join(folder, `${name}.yaml`)
    writeFileSync(path, `accounts: [{name: ${name}}]\nkeys: [{account: ${name}, name: ci, tier: free}]\n`)
    return path
  }
  const config = file('acme')
  const gateway = startInto(log, mode, folder, ['serve'], { WEIR_CONFIG: config, WEIR_DRAIN_DELAY_SECONDS: '0' })
  try {
    await until(() => readFileSync(log, 'utf8').includes('Try it:'), 'start')
    const said = readFileSync(log, 'utf8')
    // One key is from the configuration file and one from the first start, which prints it again in its example.
    expect([new Set(said.match(/wk-\w{36}/g)).size, said.includes('Set-up token (')]).toEqual([2, true])
    for (const [name, args] of Object.entries({ plain: [], json: ['--json'] })) {
      const output = join(folder, `${name}.log`)
      const applied = startInto(output, mode, folder, ['apply', '-f', file(name), ...args], {})
      const warnings = new Response(applied.stderr).text()
      expect([await applied.exited, /wk-\w{36}/.test(readFileSync(output, 'utf8'))]).toEqual([0, true])
      expect((await warnings).includes(WARNING)).toBe(isWarned)
    }
  } finally {
    gateway.kill('SIGTERM')
    await gateway.exited
  }
  expect((await new Response(gateway.stderr).text()).includes(WARNING)).toBe(isWarned)
})
