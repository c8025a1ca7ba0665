// Fields of requests that nobody may change behind a caller's back: what is called, what is billed by or held for, what
// is said, and what an upstream keeps. Whatever else an operator may set for a channel.

import { foldName } from '../../base/text/json-bytes.ts'
import { readFields as anthropic } from '../anthropic-messages/request.ts'
import { readFields as gemini, readConfig as geminiConfig } from '../gemini/request.ts'
import { readFields as chat } from '../openai-chat/request.ts'
import { readFields as responses } from '../openai-responses/request.ts'
import { otherModels } from './checks.ts'

interface Fixed {
  readonly fields: readonly string[]
  /** An object of which some fields may be changed, though not the object; and which of them may not. */
  readonly open?: { readonly name: string; readonly fields: readonly string[] }
}

const ofChat: Fixed = { fields: [...chat, 'functions', 'audio', 'modalities', 'store', 'prediction', 'prompt'] }
const ofResponses: Fixed = { fields: [...responses, 'instructions', 'prompt', 'context_management'] }

const byDialect: Readonly<Record<string, Fixed>> = {
  'openai-chat': ofChat,
  'ark': ofChat,
  'openai-responses': ofResponses,
  'ark-responses': ofResponses,
  'anthropic-messages': { fields: [...anthropic, ...otherModels, 'system', 'anthropic_version', 'anthropic_beta'] },
  'gemini': {
    fields: gemini,
    open: { name: 'generationConfig', fields: [...geminiConfig, 'responseModalities', 'speechConfig'] },
  },
}

/** In whose requests something may be changed. */
export const changeableDialects: readonly string[] = Object.keys(byDialect)

const has = (names: readonly string[], name: string): boolean => names.some(one => foldName(one) === foldName(name))

/** `path` is a field, or `a.b` for a field of the object in another. */
export function isFixed(dialect: string, path: string): boolean {
  const { fields, open } = byDialect[dialect] ?? { fields: [path] }
  const [outer = '', inner] = path.split('.')
  if (inner === undefined || open === undefined || foldName(outer) !== foldName(open.name)) return has(fields, outer)
  return has(open.fields, inner)
}
