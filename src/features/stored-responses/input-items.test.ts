// Pages of input items: they are those of the whole list, and only the responses that a page needs are read.

import { expect, test } from 'bun:test'
import { writePage } from '../../protocols/openai-responses/stored-responses.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { ChainOptions, StoredResponse } from '../../vault/responses.ts'
import { readInputItems } from './input-items.ts'

const LINKS = 5
const itemOf = (id: string): Json => ({ type: 'message', id })

/** The oldest response first. Each has two items of input and one of output. */
const links = Array.from({ length: LINKS }, (_, at) => ({
  id: `resp_${at}`,
  body: { input: [itemOf(`in_${at}a`), itemOf(`in_${at}b`)], output: [itemOf(`out_${at}`)], response: {} },
})) as unknown as StoredResponse[]

const newest = { accountId: 1, id: `resp_${LINKS - 1}` }
const all = links.flatMap(({ body }) => [...body!.input, ...body!.output] as Json[]).slice(0, -1)

function open(stored: readonly StoredResponse[] = links, isMissing = false) {
  const read: string[] = []
  const responses = {
    async chain(_owner: unknown, { onLink }: ChainOptions = {}) {
      for (const link of stored.toReversed()) {
        read.push(link.id)
        if (onLink?.(link)) return { done: 'found' as const, links: [] }
      }
      const id = stored.length === 0 ? newest.id : 'resp_gone'
      return isMissing ? { done: 'missing' as const, id } : { done: 'found' as const, links: [] }
    },
  }
  return { read, parts: { responses, charge: () => {} } }
}

test('every page is the same as that of the whole list', async () => {
  for (const order of ['asc', 'desc'] as const) {
    for (const limit of [1, 2, 3, 7, 20]) {
      for (const after of [undefined, ...all.map(({ id }) => id as string)]) {
        const page = { after, limit, order }
        const items = await readInputItems(open().parts, newest, page)
        expect(writePage(items!, page)).toBe(writePage(all, page))
      }
    }
  }
})

test('the newest page reads only the newest responses', async () => {
  for (const [limit, after, expected] of [
    [1, undefined, 1],
    [2, undefined, 2],
    [4, undefined, 2],
    [5, undefined, 3],
    [1, 'out_3', 2],
    [1, 'unknown', LINKS],
  ] as const) {
    const { read, parts } = open()
    await readInputItems(parts, newest, { after, limit, order: 'desc' })
    expect([limit, after, read.length]).toEqual([limit, after, expected])
  }
})

test('a list begins after a response that is gone, or that is stored elsewhere', async () => {
  const { body: _, ...elsewhere } = links[2]!
  const rest = all.slice(9)
  for (const order of ['asc', 'desc'] as const) {
    const page = { after: undefined, limit: 100, order }
    expect(await readInputItems(open(links.slice(3), true).parts, newest, page)).toEqual(rest)
    expect(
      await readInputItems(open([...links.slice(0, 2), elsewhere, ...links.slice(3)]).parts, newest, page),
    ).toEqual(rest)
    expect(await readInputItems(open([], true).parts, newest, page)).toBeUndefined()
  }
})
