// The schema of an answer for dialects whose formats have no description of their own.

import type { Json } from '../request/json-type.ts'
import type { OutputFormat } from './conversation.ts'

/** The schema with the description of the format in front of its own. */
export function describeSchema({ schema, description }: Extract<OutputFormat, { kind: 'schema' }>): Json {
  if (description === undefined || description === '') return schema
  return { ...schema, description: [description, schema.description].filter(Boolean).join('\n\n') }
}
