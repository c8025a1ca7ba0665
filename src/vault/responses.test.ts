// Which bodies of stored responses are decrypted: decrypting and parsing them takes time on the thread that serves calls.

import { expect, test } from 'bun:test'
import type { VaultReader } from '../store/vault/vault-reader.ts'
import type { ResponsesParts, StoredResponse } from './responses.ts'
import { openResponses } from './responses.ts'

/** A chain of four responses, of 1,000 bytes each. */
function openChain() {
  const opened: string[] = []
  const ids = ['resp_1', 'resp_2', 'resp_3', 'resp_4']
  const responses = openResponses({
    reader: {
      vault: {
        response: ({ accountId, id }: { accountId: number; id: string }) => {
          const at = ids.indexOf(id)
          const previousId = ids[at - 1] ?? null
          return { accountId, id, previousId, upstreamId: null, bytes: 1_000, sealed: Buffer.from(id) }
        },
      } as unknown as VaultReader,
    },
    seal: {
      open(_place: unknown, sealed: Uint8Array) {
        opened.push(sealed.toString())
        return Buffer.from('{"input":[],"output":[]}')
      },
    },
    dateMs: () => 0,
  } as unknown as ResponsesParts)
  return { opened, responses }
}

const newest = { accountId: 1, id: 'resp_4' }

test('the head of a response is read without its body', async () => {
  const { opened, responses } = openChain()
  expect(await responses.head(newest)).toMatchObject({ id: 'resp_4', previousId: 'resp_3', isUnread: true })
  expect(opened).toEqual([])
})

test('a chain is read from the newest response on, as far as it is needed', async () => {
  const { opened, responses } = openChain()
  const links: StoredResponse[] = []
  const chain = await responses.chain(newest, { onLink: link => links.push(link) === 2 })
  expect(chain.done).toBe('found')
  expect(links.map(({ id }) => id)).toEqual(['resp_4', 'resp_3'])
  expect(opened).toEqual(['resp_4', 'resp_3'])
})

test('a body that must not be read now is not decrypted', async () => {
  const { opened, responses } = openChain()
  let left = 2_500
  const charge = (bytes: number): void => {
    left -= bytes
    if (left < 0) throw new Error('enough')
  }
  await expect(responses.chain(newest, { charge })).rejects.toThrow('enough')
  expect(opened).toEqual(['resp_4', 'resp_3'])
  await expect(responses.get(newest, charge)).rejects.toThrow('enough')
  expect(opened).toHaveLength(2)
})
