// Money as it crosses a thread: decimal digits of nano-USD.

import { assert } from '../../base/assert.ts'
import type { Nanos } from '../../base/money/money.ts'
import { nanos } from '../../base/money/money.ts'

/** Nano-USD as decimal digits. */
export type MoneyText = `${bigint}`

export const moneyText = (amount: Nanos): MoneyText => `${amount}`

export const readMoney = (text: MoneyText): Nanos => nanos(BigInt(text))

/** Beyond 64 bits the driver would wrap it silently. */
export function amountOf(text: MoneyText): bigint {
  const amount = readMoney(text)
  assert(amount >= 0n, 'an amount of money is not negative')
  return amount
}
