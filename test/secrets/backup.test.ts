// A backup has the secrets that its data needs, even if they are rotated while it is made, and is not restored without
// them.

import { afterAll, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { backUp } from '../../src/store/engine/backup.ts'
import { cleanUp, freshFolder, weir, weirSays } from '../front/weir-process.ts'
import { files, kinds, marksIn, secretsIn } from './secret-rows.ts'

afterAll(cleanUp)

const noBallast = { WEIR_BALLAST_MB: '0' }
const newFolders = (): readonly [string, string, string] => {
  const base = freshFolder()
  return [join(base, 'data'), join(base, 'copy'), join(base, 'back')]
}

test('all secrets of a ring are copied and restored', async () => {
  const [data, copy, back] = newFolders()
  const key = await weirSays(data, 'keys create --credit 3', noBallast)
  for (const kind of kinds) await weirSays(data, `rotate ${kind}`, noBallast)
  await weirSays(data, `backup ${copy}`, noBallast)
  await weirSays(back, `restore ${copy}`, noBallast)
  for (const kind of kinds) expect(secretsIn(back, kind)).toEqual(secretsIn(data, kind))
  expect(await weirSays(back, `keys show ${key}`, noBallast)).toMatch(/state +active/)
})

test('a secret that is removed while the databases are copied is in the copy', async () => {
  const [data, copy] = newFolders()
  await weirSays(data, 'keys create --credit 3', noBallast)
  await weirSays(data, 'rotate pepper', noBallast)
  const [fresh, old] = secretsIn(data, 'pepper')
  const copying = backUp(data, copy, 'x')
  writeFileSync(join(data, files.pepper), `${'n'.repeat(43)}\n${fresh}\n`)
  await copying
  expect(secretsIn(copy, 'pepper')).toEqual(['n'.repeat(43), fresh, old] as string[])
})

test('a backup whose keys need another pepper is not restored, unless the operator insists', async () => {
  const [data, copy, back] = newFolders()
  const key = await weirSays(data, 'keys create --credit 3', noBallast)
  const [mark] = marksIn(data, 'pepper')
  const [right] = secretsIn(data, 'pepper') as [string]
  await weirSays(data, `backup ${copy}`, noBallast)
  writeFileSync(join(copy, 'pepper'), 'o'.repeat(43))
  const refused = await weir(back, `restore ${copy}`, noBallast)
  const needs = expect.stringContaining(`made with the one with the mark ${mark}`)
  expect([refused.code, refused.stdout]).toEqual([1, needs])
  expect(refused.stderr).toContain('--despite-findings')
  expect(await weirSays(back, `restore ${copy}`, { ...noBallast, WEIR_PEPPER: right })).toContain('Restored to')
  expect(await weirSays(back, `keys show ${key}`, { ...noBallast, WEIR_PEPPER: right })).toMatch(/state +active/)
  rmSync(back, { recursive: true, force: true })
  expect((await weir(back, `restore ${copy} --despite-findings`, noBallast)).stdout).toContain('Restored to')
  expect((await weir(back, 'serve', noBallast)).stderr).toContain('weir rotate pepper --finish --force')
  await weirSays(back, 'rotate pepper --finish --force', noBallast)
  expect((await weir(back, `balance ${key}`, noBallast)).stderr).toContain('Unknown account')
})
