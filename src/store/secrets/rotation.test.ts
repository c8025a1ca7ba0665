// A rotation that the ledger refuses changes nothing. Of several processes, each encrypts once more after its start.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../../../test/support/gateway.ts'
import { Refusal } from '../../base/errors.ts'
import { openFolder } from '../engine/folder.ts'
import { jobsOfOnlyProcess } from '../engine/store-engine.ts'
import { Rotation } from './rotation.ts'
import { SecretScan } from './secret-scan.ts'

let path: string
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'weir-rotation-'))
})
afterEach(() => rmSync(path, { recursive: true, force: true }))

test.each(['pepper', 'jwt', 'encryption'] as const)(
  'a refused rotation of the %s secret changes nothing',
  async kind => {
    const folder = openFolder(path, {})
    const file = join(path, { pepper: 'pepper', jwt: 'jwt-secret', encryption: 'encryption-key' }[kind])
    const [before, changes] = [readFileSync(file, 'utf8').trim(), [] as string[]]
    const rotation = new Rotation({
      folder,
      writer: { run: () => Promise.reject(new Refusal('storage_full', 'x')) },
      scan: new SecretScan({ path: folder.database }),
      isShared: false,
      jobs: jobsOfOnlyProcess,
      bodies: { reseal: () => Promise.resolve(), renewSecrets: () => changes.push('bodies') },
      readMarks: async () => [],
      carriedDays: 30,
      dateMs: Date.now,
      pause: () => Promise.resolve(),
      onChanged: changed => changes.push(changed),
      onError: () => {},
    })
    expect(await rotation.rotate(kind, { actor: 'test' }).catch((fault: unknown) => fault)).toBeInstanceOf(Refusal)
    expect([readFileSync(file, 'utf8').trim(), folder.secrets[kind].newest.reveal()]).toEqual([before, before])
    expect([folder.secrets[kind].all.length, changes]).toEqual([1, []])
  },
)

test('a process encrypts what another has encrypted before: until its start, it may have used the older key', async () => {
  const env = { WEIR_ENCRYPTION_KEY: `${'n'.repeat(32)},${'o'.repeat(32)}` }
  const folder = openFolder(path, env)
  const encrypted = ['first', 'second'].map(() => Promise.withResolvers<void>())
  let holder: number | undefined
  const rotations = encrypted.map(
    ({ resolve }, at) =>
      new Rotation({
        folder,
        writer: { run: () => Promise.reject(new Error('there is nothing to write')) },
        scan: {
          during: (work: () => Promise<unknown>) => work(),
          run: async () => ({ rows: [], next: undefined }),
          close() {},
        } as never,
        isShared: true,
        jobs: {
          isOurs: async () => (holder ??= at) === at,
          async giveBack() {
            holder = undefined
          },
        },
        bodies: { reseal: async () => resolve(), renewSecrets() {} },
        readMarks: async () => [],
        carriedDays: 30,
        dateMs: Date.now,
        pause: () => Promise.resolve(),
        onChanged() {},
        onError() {},
      }),
  )
  rotations[0]!.start()
  await encrypted[0]!.promise
  await until(() => holder === undefined, 'the first one has finished')
  rotations[1]!.start()
  await encrypted[1]!.promise
  for (const rotation of rotations) rotation.close()
  expect(folder.secrets.encryption.all.length).toBe(2)
})
