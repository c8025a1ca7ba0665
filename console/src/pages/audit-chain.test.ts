import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import type { ChainRow } from './audit-chain.ts'
import { chainStart, checkRows, endOfChain, readHead } from './audit-chain.ts'

/** Rows as the gateway writes them. */
function chain(count: number): ChainRow[] {
  const rows: ChainRow[] = []
  let before = Buffer.alloc(32)
  for (let seq = 1; seq <= count; seq++) {
    const [actor, action, target] = ['usr_1', 'setKey', `key_${seq}`]
    const hashedText = JSON.stringify([
      seq,
      1_000 + seq,
      actor,
      null,
      'req_é',
      action,
      target,
      null,
      '{"name":["a","😀"]}',
    ])
    const hash = createHash('sha256').update(before).update(hashedText).digest()
    const [now, last] = [hash.toString('hex'), before.toString('hex')]
    rows.push({ seq, actor, action, target, hash: now, hashBefore: last, hashedText })
    before = hash
  }
  return rows
}

const rows = chain(5)
const check = (given: readonly ChainRow[], known?: { seq: number; hash: string }) =>
  checkRows(chainStart, given, known).then(state => endOfChain(state, known))

describe('The chain of the audit log', () => {
  test('agrees, in one piece and in several', async () => {
    const whole = await check(rows)
    expect(whole).toEqual({ rows: 5, hash: rows[4]!.hash })
    expect(await checkRows(await check(rows.slice(0, 2)), rows.slice(2))).toEqual(whole)
  })

  test.each([
    ['a changed text', 'hash', rows.map(row => (row.seq === 3 ? { ...row, hashedText: `${row.hashedText} ` } : row))],
    [
      'a row shown with another target',
      'content',
      rows.map(row => (row.seq === 3 ? { ...row, target: 'key_9' } : row)),
    ],
    ['a removed row', 'missing', rows.filter(row => row.seq !== 3)],
    ['another hash before', 'link', rows.map(row => (row.seq === 3 ? { ...row, hashBefore: rows[3]!.hash } : row))],
  ])('breaks at row 3 by %s', async (_, kind, given) => {
    expect((await check(given)).broken).toEqual({ seq: 3, kind: kind as never })
  })

  test('breaks where a saved head is another row, or beyond the end', async () => {
    expect((await check(rows, { seq: 2, hash: rows[2]!.hash })).broken).toEqual({ seq: 2, kind: 'head' })
    expect((await check(rows.slice(0, 3), { seq: 5, hash: rows[4]!.hash })).broken).toEqual({ seq: 5, kind: 'short' })
    expect((await check(rows, { seq: 5, hash: rows[4]!.hash })).broken).toBeUndefined()
  })
})

test('a saved head is read, and nothing else', () => {
  const { seq, hash } = rows[4]!
  expect(readHead(JSON.stringify({ seq, hash, saved: '2026-11-17T00:00:00Z' }))).toEqual({
    seq,
    hash,
    saved: '2026-11-17T00:00:00Z',
  })
  for (const text of ['', '{}', '[]', 'null', '{"seq":1.5,"hash":"00"}', JSON.stringify({ seq: '5', hash })])
    expect(readHead(text)).toBeUndefined()
})
