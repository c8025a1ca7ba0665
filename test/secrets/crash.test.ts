// Killed while secrets are rotated: the files of any moment start again, nothing is lost, and a started rotation is
// finished.

import { afterAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { idAtMs } from '../../src/base/ids.ts'
import { Seal } from '../../src/base/secrets/seal.ts'
import { buildSecretRing } from '../../src/base/secrets/secret-ring.ts'
import { ask, bearer, CHAT, goodBody } from '../front/asking.ts'
import type { Served } from '../front/weir-process.ts'
import { cleanUp, freshFolder, serve, stopServed, weirSays } from '../front/weir-process.ts'
import { openDatabase } from '../support/database.ts'
import { until } from '../support/gateway.ts'
import { rawRequest } from '../support/raw.ts'
import { files, kinds, marksIn, sealedWith, secretsIn } from './secret-rows.ts'

afterAll(cleanUp)

const ROWS = 2_000
const noBallast = { WEIR_BALLAST_MB: '0' }
const answerOf = (callId: number): string => `{"status":200,"contentType":"text/plain"}\nwords of ${callId}`
const sealContext = (callId: number) => ({ table: 'kept_answer', row: callId, column: 'sealed' })

/** Stores answers, encrypted with the current key; returns the ids of their calls. */
function storeAnswers(folder: string): readonly number[] {
  const seal = new Seal(buildSecretRing(...secretsIn(folder, 'encryption')))
  const first = idAtMs(Date.now())
  const db = openDatabase(join(folder, 'weir.db'))
  const insert = db.query('INSERT INTO kept_answer VALUES (?1, ?2)')
  const ids = Array.from({ length: ROWS }, (_, index) => first + index)
  db.transaction(() => ids.forEach(id => insert.run(id, seal.seal(sealContext(id), Buffer.from(answerOf(id))))))()
  db.close()
  return ids
}

/** How many of them can be decrypted with the secrets in the folder. */
function openable(folder: string, ids: readonly number[]): number {
  const seal = new Seal(buildSecretRing(...secretsIn(folder, 'encryption')))
  const db = openDatabase(join(folder, 'weir.db'), { readonly: true })
  const find = db.query('SELECT sealed FROM kept_answer WHERE call_id = ?1')
  const sealedOf = (id: number): Uint8Array => (find.get(id) as { sealed: Uint8Array }).sealed
  const opened = ids.filter(id => seal.open(sealContext(id), sealedOf(id)).toString() === answerOf(id)).length
  db.close()
  return opened
}

const call = async (served: Served, key: string): Promise<number> =>
  (await rawRequest(served.url, ask('POST', CHAT, bearer(key), goodBody({ model: 'demo/echo' })))).status

test('a kill in the middle of re-encryption loses nothing', async () => {
  const folder = freshFolder()
  const key = await weirSays(folder, 'keys create --credit 5', noBallast)
  const ids = storeAnswers(folder)
  let old = ''
  let cut = 0
  for (let kill = 0; kill < 3 || cut === 0; kill++) {
    // At first, and when the last kill came too late: nothing is left to be sealed anew without another key.
    if ((sealedWith(folder)[old] ?? 0) === 0) {
      ;[old] = marksIn(folder, 'encryption') as [string]
      await weirSays(folder, 'rotate encryption', noBallast)
    }
    const served = await serve(folder, noBallast)
    const before = sealedWith(folder)[old] ?? 0
    await until(() => (sealedWith(folder)[old] ?? 0) < before || before === 0, 'the re-encryption goes on')
    served.kill('SIGKILL')
    await served.exited
    const left = sealedWith(folder)[old] ?? 0
    if (left > 0 && left < ROWS) cut++
    expect(openable(folder, ids)).toBe(ROWS)
  }
  expect(cut).toBeGreaterThan(0)
  const [fresh] = marksIn(folder, 'encryption') as [string]
  const served = await serve(folder, noBallast)
  await until(() => sealedWith(folder)[fresh] === ROWS, 'all is sealed anew')
  expect([openable(folder, ids), await call(served, key)]).toEqual([ROWS, 200])
  expect(await stopServed(served)).toBe(0)
})

test('a kill after the file was written, before the gateway uses it, loses nothing', async () => {
  const folder = freshFolder()
  const key = await weirSays(folder, 'keys create --credit 5', noBallast)
  const ids = storeAnswers(folder)
  const before = Object.fromEntries(kinds.map(kind => [kind, marksIn(folder, kind)[0]]))
  for (const kind of kinds) {
    writeFileSync(join(folder, files[kind]), `${'n'.repeat(39)}${kind[0]}\n${secretsIn(folder, kind).join('\n')}\n`)
    writeFileSync(join(folder, `${files[kind]}.part`), 'half')
  }
  const served = await serve(folder, noBallast)
  expect(await call(served, key)).toBe(200)
  const [fresh] = marksIn(folder, 'encryption') as [string]
  await until(() => sealedWith(folder)[fresh] === ROWS, 'all is sealed anew')
  expect(openable(folder, ids)).toBe(ROWS)
  for (const kind of kinds) {
    const { secrets } = JSON.parse(await weirSays(folder, `rotate ${kind} --status --json`))
    expect(secrets).toMatchObject([{ state: 'newest' }, { mark: before[kind], state: 'older', rests: {} }])
  }
  expect(await stopServed(served)).toBe(0)
})
