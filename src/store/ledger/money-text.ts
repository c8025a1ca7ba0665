// Money as text between threads: decimal digits of nano-USD.

import { assert } from '../../base/assert.ts'
import type { Nanos } from '../../base/money/money.ts'
import { nanos } from '../../base/money/money.ts'

/** Nano-USD as decimal digits. */
export type MoneyText = `${bigint}`

export const moneyText = (amount: Nanos): MoneyText => `${amount}`

export const readMoney = (text: MoneyText): Nanos => nanos(BigInt(text))

/** Reads an amount and checks its range: the driver would wrap an integer beyond 64 bits silently. */
export function readAmount(text: MoneyText): bigint {
  const amount = readMoney(text)
  assert(amount >= 0n, 'an amount of money must not be negative')
  return amount
}
