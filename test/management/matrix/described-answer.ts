// Whether an answer of the management interface matches its OpenAPI description.

import type { WebEndpoint } from '../../../src/management/resources/endpoint.ts'
import { answerOf, findSchema, operations } from '../../openapi/described.ts'
import { misfits } from '../../support/json-schema.ts'
import type { ApiAnswer } from '../../support/management.ts'

/** Codes that have another name in OpenAI's dialect. */
const renamed: Readonly<Record<string, string>> = { request_too_large: 'body_too_large' }

/** What does not match; empty if the answer is as described. */
export function describeMisfit({ method, path }: WebEndpoint, response: ApiAnswer): string {
  const described = operations.find(one => one.method === method && one.path === path.replaceAll('*}', '}'))
  const answer = answerOf(described!.operation, response.status)
  const { code } = response.error
  if (answer === undefined) return `${response.status} ${code ?? ''} is not described`
  const isDescribed = code === undefined || answer['x-weir-codes']?.includes(renamed[code] ?? code) === true
  if (!isDescribed) return `${code} is not described`
  const type = response.headers.get('content-type')?.split(';')[0]
  if (response.text === '' && answer.content === undefined) return ''
  if (type === undefined) return 'its type is not told'
  const content = answer.content?.[type]
  if (content === undefined) return `${type} is not described`
  if (type !== 'application/json') return ''
  return response.text === ''
    ? 'it has no content'
    : misfits(JSON.parse(response.text), content.schema, findSchema).join('; ')
}
