// Redemption codes over the web: shown once, redeemed once, voided, and protected against guesses.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { askAsOwner } from '../support/management.ts'

let harness: Harness
let ask: Ask
let nowMs = Date.now()

beforeAll(async () => {
  harness = await startHarness({ world: { clock: { nowMs: () => nowMs, dateMs: () => nowMs } } })
  ask = await askAsOwner(harness)
})
afterAll(() => harness.stop())

async function account(): Promise<{ id: string; key: string }> {
  const key = await harness.key({ credit: '1' })
  return { id: String((await harness.weir('balance', { account: key })).id), key }
}

async function codes(count: number, more: object = {}): Promise<{ batch: string; codes: string[] }> {
  nowMs += 60_000 // after a minute, failed attempts no longer count
  ask = await askAsOwner(harness) // tokens expire soon
  const created = await ask('POST', 'web/codes', { count, amount: '5', ...more })
  expect(created.status).toBe(201)
  return created.body as { batch: string; codes: string[] }
}

const redeem = (id: string, code: string): Promise<ApiAnswer> => ask('POST', `web/accounts/${id}/redemptions`, { code })

describe('a batch of codes', () => {
  test("is shown once, and afterwards without the codes' texts", async () => {
    const { batch, codes: made } = await codes(3, { batch: 'spring' })
    expect(made).toHaveLength(3)
    const listed = await ask('GET', `web/codes?batch=${batch}`)
    expect(listed.body.data).toMatchObject(
      Array.from({ length: 3 }, () => ({ batch: 'spring', amount: '5.00', state: 'open', account: null })),
    )
    const batches = await ask('GET', 'web/codes/batches')
    expect(batches.body.data).toContainEqual(
      expect.objectContaining({ batch: 'spring', codes: 3, redeemed: 0, voided: 0, worth: '15.00' }),
    )
    const audit = await ask('GET', 'web/audit-log?action=createCodes')
    const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
    const digests = db.query('SELECT lower(hex(digest)) AS digest FROM code').all() as { digest: string }[]
    db.close()
    for (const text of [listed.text, batches.text, audit.text, harness.logs.join()]) {
      for (const secret of [...made, ...digests.map(({ digest }) => digest)]) expect(text).not.toContain(secret)
    }
  })

  test('is available as CSV too', async () => {
    const created = await ask('POST', 'web/codes?format=csv', { count: 2, amount: '0.5', batch: '=evil()' })
    expect(created.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(created.text).toMatch(/^code,amount,batch,expires\r\n(wr(-\w{4}){4},0\.50,'=evil\(\),\r\n){2}$/)
  })

  test('with a name that exists is refused', async () => {
    await codes(1, { batch: 'twice' })
    expect((await ask('POST', 'web/codes', { count: 1, amount: '5', batch: 'twice' })).error.code).toBe('name_taken')
  })

  const invalid: readonly (readonly [body: object, param: string])[] = [
    [{ count: 0, amount: '5' }, 'count'],
    [{ count: bounds.codesPerBatchMax + 1, amount: '5' }, 'count'],
    [{ count: 1, amount: '-5' }, 'amount'],
    [{ count: 1, amount: '5', expires: '2001-01-01T00:00:00Z' }, 'expires'],
    [{ count: 1, amount: '5', expires: 'soon' }, 'expires'],
    [{ count: 1, amount: '5', code: 'wr-1' }, 'code'],
  ]
  test.each(invalid)('with %j is refused, and the error names the field', async (body, param) => {
    const { status, error } = await ask('POST', 'web/codes', body)
    expect([status, error.param]).toEqual([400, param])
  })

  test('is listed page by page', async () => {
    const { batch } = await codes(5)
    const ids: string[] = []
    for (let after = ''; ; ) {
      const { body } = await ask('GET', `web/codes?batch=${batch}&limit=2${after}`)
      ids.push(...(body.data as { id: string }[]).map(({ id }) => id))
      if (body.next === null) break
      after = `&after=${String(body.next)}`
    }
    expect(new Set(ids).size).toBe(5)
    const names: string[] = []
    for (let after = ''; ; ) {
      const { body } = await ask('GET', `web/codes/batches?limit=1${after}`)
      names.push(...(body.data as { batch: string }[]).map(({ batch: name }) => name))
      if (body.next === null) break
      after = `&after=${encodeURIComponent(String(body.next))}`
    }
    expect(names).toEqual(names.toSorted())
    expect(names).toContain(batch)
  })
})

describe('a code', () => {
  test('that many redeem at once is redeemed once', async () => {
    const {
      codes: [code],
    } = await codes(1)
    const accounts = await Promise.all(Array.from({ length: 8 }, account))
    const answers = await Promise.all(accounts.map(({ id }) => redeem(id, code!)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(new Set(answers.filter(({ status }) => status !== 201).map(({ error }) => error.code))).toEqual(
      new Set(['code_unusable']),
    )
    const balances = await Promise.all(accounts.map(async ({ key }) => (await harness.balance(key)).balance))
    expect(balances.toSorted()).toEqual([...new Array<string>(7).fill('1.00'), '6.00'])
  })

  test('that the same account has redeemed says so', async () => {
    const {
      codes: [code],
    } = await codes(1)
    const { id } = await account()
    expect((await redeem(id, code!.toLowerCase())).body).toEqual({ amount: '5.00', balance: '6.00' })
    expect((await redeem(id, code!)).error.code).toBe('state_unfit')
  })

  test('that is unknown, redeemed, voided or expired is refused with the same message', async () => {
    const { id } = await account()
    const {
      codes: [used],
    } = await codes(1)
    expect((await redeem((await account()).id, used!)).status).toBe(201)
    const {
      codes: [gone],
      batch,
    } = await codes(1)
    expect((await ask('POST', 'web/codes/voids', { batch })).body).toEqual({ voided: 1 })
    const {
      codes: [late],
    } = await codes(1, { expires: new Date(nowMs + 70_000).toISOString() })
    const db = openDatabase(join(harness.folder, 'weir.db'))
    db.run('UPDATE code SET expires_ms = 1 WHERE expires_ms IS NOT NULL')
    db.close()
    const refusals = await Promise.all(
      [used!, gone!, late!, 'wr-0000-0000-0000-0000', 'hello', "' OR 1=1 --"].map(code => redeem(id, code)),
    )
    const texts = refusals.map(({ status, error }) => JSON.stringify([status, error]).replace(/req_\w+/, ''))
    expect([...new Set(texts)]).toHaveLength(1)
    expect(refusals[0]!.error.code).toBe('code_unusable')
  })

  test('cannot be guessed: too many attempts have to wait, and other people are served', async () => {
    nowMs += 60_000
    const { id } = await account()
    const {
      codes: [code],
    } = await codes(1)
    for (let at = 0; at < bounds.codeAttemptsPerMinuteMax; at++) {
      expect((await redeem(id, `wr-0000-0000-0000-000${at}`)).error.code).toBe('code_unusable')
    }
    const late = await redeem(id, code!)
    expect([late.status, late.error.code]).toEqual([429, 'tried_too_often'])
    expect(Number(late.headers.get('retry-after'))).toBeGreaterThan(0)
    nowMs += 60_000 / bounds.codeAttemptsPerMinuteMax
    expect((await redeem(id, code!)).status).toBe(201)
    nowMs += 60_000
    // Successful redemptions do not count as guesses.
    const { codes: many } = await codes(bounds.codeAttemptsPerMinuteMax + 2)
    for (const one of many) expect((await redeem(id, one)).status).toBe(201)
  })

  test('for an unknown account or an account of the ledger is not redeemed', async () => {
    const {
      codes: [code],
    } = await codes(1)
    for (const id of ['acc_00000000001', 'acc_00000000zzz']) {
      expect((await redeem(id, code!)).error.code).toBe('resource_unknown')
    }
  })
})

test('a code that would lift a balance above its limit is refused, and stays as it is', async () => {
  const { codes: made, batch } = await codes(3, { amount: '999999999' })
  const { id } = await account()
  for (const code of made.slice(0, 2)) expect((await redeem(id, code)).status).toBe(201)
  const refused = await redeem(id, made[2]!)
  expect([refused.status, refused.error.code]).toEqual([409, 'state_unfit'])
  expect(refused.error.message).toContain('too large')
  // The operator's own account, which pays for codes and credit, has the same limit.
  const other = (await account()).id
  expect((await redeem(other, made[2]!)).error.code).toBe('state_unfit')
  for (const name of ['a', 'b']) {
    const created = await ask('POST', 'web/keys', { account: other, name, credit: '999999999' })
    expect([created.status, created.error.code, created.error.param]).toEqual([409, 'state_unfit', 'credit'])
  }
  expect((await ask('GET', `web/keys?account=${other}&name=a`)).body.data).toEqual([])
  expect((await ask('GET', `web/codes?batch=${batch}&state=open`)).body.data).toHaveLength(1)
})

describe('voiding codes', () => {
  test('keeps those that were redeemed', async () => {
    const { codes: made, batch } = await codes(3)
    await redeem((await account()).id, made[0]!)
    expect((await ask('POST', 'web/codes/voids', { batch })).body).toEqual({ voided: 2 })
    const states = async (state: string): Promise<number> =>
      ((await ask('GET', `web/codes?batch=${batch}&state=${state}`)).body.data as unknown[]).length
    expect([await states('redeemed'), await states('voided'), await states('open')]).toEqual([1, 2, 0])
    expect((await ask('POST', 'web/codes/voids', { batch })).body).toEqual({ voided: 0 })
  })

  test('works for one code by its id', async () => {
    const { batch } = await codes(2)
    const [one] = (await ask('GET', `web/codes?batch=${batch}`)).body.data as { id: string }[]
    expect((await ask('POST', 'web/codes/voids', { code: one!.id })).body).toEqual({ voided: 1 })
    expect((await ask('POST', 'web/codes/voids', { code: one!.id })).error.code).toBe('state_unfit')
    expect((await ask('POST', 'web/codes/voids', { batch: 'none such' })).error.code).toBe('resource_unknown')
    expect((await ask('POST', 'web/codes/voids', { batch, code: one!.id })).status).toBe(400)
    expect((await ask('POST', 'web/codes/voids', {})).status).toBe(400)
  })
})
