// Endpoints for prices: the current price and all versions of each model, and the operator's own prices.

import * as z from 'zod'
import { refusal } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { priceSchema, priceText as textOfPrice } from '../../base/money/price.ts'
import { timeText } from '../../base/time.ts'
import type { PriceDetails } from '../../store/queries/prices.ts'
import type { Actor } from '../actor.ts'
import { askerOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { BadPrice, isModelName, priceWarnings, readPrice, setPrice, withdrawPrice } from '../prices/price-changes.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, listOf, listQuery, managedBy, noContent, time } from './endpoint.ts'
import { describedObject } from './fields.ts'
import { shownWarnings, warnings } from './hint-schema.ts'
import { buildListQuery, listAnswer, requireDone, requireFound, resourceUnknown } from './list-queries.ts'

/**
 * A price in a request and in an answer. parsePriceField() checks it, so that its errors are those of a provider file.
 */
export const writtenPrice = describedObject(
  'WrittenPrice',
  'The form of a price in a provider file: docs/reference/price-format.md',
  priceSchema,
)

const ModelPrice = z
  .object({
    model: z.string(),
    origin: z.enum(['shipped', 'operator']),
    version: z.number(),
    price: writtenPrice,
    made: time,
    inUse: z
      .boolean()
      .meta({ description: 'False for a price that an earlier version shipped and this version does not.' }),
    managedBy,
  })
  .meta({ id: 'ModelPrice' })

const PriceVersion = z
  .object({
    version: z.number(),
    origin: z.enum(['shipped', 'operator', 'withdrawn']),
    price: writtenPrice.nullable(),
    author: z.string(),
    made: time,
  })
  .meta({ id: 'PriceVersion' })

/** The model name as callers write it, with its slashes. */
const modelName = z
  .string()
  .max(300)
  .transform(text => {
    try {
      return decodeURIComponent(text)
    } catch {
      return ''
    }
  })
  .refine(isModelName)

const params = z.object({ model: modelName })

/** Parses the price; an invalid price becomes a refusal of the field that is wrong. */
export function parsePriceField(body: { readonly price: unknown }) {
  try {
    return readPrice(body.price)
  } catch (fault) {
    if (!(fault instanceof BadPrice)) throw fault
    throw refusal('field_invalid', sentenceOf(fault.hint), fault.field)
  }
}

/** A problem of a price as a sentence that names the price. */
function sentenceOf(problem: Hint): Hint {
  const { text } = problem
  if (text.endsWith('?')) return problem
  return text.startsWith('"') ? hintOf('price_says', { problem }) : hintOf('price_field', { problem })
}

/** Turns an invalid model name into a refusal of the field "model". */
async function refuseBadModel<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (fault) {
    if (!(fault instanceof BadPrice)) throw fault
    throw refusal('field_invalid', hintOf('price_model', { problem: fault.hint }), 'model')
  }
}

export function priceEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  return [...readEndpoints(parts), ...writeEndpoints(parts)]
}

function showPriceWith(parts: ManagementParts): (row: PriceDetails) => z.input<typeof ModelPrice> {
  const shipped = parts.catalogue().prices()
  const live = parts.liveGateway()?.prices
  return ({ model, origin, version, price, madeMs }) => {
    // The newest version need not be in use: a provider's list may go back to a price that it had before.
    const current = origin === 'shipped' && shipped.has(model) ? live?.current(model) : undefined
    return {
      model,
      origin: origin as 'shipped' | 'operator',
      version: current?.version ?? version,
      made: timeText(madeMs),
      price: current === undefined ? (price as Record<string, unknown>) : JSON.parse(textOfPrice(current.price)),
      inUse: origin === 'operator' || shipped.has(model),
    }
  }
}

async function show(parts: ManagementParts, model: string, actor: Actor) {
  const { newest, current } = await parts.queryWorker.query('price', { model }, askerOf(actor))
  return { body: showPriceWith(parts)(requireFound(current)), version: newest }
}

function readEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const { queryWorker } = parts
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/prices',
      who: 'actor',
      summary: 'List the current prices of models.',
      query: listQuery({ model: z.string().max(300).optional(), origin: z.enum(['shipped', 'operator']).optional() }, [
        'model',
      ]),
      answer: listOf(ModelPrice),
      async run({ query, actor }) {
        const pageQuery = buildListQuery(query, null, 'model')
        const page = await queryWorker.query('prices', pageQuery, askerOf(actor))
        return listAnswer(page, pageQuery, showPriceWith(parts))
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/prices/history/{model*}',
      who: { site: 'support' },
      summary: 'List all price versions of a model, newest first.',
      params,
      query: listQuery({}, ['version']),
      answer: listOf(PriceVersion),
      async run({ params: { model }, query, scope }) {
        const pageQuery = buildListQuery({ ...query, model }, scope, '-version')
        return listAnswer(
          await queryWorker.query('priceHistory', pageQuery),
          pageQuery,
          ({ version, origin, price, author, madeMs }) => ({
            version,
            origin: origin as z.output<typeof PriceVersion>['origin'],
            author,
            made: timeText(madeMs),
            price: price as Record<string, unknown> | null,
          }),
        )
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/prices/{model*}',
      who: 'actor',
      summary: 'Show the current price of a model.',
      params,
      answer: ModelPrice,
      run: ({ params: { model }, actor }) => show(parts, model, actor),
    }),
  ]
}

function writeEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'PUT',
      path: '/api/web/prices/{model*}',
      who: { site: 'admin' },
      summary:
        'Set your own price of a model. It replaces the shipped price from the next call on. For a pattern such as ' +
        'relay/*: the price of the models of this provider that have none of their own.',
      params,
      changes: ({ model }) => [`prices/${model}`],
      body: z.strictObject({ price: writtenPrice }),
      answer: ModelPrice.extend(warnings),
      async run({ params: { model }, body, by, actor }) {
        const price = parsePriceField(body)
        const noted = priceWarnings(model, parts.catalogue())
        requireDone(await refuseBadModel(() => setPrice(parts, { model, author: by.actor, price }, by)), {})
        const { body: row, version } = await show(parts, model, actor)
        return { body: { ...row, ...shownWarnings(noted) }, version }
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/prices/{model*}',
      who: { site: 'admin' },
      summary: 'Remove your own price; the shipped price applies again.',
      params,
      changes: ({ model }) => [`prices/${model}`],
      answer: noContent,
      status: 204,
      async run({ params: { model }, by }) {
        const { current, newest } = await parts.queryWorker.query('price', { model })
        if (current?.origin !== 'operator') throw resourceUnknown()
        // Expects the version that was read, so that a price that another person sets meanwhile is not removed.
        requireDone(await withdrawPrice(parts, { model, author: by.actor }, { expectedVersion: newest, ...by }), {})
        return {}
      },
    }),
  ]
}
