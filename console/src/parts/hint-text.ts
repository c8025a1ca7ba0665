// A sentence of the gateway in another language than English, from its code and values. English sentences are the gateway's
// own.

import { isolated } from '../words/isolated.ts'

type Texts = Readonly<Record<string, string>>

/** The texts of a language. */
interface HintWords {
  readonly hints: Texts
  /** Values that are words of the gateway, by the name of the value. */
  readonly valueWords: Readonly<Record<string, Texts>>
}

/** As in answers of the gateway. A value may itself be a hint. */
export interface HintLike {
  readonly code: string
  readonly values: Readonly<Record<string, unknown>>
}

/** An answer with warnings, as texts and as hints. */
export interface Warned {
  readonly warnings: readonly string[]
  readonly warningHints: readonly HintLike[]
}

/** Undefined: there is no text for the hint. */
export function writeHint({ code, values }: HintLike, words: HintWords): string | undefined {
  const text = words.hints[code]
  return text?.replace(/\{(\w+)\}/g, (place, name: string) =>
    name in values ? writeValue(name, values[name], words) : place,
  )
}

function writeValue(name: string, value: unknown, words: HintWords): string {
  if (typeof value === 'number') return value.toLocaleString('zh-CN')
  if (typeof value === 'object' && value !== null) return writeHint(value as HintLike, words) ?? ''
  const text = String(value)
  const known = words.valueWords[name] ?? {}
  const parts = text.split(', ').map(word => known[word])
  return parts.includes(undefined) ? isolated(text) : parts.join('、')
}
