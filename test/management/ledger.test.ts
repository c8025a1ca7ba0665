// The ledger over the web: statements that add up, postings that happen once, and the errors for bad input.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import fc from 'fast-check'
import { textId } from '../../src/base/ids.ts'
import { formatUsd, nanos, parseUsd } from '../../src/base/money/money.ts'
import { csvCell } from '../../src/base/text/export-lines.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { askAsOwner } from '../support/management.ts'

let harness: Harness
let ask: Ask

beforeAll(async () => {
  // Audits on demand only, so that none runs before the test that wants the first one.
  harness = await startHarness({ env: { WEIR_AUDIT_SECONDS: '0' } })
  ask = await askAsOwner(harness)
})
afterAll(() => harness.stop())

interface Line {
  readonly kind: string
  readonly amount: string
  readonly balance: string | null
  readonly reference: string | null
  readonly made: string
}

async function account(credit = '10'): Promise<{ id: string; key: string }> {
  const key = await harness.key({ credit })
  const { id } = (await harness.weir('balance', { account: key })) as { id: string }
  return { id, key }
}

/** Makes a paid call; returns its id. */
async function call(key: string): Promise<string> {
  const answer = await chat(harness, key, { model: 'openai/gpt-4o-mini', messages: hello })
  await answer.text()
  return answer.headers.get('x-request-id')!
}

const balanceOf = async (key: string): Promise<string> => (await harness.balance(key)).balance

const nanosOf = (usd: string): bigint => (usd.startsWith('-') ? -parseUsd(usd.slice(1))! : parseUsd(usd)!)

/** The lines of all pages. */
async function statement(id: string, query = '', limit = 3): Promise<readonly Line[]> {
  const lines: Line[] = []
  for (let after = ''; ; ) {
    const { body } = await ask('GET', `web/accounts/${id}/statement?limit=${limit}${query}${after}`)
    lines.push(...(body.data as Line[]))
    if (body.next === null) return lines
    after = `&after=${String(body.next)}`
  }
}

/** A cell that begins with a quote ends at its closing quote; a line break ends a cell, too. */
function splitLikeASpreadsheet(text: string, separator: string): readonly string[] {
  const cells: string[] = []
  let [cell, isQuoted, at] = ['', false, 0]
  for (; at < text.length; at++) {
    const char = text[at]!
    if (isQuoted) {
      if (char !== '"') cell += char
      else if (text[at + 1] === '"') cell += text[++at]!
      else isQuoted = false
    } else if (char === '"' && cell === '') isQuoted = true
    else if (char === separator || char === '\n' || char === '\r') {
      cells.push(cell)
      cell = ''
    } else cell += char
  }
  return [...cells, cell]
}

