// The type of one OpenAPI operation, and helpers for its schemas and parameters.

import type { ErrorDialectName } from '../../protocols/protocols.ts'
import type { AccountRole, SiteRole } from '../actor.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly description?: string
  readonly schema: JsonSchema
}

export interface Content {
  readonly schema: JsonSchema
  readonly examples?: Readonly<Record<string, { readonly summary?: string; readonly value: unknown }>>
}

export interface OpenApiResponse {
  readonly description: string
  readonly headers?: Readonly<Record<string, object>>
  readonly content?: Readonly<Record<string, Content>>
  /** Error codes of base/errors.ts. */
  readonly 'x-weir-codes'?: readonly string[]
}

/**
 * The least role that an operation needs, as data: for the site, or in the account that the request is about. One of both
 * is enough. A person who may use it need not reach every row: see the operation.
 */
export interface OperationRoles {
  /** Null: nobody need be signed in. `member`: everybody who is signed in. */
  readonly site: SiteRole | null
  /** Null: no role in an account is enough. */
  readonly account: AccountRole | null
  /** Fields of the body that need a higher role for the site, or the operator at the command line. */
  readonly fields?: Readonly<Record<string, SiteRole | 'operator'>>
}

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Contains `{name}` for each path parameter. */
  readonly path: string
  readonly operationId: string
  readonly tag: string
  readonly summary: string
  readonly description?: string
  /** `session`: the token of a session; `token`: that or a service token. */
  readonly auth: 'key' | 'session' | 'token' | 'nobody'
  /** Who may use the operation, in words. */
  readonly who: string
  /** Who may use an operation of the management interface. */
  readonly roles?: OperationRoles
  /** The dialect of its errors. */
  readonly dialect: ErrorDialectName
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly required: true; readonly content: Readonly<Record<string, Content>> }
  readonly responses: Readonly<Record<string, OpenApiResponse | { readonly $ref: string }>>
}

export const JSON_TYPE = 'application/json'

export const refTo = (schema: string): JsonSchema => ({ $ref: `#/components/schemas/${schema}` })

export const headerRef = (header: string): object => ({ $ref: `#/components/headers/${header}` })

export const text = (description: string, more: JsonSchema = {}): JsonSchema => ({
  type: 'string',
  description,
  ...more,
})
export const flag = (description: string): JsonSchema => ({ type: 'boolean', description })
export const count = (description: string, more: JsonSchema = {}): JsonSchema => ({
  type: 'integer',
  minimum: 0,
  description,
  ...more,
})
export const listOf = (items: JsonSchema, description?: string): JsonSchema => ({
  type: 'array',
  items,
  ...(description !== undefined && { description }),
})

type Fields = Readonly<Record<string, JsonSchema>>

/** Other fields are allowed. */
export const openObject = (properties: Fields, required: readonly string[] = [], description?: string): JsonSchema => ({
  ...(description !== undefined && { description }),
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  additionalProperties: true,
})

/** Other fields are not allowed. */
export const closedObject = (properties: Fields, optional: readonly string[] = []): JsonSchema => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter(name => !optional.includes(name)),
  additionalProperties: false,
})

export const pathParameter = (name: string, description: string): Parameter => ({
  name,
  in: 'path',
  required: true,
  description,
  schema: { type: 'string' },
})

export const queryParameter = (name: string, schema: JsonSchema): Parameter => {
  const { description, ...rest } = schema
  return { name, in: 'query', ...(typeof description === 'string' && { description }), schema: rest }
}
