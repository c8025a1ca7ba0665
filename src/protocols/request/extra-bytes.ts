// Measures how much more text a request has for a model than its bytes say. Numbers, most scripts and random letters have
// more tokens than prose of as many bytes.

import { isObject } from '../../base/text/json-bytes.ts'
import { estimateTextBytes } from '../usage/text-bytes.ts'
import type { Json } from './json-type.ts'

/**
 * Fields that hold media, addresses, and what a provider has encrypted or signed, in any dialect. The `data` of an Anthropic
 * document of text is among them, so it counts by its bytes.
 */
const OPAQUE_FIELDS: ReadonlySet<string> = new Set([
  ...['url', 'data', 'image', 'images', 'image_url', 'video_url', 'audio_url', 'file_data', 'file_url'],
  ...['signature', 'thoughtSignature', 'thought_signature', 'encrypted_content', 'encrypted_index'],
])

/** The bytes of prose that would have as many tokens as the request, beyond the bytes that it has. */
export function measureExtraBytes(json: Json, bodyBytes: number): number {
  const found: FoundTexts = { texts: [], opaqueChars: 0 }
  addTexts(json, '', found)
  return Math.max(0, estimateTextBytes(found.texts.join('')) + found.opaqueChars - bodyBytes)
}

interface FoundTexts {
  readonly texts: string[]
  opaqueChars: number
}

/** Numbers do not count: a list of them may be a text as tokens. */
function addTexts(value: unknown, field: string, found: FoundTexts): void {
  if (typeof value === 'string') {
    if (OPAQUE_FIELDS.has(field)) found.opaqueChars += value.length
    else found.texts.push(value)
  } else if (Array.isArray(value)) {
    for (const one of value as readonly unknown[]) addTexts(one, field, found)
  } else if (isObject(value)) {
    for (const name in value) addTexts(value[name], name, found)
  }
}
