// The status of a secret is read for a long time where much is stored.

import { expect, test } from 'bun:test'
import type { RotationStatus } from '../../store/secrets/rotation.ts'
import { buildWriteQueue } from '../services/write-queue.ts'
import { rotateCommand } from './rotate.ts'

test('changes of the rules do not wait for it', async () => {
  const read = Promise.withResolvers<RotationStatus>()
  const writeQueue = buildWriteQueue()
  const rotate = rotateCommand({ writeQueue, rotation: { status: () => read.promise } as never })
  const status = rotate({ kind: 'pepper', status: true })
  expect(await writeQueue(async () => 'changed')).toBe('changed')
  read.resolve({ fromEnvironment: true, secrets: [], keys: [], underWay: false })
  expect(await status).toEqual({ from: 'environment', secrets: [], keys: [] })
})