describe('a statement', () => {
  test('adds up to the balance line by line, whatever happened', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constantFrom('top-ups', 'gifts', 'adjustments'), nanos: fc.integer({ min: 1, max: 2e9 }) }),
      fc.record({ kind: fc.constant('call'), nanos: fc.constant(0) }),
      fc.record({ kind: fc.constant('refund'), nanos: fc.constant(0) }),
      fc.record({ kind: fc.constant('take away'), nanos: fc.integer({ min: 1, max: 1e9 }) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async steps => {
        const { id, key } = await account('1')
        const calls: string[] = []
        for (const [at, { kind, nanos: amount }] of steps.entries()) {
          const usd = formatUsd(nanos(BigInt(amount)))
          const reference = `${id} ${at}`
          if (kind === 'call') calls.push(await call(key))
          else if (kind === 'refund') await ask('POST', `web/accounts/${id}/refunds`, { call: calls.pop() ?? 'req_0' })
          else if (kind === 'take away') {
            await ask('POST', `web/accounts/${id}/adjustments`, { amount: `-${usd}`, reference })
          } else await ask('POST', `web/accounts/${id}/${kind}`, { amount: usd, reference })
        }
        const lines = await statement(id)
        const sum = lines.reduce((all, { amount }) => all + nanosOf(amount), 0n)
        expect(formatUsd(nanos(sum))).toBe(await balanceOf(key))
        let after = 0n
        for (const { amount, balance } of lines.toReversed()) {
          after += nanosOf(amount)
          expect(nanosOf(balance!)).toBe(after)
        }
      }),
      { numRuns: 12 },
    )
  })

  test('does not change while its pages are read and calls go on', async () => {
    const { id, key } = await account()
    for (let at = 0; at < 4; at++) await call(key)
    const first = await ask('GET', `web/accounts/${id}/statement?limit=2`)
    await call(key)
    await ask('POST', `web/accounts/${id}/top-ups`, { amount: '1', reference: `${id} meanwhile` })
    const second = await ask('GET', `web/accounts/${id}/statement?limit=10&after=${String(first.body.next)}`)
    const lines = [...(first.body.data as Line[]), ...(second.body.data as Line[])]
    expect(lines.map(({ kind }) => kind)).toEqual(['charge', 'charge', 'charge', 'charge', 'gift'])
    expect(nanosOf(lines.at(-1)!.balance!)).toBe(nanosOf(lines.at(-1)!.amount))
  })

  test('filtered by kind or time leaves the rest out, and changes neither order nor balances', async () => {
    const { id, key } = await account()
    await call(key)
    await ask('POST', `web/accounts/${id}/top-ups`, { amount: '1', reference: `${id} later` })
    await call(key)
    const unfiltered = await statement(id)
    expect(unfiltered.map(({ kind }) => kind)).toEqual(['charge', 'top_up', 'charge', 'gift'])
    for (const kind of ['charge', 'top_up', 'refund']) {
      expect(await statement(id, `&kind=${kind}`)).toEqual(unfiltered.filter(line => line.kind === kind))
    }
    // Lines may share a millisecond: the filter compares the times of the lines, not the moment of the request.
    for (const { made } of unfiltered) {
      expect(await statement(id, `&from=${made}`)).toEqual(unfiltered.filter(line => line.made >= made))
      expect(await statement(id, `&before=${made}`)).toEqual(unfiltered.filter(line => line.made < made))
    }
  })

  test('still has the charges of calls whose records were deleted', async () => {
    const { id, key } = await account()
    await call(key)
    await call(key)
    const db = openDatabase(join(harness.folder, 'weir.db'))
    const before = await statement(id)
    db.query('DELETE FROM record WHERE call_id = (SELECT min(call_id) FROM record WHERE account_id = ?1)').run(
      (db.query('SELECT account_id AS id FROM record ORDER BY call_id DESC LIMIT 1').get() as { id: number }).id,
    )
    db.close()
    expect(await statement(id)).toEqual(before as Line[])
    expect(before.map(({ kind }) => kind)).toEqual(['charge', 'charge', 'gift'])
  })

  test("of the ledger's own accounts has the counterpart of every transfer", async () => {
    const [revenue, clearing] = [textId('acc', 1), textId('acc', 4)]
    for (const id of [revenue, clearing]) {
      const lines = await statement(id, '', 50)
      const { body } = await ask('GET', 'web/ledger/trial-balance')
      const ledgerAccounts = body.own as { account: string; balance: string }[]
      const sum = lines.reduce((all, { amount }) => all + nanosOf(amount), 0n)
      expect(formatUsd(nanos(sum))).toBe(ledgerAccounts.find(({ account: one }) => one === id)!.balance)
    }
  })

  test('as a file is complete, and harmless to a spreadsheet', async () => {
    const { id, key } = await account()
    await call(key)
    const evil = '=HYPERLINK("http://x","y")'
    await ask('POST', `web/accounts/${id}/gifts`, { amount: '1', reference: `${evil},"${id}"` })
    const csv = await ask('GET', `web/accounts/${id}/statement/export`)
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(csv.headers.get('content-disposition')).toBe(`attachment; filename="statement-${id}.csv"`)
    const rows = csv.text.split('\r\n')
    expect(rows[0]).toBe('made,kind,amount,balance,with,ref,reference,author')
    expect(rows[1]).toContain(`,"'=HYPERLINK(""http://x"",""y""),""${id}""",`)
    expect(rows).toHaveLength(5)
    const lines = (await ask('GET', `web/accounts/${id}/statement/export?format=ndjson`)).text.trim().split('\n')
    expect(lines.map(line => JSON.parse(line))).toEqual((await statement(id)) as unknown[])
  })

  const cells: readonly (readonly [unknown, string])[] = [
    ['=1+1', "'=1+1"],
    ['+1+1', "'+1+1"],
    ['-1+cmd', "'-1+cmd"],
    ['@x', "'@x"],
    ['\tx', '"\'\tx"'],
    ['x;=1+1', '"x;\'=1+1"'],
    ['x,@y', '"x,\'@y"'],
    ['a\n=1', '"a\n\'=1"'],
    ['x;"=1"', '"x;\'""=1"""'],
    ['x;-5;7', '"x;\'-5;7"'],
    ['=1;2', '"\'=1;2"'],
    ['plain text - of words', 'plain text - of words'],
    ['-5.25', '-5.25'],
    ['a,b', '"a,b"'],
    ['a"b', '"a""b"'],
    ['a\r\nb', '"a\r\nb"'],
    [null, ''],
    [7, '7'],
  ]
  test.each(cells)('%j is written as %j', (value, text) => expect(csvCell(value as string)).toBe(text))

  test('has no cell that is a formula, wherever a spreadsheet splits', () => {
    const part = fc.constantFrom(
      ...['=', '+', '-', '@', ';', ',', '|', '\t', '\r', '\n', '"', "'", ' ', 'x', '1', '＝'],
    )
    const cell = fc.array(part, { maxLength: 12 }).map(parts => parts.join(''))
    fc.assert(
      fc.property(fc.array(cell, { minLength: 1, maxLength: 4 }), cells => {
        const line = cells.map(csvCell).join()
        for (const separator of [',', ';', '\t', '|']) {
          for (const cell of splitLikeASpreadsheet(line, separator)) {
            const isRun = /^[\s"]*[=+\-@＝]/.test(cell) && !/^-?\d+(\.\d+)?([,;|\t]|$)/.test(cell)
            expect([line, separator, cell, isRun]).toEqual([line, separator, cell, false])
          }
        }
        // Changed cells differ by apostrophes alone.
        const back = splitLikeASpreadsheet(line, ',').map(text => text.replaceAll("'", ''))
        expect(back).toEqual(cells.map(text => text.replaceAll("'", '')))
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('a posting', () => {
  const kinds = ['top-ups', 'gifts', 'adjustments'] as const

  test.each(kinds)('of %s that is sent many times at once is posted once', async kind => {
    const { id, key } = await account('1')
    const body = { amount: '2.5', reference: `${id} ${kind}` }
    const sent = Array.from({ length: 12 }, () => ask('POST', `web/accounts/${id}/${kind}`, body))
    const answers = await Promise.all(sent)
    expect(answers.map(({ status }) => status).toSorted()).toEqual([...new Array<number>(11).fill(200), 201])
    expect(new Set(answers.map(({ body: { ref } }) => ref)).size).toBe(1)
    expect(await balanceOf(key)).toBe('3.50')
  })

  test('takes an Idempotency-Key as its reference', async () => {
    const { id, key } = await account('1')
    const send = (amount: string): Promise<ApiAnswer> =>
      ask('POST', `web/accounts/${id}/top-ups`, { amount }, { 'idempotency-key': `click ${id}` })
    expect([(await send('1')).status, (await send('1')).status]).toEqual([201, 200])
    expect((await send('2')).error.code).toBe('posted_before')
    expect(await balanceOf(key)).toBe('2.00')
  })

  test('with a reference of another account is refused', async () => {
    const [first, second] = [await account(), await account()]
    const body = { amount: '1', reference: `shared ${first.id}` }
    await ask('POST', `web/accounts/${first.id}/top-ups`, body)
    const repeated = await ask('POST', `web/accounts/${second.id}/top-ups`, body)
    expect([repeated.status, repeated.error.code]).toEqual([409, 'posted_before'])
    expect(await balanceOf(second.key)).toBe('10.00')
  })

  test('refunds a call once, and no more than it was charged', async () => {
    const { id, key } = await account()
    const paid = await call(key)
    const charged = (await statement(id))[0]!.amount.slice(1)
    const refund = (more = {}): Promise<ApiAnswer> => ask('POST', `web/accounts/${id}/refunds`, { call: paid, ...more })
    expect((await refund({ amount: '9' })).error.code).toBe('state_unfit')
    const answers = await Promise.all([refund(), refund(), refund()])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 201])
    expect(answers[0]!.body.amount).toBe(charged)
    expect((await refund({ amount: '0.000000001' })).error.code).toBe('posted_before')
    expect(await balanceOf(key)).toBe('10.00')
    const otherAccount = await account()
    expect((await ask('POST', `web/accounts/${otherAccount.id}/refunds`, { call: paid })).error.code).toBe(
      'posted_before',
    )
    const unpaid = await call(key)
    const foreign = await ask('POST', `web/accounts/${otherAccount.id}/refunds`, { call: unpaid })
    expect([foreign.status, foreign.error.code]).toEqual([409, 'state_unfit'])
  })

  test('refunds with the reference of another call are refused', async () => {
    const { id, key } = await account()
    const [first, second] = [await call(key), await call(key)]
    const refund = (paid: string): Promise<ApiAnswer> =>
      ask('POST', `web/accounts/${id}/refunds`, { call: paid, reference: `ticket of ${id}` })
    expect((await refund(first)).status).toBe(201)
    const other = await refund(second)
    expect([other.status, other.error.code]).toEqual([409, 'posted_before'])
    expect((await refund(first)).body.repeated).toBe(true)
    expect((await ask('POST', `web/accounts/${id}/refunds`, { call: second })).status).toBe(201)
    expect(await balanceOf(key)).toBe('10.00')
  })

  const amounts = ['-1', '0', '0.00', '1e3', '1.0123456789', 'five', '', ' 1', '1000000000', '0x10', '１', 5, null, [1]]
  test.each(amounts)('of %j is refused, and the error names the field', async amount => {
    const { id, key } = await account('1')
    for (const kind of ['top-ups', 'gifts']) {
      const { status, error } = await ask('POST', `web/accounts/${id}/${kind}`, { amount, reference: 'x' })
      expect([status, error.code, error.param]).toEqual([400, 'field_invalid', 'amount'])
    }
    expect(await balanceOf(key)).toBe('1.00')
  })

  test('of a number beyond the range is refused, and the error names the field', async () => {
    const { id } = await account()
    const { error } = await ask('POST', `web/accounts/${id}/top-ups`, '{"amount":1e400,"reference":"x"}')
    expect([error.code, error.param]).toEqual(['field_invalid', 'amount'])
  })

  test('needs a reference, an account of a customer, and no more than the balance', async () => {
    const { id } = await account('1')
    const refusalCode = async (path: string, body: unknown): Promise<unknown> =>
      (await ask('POST', path, body)).error.code
    expect(await refusalCode(`web/accounts/${id}/top-ups`, { amount: '1' })).toBe('field_missing')
    expect(await refusalCode(`web/accounts/${id}/top-ups`, { amount: '1', reference: 'a\u0000b' })).toBe(
      'field_invalid',
    )
    expect(await refusalCode(`web/accounts/${textId('acc', 1)}/top-ups`, { amount: '1', reference: 'r' })).toBe(
      'resource_unknown',
    )
    expect(await refusalCode(`web/accounts/${textId('acc', 77)}/gifts`, { amount: '1', reference: 'r' })).toBe(
      'resource_unknown',
    )
    expect(await refusalCode(`web/accounts/${id}/adjustments`, { amount: '-1.01', reference: `${id} r` })).toBe(
      'state_unfit',
    )
  })
})

describe('the ledger', () => {
  test('sums up to zero, whatever was posted', async () => {
    const { body } = await ask('GET', 'web/ledger/trial-balance')
    expect(body.sum).toBe('0.00')
    expect((body.own as { name: string }[]).map(({ name }) => name)).toEqual([
      ...['revenue', 'promo', 'shortfall', 'clearing'],
    ])
  })

  test('is reported as the auditor has found it', async () => {
    expect((await ask('GET', 'web/ledger/check')).body).toEqual({
      books: 'not looked at yet',
      audited: null,
      findings: [],
    })
    await harness.weir('audit')
    const report = (await ask('GET', 'web/ledger/check')).body
    // A test above deleted one record.
    expect(report).toMatchObject({
      books: 'do not agree',
      findings: [{ check: 'call', findingHint: { code: 'found_call_unrecorded', values: { amount: '$0.0000015' } } }],
    })
  })
})

test('an account without a closed day has no daily hashes, and only its members and staff may ask', async () => {
  const { id } = await account()
  expect((await ask('GET', `web/accounts/${id}/daily-hashes`)).body).toEqual({ data: [], next: null, limit: 50 })
  expect((await ask('GET', `web/accounts/${id}/daily-hashes?after=yesterday`)).status).toBe(400)
  expect((await ask('GET', 'web/accounts/acc_0000000000/daily-hashes')).status).toBe(404)
})
