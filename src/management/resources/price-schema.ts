// The schema of a price in a request: the same fields as in a provider file, and no others. parsePrice() checks whether
// they make sense together.

import * as z from 'zod'
import { fees } from '../../base/money/price.ts'
import { buckets } from '../../base/money/usage.ts'

const rate = z
  .string()
  .max(30)
  .meta({ description: 'US dollars per million tokens; fees: US dollars per unit', examples: ['0.15'] })

type RateName = (typeof buckets)[number] | (typeof fees)[number]

const rates = Object.fromEntries([...buckets, ...fees].map(name => [name, rate.optional()])) as Record<
  RateName,
  z.ZodOptional<typeof rate>
>

const PriceCase = z.strictObject({
  ...rates,
  class: z.string().max(40).optional(),
  inputAbove: z.number().optional(),
  hours: z.array(z.string().max(5)).max(2).optional(),
  from: z.string().max(10).optional(),
})

export const writtenPrice = z
  .strictObject({
    ...rates,
    input: rate,
    output: rate,
    cases: z.array(PriceCase).max(24).optional(),
    currency: z
      .strictObject({
        code: z.string().max(3),
        unitsPerUsd: z.string().max(30),
        converted: z.literal(true).optional(),
      })
      .optional(),
    source: z.string().max(500).optional(),
    included: z.array(z.string().max(200)).max(100).optional(),
  })
  .meta({ id: 'WrittenPrice', description: 'The form of a price in a provider file: docs/guides/prices.md' })
