// Schemas of money in requests: US dollars as decimal text. Exponents and more than nine decimals are refused, and
// depending on the schema also zero and signs.

import * as z from 'zod'
import type { Nanos } from '../../base/money/money.ts'
import { nanos, parseUsd } from '../../base/money/money.ts'
import { moneyText } from '../../store/ledger/money-text.ts'
import { must } from '../web/issue-text.ts'

/** Money in answers. */
export const money = z.string().meta({ description: 'US dollars, as decimal text' })

const AMOUNT = must('must_be_amount')

const read = (text: string): Nanos => parseUsd(text) ?? nanos(0n)

/** More than zero. */
export const positiveUsd = z
  .string({ error: AMOUNT })
  .regex(/^\d{1,9}(\.\d{1,9})?$/, AMOUNT)
  .refine(text => read(text) > 0n, AMOUNT)
  .meta({ description: AMOUNT, examples: ['5', '0.25'] })
  .transform(read)

const BOUND = must('must_be_bound')

/** Zero or more: a budget or a credit limit. */
export const boundUsd = z
  .string({ error: BOUND })
  .max(20)
  .refine(text => parseUsd(text) !== undefined, BOUND)
  .meta({ description: BOUND, examples: ['5', '0.25'] })
  .transform(text => moneyText(read(text)))

const CORRECTION = must('must_be_correction')

/** An amount with a sign, for corrections. */
export const signedUsd = z
  .string({ error: CORRECTION })
  .regex(/^[+-]?\d{1,9}(\.\d{1,9})?$/, CORRECTION)
  .refine(text => read(text.replace(/^[+-]/, '')) > 0n, CORRECTION)
  .meta({ description: `${CORRECTION}; a minus sign reduces the balance`, examples: ['5', '-0.25'] })
  .transform(text => (text.startsWith('-') ? nanos(-read(text.slice(1))) : read(text.replace(/^\+/, ''))))

/** The name of a payment or a batch: one line of text. */
export const label = z
  .string()
  .min(1)
  .max(200)
  .refine(text => !/\p{Cc}/u.test(text), must('must_have_no_controls'))
