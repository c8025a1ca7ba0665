// Describes the errors of an operation by status, from the table of errors, each with an example in its dialect.

import type { ErrorCode } from '../../base/errors.ts'
import { buildErrorReply, errorRows, Refusal } from '../../base/errors.ts'
import type { ErrorDialectName } from '../../protocols/protocols.ts'
import { errorDialects } from '../../protocols/protocols.ts'
import type { JsonSchema, OpenApiResponse } from './operation.ts'
import { closedObject, headerRef, JSON_TYPE, listOf, openObject, refTo, text } from './operation.ts'

const errorSchemaOf: Readonly<Record<ErrorDialectName, string>> = {
  'openai-chat': 'Error',
  'openai-responses': 'Error',
  'anthropic-messages': 'AnthropicError',
  'gemini': 'GeminiError',
  'ark': 'ArkError',
}

const requestId = text('The id of the request, as in the header x-request-id.')
const message = text('A text for people.')
const orNull = { type: ['string', 'null'] }

export const errorSchemas: Readonly<Record<string, JsonSchema>> = {
  Error: closedObject({
    error: closedObject(
      {
        message,
        type: text('The kind of error; authentication_error if a credential is missing or wrong.'),
        param: { ...orNull, description: 'The field that is wrong.' },
        code: { ...orNull, description: 'The error code, for programs; it does not change.' },
        hint: { ...refTo('Hint'), description: 'The last sentence of the message as data, in management errors only.' },
      },
      ['hint'],
    ),
    request_id: requestId,
  }),
  AnthropicError: closedObject({
    type: { const: 'error' },
    error: closedObject({ type: text('The kind of error.'), message }),
    request_id: requestId,
  }),
  GeminiError: closedObject({
    error: closedObject({
      code: { type: 'integer', description: 'The status.' },
      message,
      status: text("Google's status, such as UNAUTHENTICATED."),
      type: text('authentication_error if the key is missing or wrong, otherwise the error code of Weir.'),
      details: listOf(openObject({ '@type': text('The type of the detail.') }, ['@type'])),
    }),
  }),
  ArkError: closedObject({
    error: closedObject({
      code: text("Ark's error code."),
      message,
      param: text('The field that is wrong.'),
      type: text('The kind of error.'),
    }),
    request_id: requestId,
  }),
}

const REQUEST_ID = 'req_00000000001'

function writeExample(code: ErrorCode, dialect: ErrorDialectName): { status: number; body: unknown } {
  const { status, body } = errorDialects[dialect].writeError(buildErrorReply(new Refusal(code, ''), REQUEST_ID))
  return { status, body: JSON.parse(body) as unknown }
}

const RETRIED = [429, 503, 529]

const known = new Map<string, Readonly<Record<string, OpenApiResponse>>>()

/** By status, lowest first. Cached, because most operations have the same errors. */
export function describeErrors(
  codes: readonly ErrorCode[],
  dialect: ErrorDialectName,
): Readonly<Record<string, OpenApiResponse>> {
  const key = [dialect, ...codes].join()
  const answers = known.get(key) ?? makeAnswers(codes, dialect)
  known.set(key, answers)
  return answers
}

function makeAnswers(
  codes: readonly ErrorCode[],
  dialect: ErrorDialectName,
): Readonly<Record<string, OpenApiResponse>> {
  const schema = refTo(errorSchemaOf[dialect])
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of new Set(codes)) {
    const { status } = writeExample(code, dialect)
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const answers = [...byStatus]
    .sort(([a], [b]) => a - b)
    .map(([status, own]) => {
      const example = { value: writeExample(own[0]!, dialect).body }
      const answer: OpenApiResponse = {
        description: own.length === 1 ? errorRows[own[0]!].message : own.map(code => `\`${code}\``).join(', '),
        ...(RETRIED.includes(status) && { headers: { 'Retry-After': headerRef('Retry-After') } }),
        content: { [JSON_TYPE]: { schema, examples: { [own[0]!]: example } } },
        'x-weir-codes': own,
      }
      return [String(status), answer] as const
    })
  return Object.fromEntries(answers)
}

/** The table of all errors; answers refer to it by their codes. */
export const errorTable = Object.fromEntries(
  Object.entries(errorRows).map(([code, { status, retry, message }]) => [code, { status, retry, message }]),
)

/** For unexpected errors. */
export const describeOtherErrors = (dialect: ErrorDialectName): OpenApiResponse => ({
  description: 'Any other error, in the same form.',
  content: { [JSON_TYPE]: { schema: refTo(errorSchemaOf[dialect]) } },
})
