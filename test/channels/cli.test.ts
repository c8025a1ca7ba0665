// Channels by the command line, as an operator runs it on a gateway: credentials come from standard input only.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Ran } from '../front/weir-process.ts'
import type { ChannelDesk } from './desk.ts'
import { canary, defineProvider, openChannelDesk, say } from './desk.ts'

let desk: ChannelDesk
beforeAll(async () => {
  desk = await openChannelDesk()
  await defineProvider(desk, 'brook')
})
afterAll(() => desk.stop())

const WEIR = join(import.meta.dir, '..', '..', 'bin', 'weir')

async function weir(command: string, stdin = ''): Promise<Ran> {
  const child = Bun.spawn([WEIR, ...command.split(' ')], {
    env: { PATH: process.env.PATH, WEIR_DATA: desk.harness.folder },
    stdin: Buffer.from(stdin),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  return { code, stdout, stderr }
}

test('are made, tried, listed with their models, disabled, given another credential and deleted', async () => {
  expect((await weir('channels create brook')).stderr).toContain('needs a credential')
  const made = await weir('channels create brook --name mine --weight 3 --tags eu --json', `${canary}\nsecond-key\n`)
  expect([made.code, made.stderr]).toEqual([0, ''])
  const [first, second] = (JSON.parse(made.stdout) as { data: { id: string }[] }).data
  const { id } = first!
  expect((await say(desk, 'brook/echo')).status).toBe(200)
  const tried = await weir(`channels test ${id} --json`)
  expect([tried.code, JSON.parse(tried.stdout)]).toMatchObject([0, { ok: true, verdict: 'answered' }])
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
  expect((await say(desk, 'brook/echo')).status).toBe(503)
  const said = [made, tried, models, listed].map(({ stdout, stderr }) => stdout + stderr).join()
  expect(said).not.toContain(canary)
  const log = await desk.ask('GET', 'web/audit-log?actor=cli')
  expect(log.text).toContain('removeChannels')
})
