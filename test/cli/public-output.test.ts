// Keys and set-up tokens are not printed into a file that other users of the machine can read.

import { afterAll, expect, test } from 'bun:test'
import { chmodSync, closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cleanUp, freshFolder, weir } from '../front/weir-process.ts'
import { until } from '../support/gateway.ts'

const WEIR = join(import.meta.dir, '../../bin/weir')

afterAll(cleanUp)

function startInto(output: string, mode: number, folder: string, args: readonly string[], env: Record<string, string>) {
  writeFileSync(output, '')
  chmodSync(output, mode)
  const stdout = openSync(output, 'w')
  const child = Bun.spawn([WEIR, ...args], {
    env: { PATH: process.env.PATH, WEIR_DATA: folder, WEIR_LOCAL_SERVERS: 'off', PORT: '0', ...env },
    stdout,
    stderr: 'ignore',
  })
  closeSync(stdout)
  return child
}

test.each([
  ['others can read', 0o644, false],
  ['its group can read', 0o640, false],
  ['only its owner can read', 0o600, true],
] as const)('a log that %s', async (_who, mode, isShown) => {
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
    await until(
      () => /listening on \S+\n[^]*first API key|API key \(shown once\)/.test(readFileSync(log, 'utf8')),
      'start',
    )
    const said = readFileSync(log, 'utf8')
    expect([/wk-\w{36}/.test(said), /token":"|Set-up token \(/.test(said)]).toEqual([isShown, isShown])
    for (const hint of ['weir keys rotate key_', 'bin/weir setup', 'bin/weir keys create']) {
      expect([hint, isShown || said.includes(hint)]).toEqual([hint, true])
    }
    for (const [name, args] of Object.entries({ plain: [], json: ['--json'] })) {
      const output = join(folder, `${name}.log`)
      const applied = startInto(output, mode, folder, ['apply', '-f', file(name), ...args], {})
      const code = await applied.exited
      const text = readFileSync(output, 'utf8')
      expect([code, /wk-\w{36}/.test(text)]).toEqual([0, isShown])
      expect(text.includes('weir keys rotate key_')).toBe(!isShown)
    }
    // The printed command gives a key that works.
    const [hint] = /keys rotate key_\w+/.exec(said) ?? []
    if (hint !== undefined) expect((await weir(folder, hint)).stdout).toMatch(/wk-\w{36}/)
  } finally {
    gateway.kill('SIGTERM')
    await gateway.exited
  }
})
