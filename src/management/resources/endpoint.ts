// Defines a management endpoint: one row with who may use it, the schemas of its request and its answer. The HTTP
// interface, its OpenAPI description and the access tests are all built from these rows.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { parseTextId, textId } from '../../base/ids.ts'
import type { AuditActor, ExpectedVersion } from '../../store/audit-log/audited-operations.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { Actor, EndpointAccess, SiteRole } from '../actor.ts'
import { must } from '../web/issue-text.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface ManagementRequest<Params, Query, Body> {
  readonly actor: Actor
  /** The accounts that the request may reach; every read and write checks it. Null: all accounts. */
  readonly scope: Scope | null
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** The author of writes, with the version in If-Match if the caller sent one. */
  readonly by: AuditActor & Partial<ExpectedVersion>
  readonly requestId: string
  readonly address: string
  header(name: string): string | undefined
}

export interface EndpointAnswer<Answer> {
  readonly body?: Answer
  readonly status?: number
  /** The version of the resource, for the ETag. */
  readonly version?: number
  readonly headers?: Readonly<Record<string, string>>
}

type Shape = z.ZodObject
type Schema = z.ZodType
type Out<S> = S extends z.ZodType ? z.output<S> : Record<string, never>

export interface EndpointRow<P extends Shape | undefined, Q extends Shape | undefined, B, A extends Schema> {
  readonly method: Method
  /** Contains `{name}` for each path parameter. */
  readonly path: `/api/${'web' | 'auth'}/${string}`
  readonly who: EndpointAccess
  /** A summary in one sentence. */
  readonly summary: string
  /** Path parameters. A malformed id gets the same answer as an unknown one. */
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  readonly answer: A
  /** Fields of the body that need this site role, or that only the operator at the command line may set. */
  readonly reserved?: Readonly<Record<string, SiteRole | 'operator'>>
  /**
   * What the request changes, by path below /api/web: `tiers/pro`. What the configuration file of the gateway has can
   * only be changed there. A change of something that no file describes, such as the text of a key, is not listed.
   */
  changes?(params: Out<P>, body: Out<B>): readonly string[]
  /** A request with a body that changes nothing: whoever may read may send it. */
  readonly onlyReads?: true
  /** A GET that writes: it uses up a link, or is noted in the audit log. HEAD, which must change nothing, is refused. */
  readonly writes?: true
  /** The content type of the answer, where it is not JSON and not chosen by `format`. */
  readonly contentType?: string | readonly string[]
  /** Default 200. */
  readonly status?: 201 | 202 | 204
  run(request: ManagementRequest<Out<P>, Out<Q>, Out<B>>): Promise<EndpointAnswer<z.input<A>> | Response>
}

/** A row without the static types of its schemas. */
export interface WebEndpoint extends Omit<EndpointRow<Shape, Shape, Schema, Schema>, 'run' | 'changes'> {
  changes?(params: never, body: never): readonly string[]
  run(request: ManagementRequest<never, never, never>): Promise<EndpointAnswer<unknown> | Response>
}

/** Whether a request only reads. */
export const isRead = ({ method, onlyReads }: Pick<WebEndpoint, 'method' | 'onlyReads'>): boolean =>
  method === 'GET' || onlyReads === true

export const endpoint = <A extends Schema, P extends Shape | undefined, Q extends Shape | undefined, B>(
  row: EndpointRow<P, Q, B, A>,
): WebEndpoint => row as unknown as WebEndpoint

/** Ids are text in the interface and numbers inside the gateway. */
export const idOf = (prefix: string) =>
  z
    .string()
    .regex(new RegExp(`^${prefix}_[0-9a-z]{11}$`), must('must_be_id', { example: textId(prefix, 1) }))
    .refine(text => parseTextId(prefix, text) !== undefined, must('must_be_id', { example: textId(prefix, 1) }))
    .transform(text => parseTextId(prefix, text)!)
    .meta({ description: `An id, as in ${textId(prefix, 1)}` })

const LIST_LIMIT = 50

const NUMBER = /^-?\d+(\.\d+)?$/

/** A number in a query or a path, where it is text. `Number()` would also read "" and null as 0, and "0x10" as 16. */
export const numberOfText = <T extends z.ZodType<number>>(number: T) =>
  z.preprocess(value => (typeof value === 'string' && NUMBER.test(value) ? Number(value) : value), number)

/** How many rows a page shall have. */
export const pageLimit = numberOfText(z.number().int().min(1).default(LIST_LIMIT))

/** The query parameters of every list, and the filters of this list. */
export const listQuery = <F extends z.ZodRawShape, S extends readonly [string, ...string[]]>(filters: F, sorts: S) =>
  z.strictObject({
    ...filters,
    sort: z
      .enum(sorts.flatMap(name => [name, `-${name}`]) as [string, ...string[]])
      .optional()
      .meta({ description: 'The field to sort by; with a minus in descending order.' }),
    after: z.string().max(1_000).optional().meta({ description: 'The `next` of the previous page.' }),
    limit: pageLimit.meta({ description: `Rows per page, at most ${bounds.pageRowsMax}.` }),
  })

export const listOf = <T extends Schema>(item: T) =>
  z.object({
    data: z.array(item),
    next: z
      .string()
      .nullable()
      .meta({ description: 'The value of `after` for the next page; null: this is the last page.' }),
    limit: z.number().meta({ description: 'The largest number of rows per page.' }),
  })

/** Money in a request: US dollars as decimal text, such as 12.5, not negative. In answers it has no bound: see `money`. */
export const usd = z
  .string()
  .regex(/^\d{1,9}(\.\d{1,9})?$/, must('must_be_bound'))
  .meta({ description: 'US dollars, as decimal text' })
export const time = z.iso.datetime()
/** A time in a request, parsed to milliseconds since 1970. */
export const timeInput = z.iso.datetime().transform(text => Date.parse(text))
/** In the answers of everything that a configuration file can describe. */
export const managedBy = z
  .enum(['file'])
  .nullable()
  .default(null)
  .meta({ description: 'file: the configuration file of the gateway describes this, so it can only be changed there' })
/** In the answers of everything that a request with If-Match can change. */
export const version = z.number().meta({ description: 'The version, as in the ETag; for If-Match' })
export const noContent = z.null()
