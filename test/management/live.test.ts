// Calls are followed in the order in which they are settled, by polling and as a stream of events.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { textId } from '../../src/base/ids.ts'
import type { ManagementApp, Reply } from './management-app.ts'
import { member, openManagementApp, owner } from './management-app.ts'

let app: ManagementApp
let own: { accountId: number; keyId: number }
let foreign: { accountId: number; keyId: number }
const viewer = member(7)

beforeAll(async () => {
  app = await openManagementApp()
  own = await app.account({ 7: 1 })
  foreign = await app.account({ 9: 3 })
})
afterAll(() => app.stop())

const idsOf = ({ body }: Reply): string[] => (body.data as { id: string }[]).map(({ id }) => id)
const request = (id: number): string => textId('req', id)

interface LiveEvent {
  readonly name: string
  readonly data: { readonly id?: string; readonly seq?: number; readonly channel?: string | null }
}

/** Reads events of a stream. */
async function openLive(who: Parameters<ManagementApp['ask']>[0], query: string) {
  const { response } = await app.ask(who, `GET live?${query}`)
  const reader = response!.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>
  let text = ''
  const events: LiveEvent[] = []
  async function until(count: number): Promise<readonly LiveEvent[]> {
    while (events.length < count) {
      const { value, done } = await reader.read()
      if (done) throw new Error('the stream has ended')
      text += new TextDecoder().decode(value)
      const parts = text.split('\n\n')
      text = parts.pop()!
      for (const part of parts) {
        const name = /^event: (.*)$/m.exec(part)?.[1]
        if (name === 'call') events.push({ name, data: JSON.parse(/^data: (.*)$/m.exec(part)![1]!) })
      }
    }
    return events
  }
  return { response: response!, until, close: () => reader.cancel() }
}

test('a poller gets a slow call that began before a quick one and ended after it', async () => {
  const start = await app.ask(owner, 'GET records?settledAfter=now')
  expect(start.body).toMatchObject({ data: [], missed: false })
  const quick = await app.call({ ...own })
  const first = await app.ask(owner, `GET records?settledAfter=${String(start.body.next)}`)
  expect(idsOf(first)).toEqual([request(quick)])
  const slow = await app.call({ ...own, agoMs: 60_000 })
  const second = await app.ask(owner, `GET records?settledAfter=${String(first.body.next)}`)
  expect(idsOf(second)).toEqual([request(slow)])
  expect(idsOf(await app.ask(owner, `GET records?settledAfter=${String(second.body.next)}`))).toEqual([])
  const paged = await app.ask(owner, `GET records?settledAfter=${String(start.body.next)}&limit=1`)
  expect(idsOf(paged)).toEqual([request(quick)])
  expect(paged.body.next).toBe(first.body.next)
})

test('a place that the database has not reached, because a backup was restored, goes on at its end', async () => {
  await app.call({ ...own })
  const { next } = (await app.ask(owner, 'GET records?settledAfter=now')).body
  const atEnd = { data: [], next, missed: false }
  expect((await app.ask(owner, `GET records?settledAfter=${String(next)}`)).body).toMatchObject(atEnd)
  const beyond = String(Number(next) + 1_000)
  const told = await app.ask(owner, `GET records?settledAfter=${beyond}`)
  expect(told.body).toMatchObject({ ...atEnd, missed: true })
  const { response } = await app.ask(owner, 'GET live', undefined, { 'last-event-id': beyond })
  const { value } = await (response!.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>).read()
  expect(new TextDecoder().decode(value)).toContain(`event: missed\ndata: {"before":${String(next)}}`)
  await response!.body!.cancel().catch(() => {})
})

test('only calls that match, of accounts that the reader may see', async () => {
  const { next } = (await app.ask(owner, 'GET records?settledAfter=now')).body
  const [mine, other] = [await app.call({ ...own, channel: 'p#7' }), await app.call({ ...foreign })]
  const after = `settledAfter=${String(next)}`
  expect(idsOf(await app.ask(owner, `GET records?${after}`))).toEqual([request(mine), request(other)])
  expect(idsOf(await app.ask(viewer, `GET records?${after}`))).toEqual([request(mine)])
  expect(idsOf(await app.ask(owner, `GET records?${after}&channel=p%237`))).toEqual([request(mine)])
  expect((await app.ask(viewer, `GET records?${after}&channel=p%237`)).code).toBe('role_too_low')
  expect((await app.ask(owner, `GET records?${after}&sort=time`)).code).toBe('field_invalid')
  expect((await app.ask(owner, 'GET records?settledAfter=soon')).code).toBe('field_invalid')
  const live = await openLive(viewer, `after=${String(next)}`)
  const third = await app.call({ ...own })
  const events = await live.until(2)
  expect(events.map(({ data }) => data.id)).toEqual([request(mine), request(third)])
  expect(events[0]!.data.channel).toBeNull()
  await live.close()
})

test('a stream continues after the last event that was seen, and ends are given back', async () => {
  const { next } = (await app.ask(owner, 'GET records?settledAfter=now')).body
  const calls = [await app.call({ ...own }), await app.call({ ...foreign, agoMs: 5_000 })]
  const live = await openLive(owner, `after=${String(next)}`)
  expect(live.response.headers.get('content-type')).toStartWith('text/event-stream')
  const [first] = await live.until(2)
  await live.close()
  const { response } = await app.ask(owner, 'GET live', undefined, { 'last-event-id': String(first!.data.seq) })
  const { value } = await (response!.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>).read()
  expect(new TextDecoder().decode(value)).toContain(request(calls[1]!))
  expect(new TextDecoder().decode(value)).not.toContain(request(calls[0]!))
  await response!.body!.cancel().catch(() => {})
})

test('a person has a bounded number of streams', async () => {
  const open = []
  for (let at = 0; at < bounds.liveStreamsOfPersonMax; at++) open.push(await app.ask(member(7), 'GET live'))
  expect((await app.ask(member(7), 'GET live')).code).toBe('concurrency_exceeded')
  for (const { response } of open) await response!.body!.cancel()
  const again = await app.ask(member(7), 'GET live')
  expect(again.response!.status).toBe(200)
  await again.response!.body!.cancel()
})
