// A rotation that the ledger refuses changes nothing.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Refusal } from '../../base/errors.ts'
import { openFolder } from '../engine/folder.ts'
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
      jobs: { isOurs: async () => true },
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
