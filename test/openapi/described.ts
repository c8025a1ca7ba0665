// The OpenAPI document as tests read it: every operation, and where each of its parts is found.

import { writeOpenApi } from '../../scripts/write-docs.ts'
import type { DocumentOperation, OpenApi } from '../../src/management/openapi/document.ts'
import type { OpenApiResponse } from '../../src/management/openapi/operation.ts'
import type { FindSchema, Schema } from '../support/json-schema.ts'

export const document = JSON.parse(await writeOpenApi()) as OpenApi

export interface Described {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly operation: DocumentOperation
}

export const operations: readonly Described[] = Object.entries(document.paths).flatMap(([path, own]) =>
  Object.entries(own).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path}`,
    method: method.toUpperCase(),
    path,
    operation,
  })),
)

/** Throws if the reference leads nowhere. */
export function lookUp(ref: string): unknown {
  if (!ref.startsWith('#/')) throw new Error(`${ref} leads elsewhere`)
  let value: unknown = document
  for (const step of ref.slice(2).split('/')) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    if (!isThere) throw new Error(`${ref} leads nowhere`)
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

export const findSchema: FindSchema = ref => lookUp(ref) as Schema

/** The response of that status; the default one if the status is not described. */
export function answerOf({ responses }: DocumentOperation, status: number): OpenApiResponse | undefined {
  const response = responses[String(status)]
  return response !== undefined && '$ref' in response ? (lookUp(response.$ref) as OpenApiResponse) : response
}

/** Every object of the document, with its path. */
export function* walk(value: unknown, path = ''): Generator<readonly [path: string, object: Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [path, value as Record<string, unknown>]
  for (const [name, one] of Object.entries(value)) yield* walk(one, `${path}/${name}`)
}
