// The channel commands, run on a gateway as an operator runs them. Credentials come from standard input only.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Ran } from '../front/weir-process.ts'
import type { ChannelSetup } from './channel-setup.ts'
import { callModel, canary, defineProvider, startChannelSetup } from './channel-setup.ts'

let setup: ChannelSetup
beforeAll(async () => {
  setup = await startChannelSetup()
  await defineProvider(setup, 'brook')
})
afterAll(() => setup.stop())

const WEIR = join(import.meta.dir, '..', '..', 'bin', 'weir')

async function weir(command: string, stdin = ''): Promise<Ran> {
  const child = Bun.spawn([WEIR, ...command.split(' ')], {
    env: { PATH: process.env.PATH, WEIR_DATA: setup.harness.folder },
    stdin: Buffer.from(stdin),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  return { code, stdout, stderr }
}

test('channels are created, tested, listed with their models, disabled, given another credential and deleted', async () => {
  expect((await weir('channels create brook')).stderr).toContain('needs a credential')
  const created = await weir('channels create brook --name mine --weight 3 --tags eu --json', `${canary}\nsecond-key\n`)
  expect([created.code, created.stderr]).toEqual([0, ''])
  const [first, second] = (JSON.parse(created.stdout) as { data: { id: string }[] }).data
  const { id } = first!
  expect((await callModel(setup, 'brook/echo')).status).toBe(200)
  const tested = await weir(`channels test ${id} --json`)
  expect([tested.code, JSON.parse(tested.stdout)]).toMatchObject([0, { ok: true, verdict: 'answered' }])
  const models = await weir(`channels models ${id}`)
  expect(models.stdout).toMatch(/^model +state +priced\necho +known +true\n/)
  expect(models.stdout).toMatch(/\nlorem +new +false\n/)
  expect((await weir(`channels disable ${id}`)).stdout).toMatch(/state\s+disabled/)
  expect((await weir(`channels enable ${id}`)).stdout).toMatch(/state\s+enabled/)
  expect((await weir(`channels credential ${id}`, 'third-key')).code).toBe(0)
  const listed = await weir('channels list')
  expect(listed.stdout).toContain('mine 1')
  for (const channel of [id, second!.id]) expect((await weir(`channels delete ${channel}`)).code).toBe(0)
  expect((await weir(`channels delete ${id}`)).code).toBe(1)
  expect((await callModel(setup, 'brook/echo')).status).toBe(503)
  const output = [created, tested, models, listed].map(({ stdout, stderr }) => stdout + stderr).join()
  expect(output).not.toContain(canary)
  const log = await setup.ask('GET', 'web/audit-log?actor=cli')
  expect(log.text).toContain('removeChannels')
})
