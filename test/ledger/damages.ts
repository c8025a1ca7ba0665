// Damages of the sample ledger, and what an audit must find. The SQL is the same for both databases.

import { alice, aliceKey, bob, calls, freshCode, usedCode } from './sample-books.ts'

export const REVENUE = 1

/** What is done to the ledger, and the checks that must fail, each with its account. */
export const damages: readonly (readonly [what: string, sql: string, found: readonly string[]])[] = [
  [
    'a balance is raised',
    `UPDATE account SET balance = balance + 7 WHERE id = ${alice}`,
    [`balance ${alice}`, 'sum -'],
  ],
  [
    'money is moved without a transfer',
    `UPDATE account SET balance = balance + CASE id WHEN ${alice} THEN 7 ELSE -7 END WHERE id IN (${alice}, ${bob})`,
    [`balance ${alice}`, `balance ${bob}`],
  ],
  [
    "the operator's own balance is changed",
    'UPDATE account SET balance = balance + 7 WHERE id = 1',
    [`balance ${REVENUE}`, 'sum -'],
  ],
  ['held without a hold', `UPDATE account SET held = held + 5 WHERE id = ${bob}`, [`held ${bob}`]],
  ['a hold without held', `UPDATE account SET held = 0 WHERE id = ${alice}`, [`held ${alice}`]],
  ['a hold is lost', `DELETE FROM hold WHERE call_id = ${calls.open}`, [`budget ${alice}`, `held ${alice}`]],
  ['an account is overdrawn', `UPDATE account SET credit_limit = -9000 WHERE id = ${alice}`, [`balance ${alice}`]],
  ['a cost is changed', `UPDATE record SET cost = cost + 1 WHERE call_id = ${calls.plain}`, [`call ${alice}`]],
  ['a shortfall is hidden', `UPDATE record SET shortfall = 0 WHERE call_id = ${calls.short}`, [`call ${bob}`]],
  ['a record is lost', `DELETE FROM record WHERE call_id = ${calls.plain}`, [`call ${alice}`]],
  [
    "a record is another account's",
    `UPDATE record SET account_id = ${bob} WHERE call_id = ${calls.plain}`,
    [`call ${bob}`],
  ],
  ['a free call is priced', `UPDATE record SET cost = 9 WHERE call_id = ${calls.free}`, [`call ${alice}`]],
  [
    'a call is over and still holds',
    `INSERT INTO record SELECT ${calls.open}, key_id, account_id, dialect, provider, model, channel, status, error,
       outcome, rule, usage_source, streamed, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens,
       reasoning_tokens, 0, 0, held, price_version, lines, attempts, timings, first_ms, duration_ms, end_user, tags,
       loss, came_hash, went_hash, asked, why, conversation
     FROM record WHERE call_id = ${calls.free}`,
    [`call ${alice}`],
  ],
  ['a budget forgets a hold', `UPDATE budget SET held = 0 WHERE scope_id = ${aliceKey}`, [`budget ${alice}`]],
  ['a budget is exceeded', `UPDATE budget SET spent = 9001 WHERE scope_id = ${bob}`, [`budget ${bob}`]],
  [
    'a code is made fresh again',
    `UPDATE code SET redeemed_ms = NULL, account_id = NULL WHERE id = ${usedCode}`,
    [`code ${bob}`],
  ],
  [
    'a code is used up for nothing',
    `UPDATE code SET redeemed_ms = 1, account_id = ${alice} WHERE id = ${freshCode}`,
    [`code ${alice}`],
  ],
]

/** These change rows that never change. An incremental audit that has read them does not read them again. */
export const damagesOfOldRows: typeof damages = [
  [
    'a charge is missing',
    `DELETE FROM transfer WHERE ref = ${calls.plain}`,
    [`balance ${REVENUE}`, `balance ${alice}`, `call ${alice}`, 'transfers -'],
  ],
  [
    'a charge is made smaller',
    `UPDATE transfer SET amount = amount - 1 WHERE ref = ${calls.plain}`,
    [`balance ${REVENUE}`, `balance ${alice}`, `call ${alice}`],
  ],
  [
    'a refund is made larger than its charge',
    `UPDATE transfer SET amount = 151 WHERE kind = 'refund'`,
    [`balance ${REVENUE}`, `balance ${alice}`, `call ${alice}`],
  ],
  [
    'a gift comes from revenue',
    `UPDATE transfer SET debit = 1 WHERE kind = 'gift' AND credit = ${alice}`,
    [`balance ${REVENUE}`, 'balance 2', `parties ${alice}`],
  ],
]
