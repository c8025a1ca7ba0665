// Callers that wait for a response which another process makes.

import { expect, test } from 'bun:test'
import { protocols } from '../../protocols/protocols.ts'
import type { StoredResponseRequest, StoredResponseRequestsParts } from './requests.ts'
import { buildStoredResponseRequests } from './requests.ts'

test('look for it together, however many they are', async () => {
  let looks = 0
  let isOver = false
  const response = { id: 'resp_1', output: [], status: 'queued' }
  const stored = { accountId: 1, id: 'resp_1', upstreamId: null, body: { input: [], output: [], response, events: '' } }
  const { retrieve } = buildStoredResponseRequests({
    responses: { get: async () => ({ ...stored, status: isOver ? 'completed' : 'queued' }) },
    background: {
      find: () => undefined,
      async isElsewhere() {
        looks++
        return !isOver
      },
    },
    upstreams: { storingChannel: () => undefined },
  } as unknown as StoredResponseRequestsParts)
  const ask = {
    path: '/v1/responses/resp_1',
    caller: { accountId: 1 },
    query: (name: string) => (name === 'stream' ? 'true' : null),
    queries: () => [],
    header: () => undefined,
    allowSilence() {},
  } as unknown as StoredResponseRequest
  const answers = Array.from({ length: 100 }, () => retrieve(ask, protocols['openai-responses']))
  while (looks < 102) await Bun.sleep(10)
  isOver = true
  await Promise.all(answers)
  // One look of each caller, and a few of all together.
  expect(looks).toBeLessThan(110)
})
