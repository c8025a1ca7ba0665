// What a management endpoint is: one row with who may ask, what is asked and what is answered. The interface, its
// description (OpenAPI) and the tests that try it as everybody are all made from these rows.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { parseTextId, textId } from '../../base/ids.ts'
import type { By, Seen } from '../../store/audit-log/audited.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { Actor, SiteRole, Who } from '../actor.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface EndpointAsk<Params, Query, Body> {
  readonly actor: Actor
  /** Whose things may be seen or changed: it goes into every read and write. Null: everybody's. */
  readonly scope: Scope | null
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** For whatever is written, with the version that the caller has seen, where they told one. */
  readonly by: By & Partial<Seen>
  readonly requestId: string
  readonly address: string
  header(name: string): string | undefined
}

export interface EndpointAnswer<Answer> {
  readonly body?: Answer
  readonly status?: number
  /** Of what is shown, for those who want to change it. */
  readonly version?: number
  readonly headers?: Readonly<Record<string, string>>
}

type Shape = z.ZodObject
type Schema = z.ZodType
type Out<S> = S extends z.ZodType ? z.output<S> : Record<string, never>

export interface EndpointRow<P extends Shape | undefined, Q extends Shape | undefined, B, A extends Schema> {
  readonly method: Method
  /** With `{name}` for each of the params. */
  readonly path: `/api/${'web' | 'auth'}/${string}`
  readonly who: Who
  /** One sentence. */
  readonly about: string
  /** Of ids: one that cannot be read is one that is not there. */
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  readonly answer: A
  /** Fields of the body that only those of this role of the site may set. */
  readonly reserved?: Readonly<Record<string, SiteRole>>
  /** 200 unless told. */
  readonly status?: 201 | 202 | 204
  run(ask: EndpointAsk<Out<P>, Out<Q>, Out<B>>): Promise<EndpointAnswer<z.input<A>> | Response>
}

/** A row whose schemas are known only when it is asked. */
export interface WebEndpoint extends Omit<EndpointRow<Shape, Shape, Schema, Schema>, 'run'> {
  run(ask: EndpointAsk<never, never, never>): Promise<EndpointAnswer<unknown> | Response>
}

export const endpoint = <A extends Schema, P extends Shape | undefined, Q extends Shape | undefined, B>(
  row: EndpointRow<P, Q, B, A>,
): WebEndpoint => row as unknown as WebEndpoint

/** Ids are text outside and numbers inside. */
export const idOf = (prefix: string) =>
  z
    .string()
    .regex(new RegExp(`^${prefix}_[0-9a-z]{11}$`))
    .refine(text => parseTextId(prefix, text) !== undefined)
    .transform(text => parseTextId(prefix, text)!)
    .meta({ description: `An id, as in ${textId(prefix, 1)}` })

export const LIST_LIMIT = 50

/** What every list can be asked for, with the filters of its own. */
export const listQuery = <F extends z.ZodRawShape, S extends readonly [string, ...string[]]>(filters: F, sorts: S) =>
  z.strictObject({
    ...filters,
    sort: z
      .enum(sorts.flatMap(name => [name, `-${name}`]) as [string, ...string[]])
      .optional()
      .meta({ description: 'By what the list is in order; with a minus from the largest down.' }),
    after: z.string().max(1_000).optional().meta({ description: 'The `next` of the page before.' }),
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .default(LIST_LIMIT)
      .meta({ description: `How many rows a page has, at most ${bounds.pageRowsMax}.` }),
  })

export const listOf = <T extends Schema>(item: T) =>
  z.object({
    data: z.array(item),
    next: z.string().nullable().meta({ description: 'For `after`; null: there is no more.' }),
    limit: z.number().meta({ description: 'How many rows a page has at most.' }),
  })

/** Money is US dollars in decimals, as text: 12.5 */
export const usd = z
  .string()
  .regex(/^-?\d{1,9}(\.\d{1,9})?$/)
  .meta({ description: 'US dollars, in decimals' })
export const time = z.iso.datetime()
/** The same as it is asked for: milliseconds since 1970. */
export const moment = z.iso.datetime().transform(text => Date.parse(text))
export const nothing = z.null()
