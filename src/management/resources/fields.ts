// Fields that several resources have in common: how people write them, and what becomes of them.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { nanos, formatUsd, parseUsd } from '../../base/money.ts'
import { moneyText } from '../../store/operations.ts'

export const label = z
  .string()
  .trim()
  .min(1)
  .max(bounds.keyNameCharsMax)
  .regex(/^\P{Cc}*$/u, 'no control characters')
export const tierName = z.string().min(1).max(50)

/** As callers name models, with any number of `*`. No comma: they are kept with commas between. */
export const modelPattern = z
  .string()
  .min(1)
  .max(bounds.modelNameCharsMax)
  .regex(/^[\x21-\x2b\x2d-\x7e]*$/, 'visible characters without a comma, in which * stands for any others')

/** Null: whichever. */
export const listOrAll = <T extends z.ZodType<string>>(item: T, max: number) => z.array(item).min(1).max(max).nullable()

export const modelPatterns = listOrAll(modelPattern, bounds.keyPatternsMax)

export const moment = z.iso
  .datetime({ offset: true })
  .refine(text => Date.parse(text) < Date.UTC(2100, 0), 'before the year 2100')
  .transform(text => Date.parse(text))

export const timeOf = (ms: number): string => new Date(ms).toISOString()
export const timeOrNull = (ms: number | null): string | null => (ms === null ? null : timeOf(ms))

/** Of dollars, which are not negative. */
export const amount = z
  .string()
  .refine(text => parseUsd(text) !== undefined, 'US dollars in decimals, such as 5 or 0.25, and not negative')
  .transform(text => moneyText(parseUsd(text)!))
  .meta({ description: 'US dollars, in decimals' })

export const usdOf = (digits: string | bigint): string => formatUsd(nanos(BigInt(digits)))

/** From a filter's text. */
export const yesNo = z.enum(['true', 'false']).transform(text => text === 'true')
