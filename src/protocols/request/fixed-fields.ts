// Request fields that an operator cannot override for a channel: the model, the conversation, and all fields that
// billing, holds and storage at the upstream depend on. All other fields can be overridden.

import { foldName } from '../../base/text/json-bytes.ts'
import { uniqueFields as anthropic } from '../anthropic-messages/request.ts'
import { uniqueFields as gemini, uniqueConfigFields as geminiConfig } from '../gemini/request.ts'
import { uniqueFields as chat } from '../openai-chat/request.ts'
import { uniqueFields as responses } from '../openai-responses/request.ts'
import { otherModelFields } from './checks.ts'

interface FixedFields {
  readonly fields: readonly string[]
  /** An object of which single fields can be overridden, and its fields that cannot. */
  readonly open?: { readonly name: string; readonly fields: readonly string[] }
}

const chatFields: FixedFields = {
  fields: [...chat, 'functions', 'audio', 'modalities', 'store', 'prediction', 'prompt'],
}
const responsesFields: FixedFields = { fields: [...responses, 'instructions', 'prompt', 'context_management'] }

const byDialect: Readonly<Record<string, FixedFields>> = {
  'openai-chat': chatFields,
  'ark': chatFields,
  'openai-responses': responsesFields,
  'ark-responses': responsesFields,
  'anthropic-messages': {
    fields: [...anthropic, ...otherModelFields, 'system', 'anthropic_version', 'anthropic_beta'],
  },
  'gemini': {
    fields: gemini,
    open: { name: 'generationConfig', fields: [...geminiConfig, 'responseModalities', 'speechConfig'] },
  },
}

/** The dialects in which request fields can be overridden. */
export const overridableDialects: readonly string[] = Object.keys(byDialect)

const includesName = (names: readonly string[], name: string): boolean =>
  names.some(one => foldName(one) === foldName(name))

/** `path` is a field, or `a.b` for field `b` of the object `a`. */
export function isFixedField(dialect: string, path: string): boolean {
  const { fields, open } = byDialect[dialect] ?? { fields: [path] }
  const [outer = '', inner] = path.split('.')
  if (inner === undefined || open === undefined || foldName(outer) !== foldName(open.name))
    return includesName(fields, outer)
  return includesName(open.fields, inner)
}
