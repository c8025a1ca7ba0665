// Exports that nobody reads: of one person, of many people of one account, of many accounts. Other people can still
// export, and the staff of the site always can.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import net from 'node:net'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { idAtMs, parseTextId } from '../../src/base/ids.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { Person } from '../support/people.ts'
import { addPerson, setUpOwner } from '../support/people.ts'

const ROWS = 2_500

let harness: Harness
let owner: Person
/** The clock of the gateway. Only the tests move it: a slow machine does not make an export stall. */
let passedMs = 0
let opened: net.Socket[] = []

beforeEach(async () => {
  const clock = { nowMs: () => passedMs, dateMs: () => Date.now() }
  harness = await startHarness({ world: { clock } })
  owner = await setUpOwner(harness)
})
afterEach(async () => {
  for (const socket of opened) socket.destroy()
  opened = []
  await harness.stop()
})

let filled = 0

/** Creates an account with more rows of one kind than fit in the buffers between two sockets. */
async function fullAccount(kind: 'records' | 'transfers'): Promise<string> {
  const key = await harness.key({ credit: '10' })
  const answer = await chat(harness, key, { model: 'openai/gpt-4o-mini', messages: hello })
  await answer.text()
  const call = parseTextId('req', answer.headers.get('x-request-id')!)!
  const db = openDatabase(join(harness.folder, 'weir.db'))
  const name = 'n'.repeat(8_000) // few long rows are written faster than many short ones
  const first = idAtMs(Date.now() - 86_400_000) + ++filled * ROWS
  const numbers = 'WITH RECURSIVE n (at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM n WHERE at + 1 < ?1)'
  const inserts = {
    records: `
      INSERT INTO record SELECT ?2 + at, r.key_id, r.account_id, r.dialect, r.provider, r.model, r.channel, r.status,
        r.error, r.outcome, 'house', r.usage_source, r.streamed, at, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, r.attempts, NULL,
        NULL, 5, ?4, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM n, record r WHERE r.call_id = ?3`,
    transfers: `
      INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms, reference, author)
        SELECT ?2 + at, 'gift', 2, r.account_id, 1, 5, NULL, ?4 FROM n, record r WHERE r.call_id = ?3`,
  }
  db.run(numbers + inserts[kind], [ROWS, first, call, name])
  db.close()
  const { id: account } = await harness.weir('balance', { account: key })
  return String(account)
}

const peopleOf = (account: string, count: number): Promise<readonly Person[]> =>
  Promise.all(
    Array.from({ length: count }, () => addPerson(harness, owner.ask, { members: [{ account, role: 'viewer' }] })),
  )

interface Unread {
  readonly status: number
  readonly socket: net.Socket
  /** Whether the answer had its end when the connection closed, or before. Nothing comes until the socket is resumed. */
  readonly isWhole: Promise<boolean>
}

/** Begins an export and reads the head of its answer, and nothing more. */
function begin({ token }: Person, path = 'records/export'): Promise<Unread> {
  const { hostname, port } = new URL(harness.url)
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(port), hostname, () => {
      socket.write(`GET /api/web/${path} HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer ${token}\r\n\r\n`)
    })
    opened.push(socket)
    socket.once('data', (bytes: Buffer) => {
      socket.pause()
      const status = Number(/^HTTP\/1\.1 (\d+)/.exec(bytes.toString('latin1'))![1])
      // The gateway may close the connection before anybody reads on.
      resolve({ status, socket, isWhole: readToEnd(socket) })
    })
    socket.on('error', reject)
    socket.once('close', () => reject(new Error('closed without an answer')))
  })
}

/** The last chunk of a whole answer is empty. */
function readToEnd(socket: net.Socket): Promise<boolean> {
  let end = ''
  return new Promise(resolve => {
    socket.on('close', () => resolve(false))
    socket.on('data', (bytes: Buffer) => {
      end = (end + bytes.toString('latin1')).slice(-7)
      if (end.endsWith('\r\n0\r\n\r\n')) resolve(true)
    })
  })
}

const statuses = async (exports: readonly Promise<Unread>[]): Promise<readonly number[]> =>
  (await Promise.all(exports)).map(({ status }) => status)

const repeat = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at))

/** Advances the clock until an export begins. Unread exports are cut off only after the socket buffers are full. */
async function beginLater(person: Person, path: string): Promise<void> {
  for (;;) {
    passedMs += bounds.exportStallMsMax + 1_000
    if ((await begin(person, path)).status === 200) return
    await Bun.sleep(50)
  }
}

describe.each([
  ['records/export', 'records'],
  ['accounts/{account}/statement/export', 'transfers'],
] as const)('%s', (path, kind) => {
  test('limits the exports of one person and of one account, and serves others', async () => {
    const [account, other] = [await fullAccount(kind), await fullAccount(kind)]
    const ownPath = path.replace('{account}', account)
    const [first, ...rest] = await peopleOf(account, bounds.exportsOfAccountMax)
    expect(await statuses(repeat(bounds.exportsOfPersonMax, () => begin(first!, ownPath)))).toEqual([200, 200])
    expect((await begin(first!, ownPath)).status).toBe(429)
    const more = await statuses(rest.map(person => begin(person, ownPath)))
    expect(more.filter(status => status === 200)).toHaveLength(bounds.exportsOfAccountMax - bounds.exportsOfPersonMax)
    expect(more.filter(status => status !== 200)).toEqual([429])
    const [stranger] = await peopleOf(other, 1)
    expect((await begin(stranger!, path.replace('{account}', other))).status).toBe(200)
    await beginLater(first!, ownPath)
  })

  test('ends when whoever reads it loses the rights to it', async () => {
    const account = await fullAccount(kind)
    const support = await addPerson(harness, owner.ask, { role: 'support' })
    const ownPath = path.replace('{account}', account)
    const [kept, lost] = [await begin(owner, ownPath), await begin(support, ownPath)]
    expect((await owner.ask('PATCH', `web/users/${support.id}`, { disabled: true })).status).toBe(200)
    passedMs += bounds.readerCheckMs + 1_000
    for (const { socket } of [kept, lost]) socket.resume()
    expect(await Promise.all([kept.isWhole, lost.isWhole])).toEqual([true, false])
  })

  test('keeps room for the staff of the site when many accounts export', async () => {
    const account = await fullAccount(kind)
    const support = await addPerson(harness, owner.ask, { role: 'support' })
    const room = bounds.exportsMax - bounds.exportsOfStaffMin
    const accounts: string[] = []
    while (accounts.length * bounds.exportsOfPersonMax <= room) accounts.push(await fullAccount(kind))
    const people = (await Promise.all(accounts.map(one => peopleOf(one, 1)))).flat()
    const exports = people.flatMap((person, at) =>
      repeat(bounds.exportsOfPersonMax, () => begin(person, path.replace('{account}', accounts[at]!))),
    )
    const started = await statuses(exports)
    expect(started.filter(status => status === 200)).toHaveLength(room)
    expect(new Set(started.filter(status => status !== 200))).toEqual(new Set([503]))
    for (const person of [owner, support]) {
      expect((await begin(person, path.replace('{account}', account))).status).toBe(200)
    }
    const sockets = (await Promise.all(exports)).map(({ socket }) => socket)
    const closed = sockets.map(socket => new Promise<void>(resolve => socket.once('close', () => resolve())))
    await beginLater(people[0]!, path.replace('{account}', accounts[0]!))
    // The gateway closes the sockets of exports that nobody reads.
    for (const socket of sockets) socket.resume()
    await Promise.race(closed)
  })
})
