// What becomes of questions: of those that fail, of those whose thread cannot be had, and of those that are asked right
// after something was written.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writer } from '../engine/writer.ts'
import { Desk } from './query-worker.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-desk-'))
const path = join(folder, 'weir.db')
let writer: Writer
let desk: Desk

beforeAll(async () => {
  ;[writer] = await Writer.open({ path, ballastBytes: 0 }, () => {})
  desk = new Desk(path)
})
afterAll(async () => {
  desk.close()
  await writer.close()
  rmSync(folder, { recursive: true })
})

const tier = (name: string) => desk.ask('tier', { name })

test('what was written before it was asked for is there, each time', async () => {
  for (let at = 0; at < 200; at++) {
    const name = `t${at}`
    await writer.run('setTier', { name, isNew: true, qpm: 5, pricePerMille: 1_000 }, { actor: 'test' })
    expect(await tier(name)).toMatchObject({ name })
  }
})

test('one that fails is told so, and no other', async () => {
  const wrong = desk.ask('tier', null as never)
  const right = tier('pro')
  expect(wrong).rejects.toThrow()
  expect(await right).toMatchObject({ name: 'pro' })
})

test('those that wait when it closes are told so, and the next is answered', async () => {
  const waiting = [tier('pro'), tier('free')]
  desk.close()
  for (const one of waiting) await expect(one).rejects.toMatchObject({ code: 'storage_away' })
  expect(await tier('pro')).toMatchObject({ name: 'pro' })
})

test('where there is no file, whoever asks is told so', async () => {
  const none = new Desk(join(folder, 'none.db'))
  await expect(none.ask('tier', { name: 'pro' })).rejects.toMatchObject({ code: 'storage_away' })
  await expect(none.ask('tier', { name: 'pro' })).rejects.toMatchObject({ code: 'storage_away' })
  none.close()
})
