// Whether an answer of the management interface is one that its description tells of.

import type { WebEndpoint } from '../../../src/management/resources/endpoint.ts'
import { answerOf, findSchema, operations } from '../../openapi/described.ts'
import { misfits } from '../../support/json-schema.ts'
import type { Told } from '../../support/management.ts'

/** Told in the words of OpenAI's dialect, which has other names for some. */
const renamed: Readonly<Record<string, string>> = { request_too_large: 'body_too_large' }

/** Empty: it is. */
export function describeMisfit({ method, path }: WebEndpoint, told: Told): string {
  const found = operations.find(one => one.method === method && one.path === path.replaceAll('*}', '}'))
  const answer = answerOf(found!.operation, told.status)
  const { code } = told.error
  if (answer === undefined) return `${told.status} ${code ?? ''} is not described`
  const isTold = code === undefined || answer['x-weir-codes']?.includes(renamed[code] ?? code) === true
  if (!isTold) return `${code} is not described`
  const type = told.headers.get('content-type')?.split(';')[0]
  if (told.text === '' && answer.content === undefined) return ''
  if (type === undefined) return 'its type is not told'
  const content = answer.content?.[type]
  if (content === undefined) return `${type} is not described`
  if (type !== 'application/json') return ''
  return told.text === '' ? 'it has no content' : misfits(JSON.parse(told.text), content.schema, findSchema).join('; ')
}
