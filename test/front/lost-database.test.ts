// A data folder whose database is missing: the gateway starts with an empty one, and warns.

import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startHarness } from '../support/gateway.ts'

test('the gateway warns if there are secrets and no database, and only then', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-lost-'))
  const warned: boolean[] = []
  const start = async (): Promise<void> => {
    const harness = await startHarness({ folder })
    warned.push(harness.logs.some(line => line.includes('there are secrets but no database')))
    await harness.stop()
  }
  await start()
  await start()
  rmSync(join(folder, 'weir.db'))
  await start()
  writeFileSync(join(folder, 'weir.db'), '')
  await start()
  expect(warned).toEqual([false, false, true, true])
  rmSync(folder, { recursive: true, force: true })
})
