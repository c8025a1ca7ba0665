// A backup has the secrets that its data needs, also where they are replaced while it is made, and is not put in place
// without them.

import { afterAll, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { backUp } from '../../src/store/engine/backup.ts'
import { cleanUp, freshFolder, weir, weirSays } from '../front/weir-process.ts'
import { files, kinds, marksIn, secretsIn } from './ground.ts'

afterAll(cleanUp)

const quiet = { WEIR_BALLAST_MB: '0', WEIR_LOCAL_SERVERS: 'off' }
const places = (): readonly [string, string, string] => {
  const place = freshFolder()
  return [join(place, 'data'), join(place, 'copy'), join(place, 'back')]
}

test('all secrets of a ring are copied, and come back', async () => {
  const [data, copy, back] = places()
  const key = await weirSays(data, 'keys create --credit 3', quiet)
  for (const kind of kinds) await weirSays(data, `rotate ${kind}`, quiet)
  await weirSays(data, `backup ${copy}`, quiet)
  await weirSays(back, `restore ${copy}`, quiet)
  for (const kind of kinds) expect(secretsIn(back, kind)).toEqual(secretsIn(data, kind))
  expect(await weirSays(back, `keys show ${key}`, quiet)).toMatch(/state +active/)
})

test('one that is let go while the databases are copied is in the copy', async () => {
  const [data, copy] = places()
  await weirSays(data, 'keys create --credit 3', quiet)
  await weirSays(data, 'rotate pepper', quiet)
  const [fresh, old] = secretsIn(data, 'pepper')
  const copying = backUp(data, copy, 'x')
  writeFileSync(join(data, files.pepper), `${'n'.repeat(43)}\n${fresh}\n`)
  await copying
  expect(secretsIn(copy, 'pepper')).toEqual(['n'.repeat(43), fresh, old] as string[])
})

test('a backup whose keys need another pepper is not put in place, unless by somebody who knows', async () => {
  const [data, copy, back] = places()
  const key = await weirSays(data, 'keys create --credit 3', quiet)
  const [mark] = marksIn(data, 'pepper')
  const [right] = secretsIn(data, 'pepper') as [string]
  await weirSays(data, `backup ${copy}`, quiet)
  writeFileSync(join(copy, 'pepper'), 'o'.repeat(43))
  const refused = await weir(back, `restore ${copy}`, quiet)
  const needs = expect.stringContaining(`made with the one with the mark ${mark}`)
  expect([refused.code, refused.stdout]).toEqual([1, needs])
  expect(refused.stderr).toContain('--despite-findings')
  expect(await weirSays(back, `restore ${copy}`, { ...quiet, WEIR_PEPPER: right })).toContain('Restored to')
  expect(await weirSays(back, `keys show ${key}`, { ...quiet, WEIR_PEPPER: right })).toMatch(/state +active/)
  rmSync(back, { recursive: true })
  expect((await weir(back, `restore ${copy} --despite-findings`, quiet)).stdout).toContain('Restored to')
  expect((await weir(back, 'serve', quiet)).stderr).toContain('weir rotate pepper --finish --force')
  await weirSays(back, 'rotate pepper --finish --force', quiet)
  expect((await weir(back, `balance ${key}`, quiet)).stderr).toContain('Unknown account')
})
