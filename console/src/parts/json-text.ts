// JSON that people write: what it says, or where it is wrong. What a browser says about it is English, and differs by browser.

import type { JsonValue } from '../api/types.ts'

/** Both begin with 1. */
export interface Place {
  readonly line: number
  readonly column: number
}

const SPACE = /[ \t\r\n]*/y
const TEXT = /"(?:[^"\\\p{Cc}]|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/uy
const OTHER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

/** Where the text ceases to be JSON. */
function findFault(text: string): Place {
  let at = 0
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    at += found?.[0].length ?? 0
    return found !== null
  }
  const takeSign = (sign: string): boolean => {
    take(SPACE)
    if (text[at] !== sign) return false
    at++
    return true
  }
  const takeAll = (end: string, takeOne: () => boolean): boolean => {
    if (takeSign(end)) return true
    do if (!takeOne()) return false
    while (takeSign(','))
    return takeSign(end)
  }
  const takeValue = (): boolean => {
    if (takeSign('{')) return takeAll('}', () => take(SPACE) && take(TEXT) && takeSign(':') && takeValue())
    if (takeSign('[')) return takeAll(']', takeValue)
    return take(TEXT) || take(OTHER)
  }
  takeValue()
  take(SPACE)
  const lines = text.slice(0, at).split('\n')
  return { line: lines.length, column: lines.at(-1)!.length + 1 }
}

type Read =
  | { readonly value: Readonly<Record<string, JsonValue>> }
  /** Null: it is JSON, but no object. */
  | { readonly fault: Place | null }

/** The object that the text describes, or what is wrong with it. */
export function readJsonObject(text: string): Read {
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? { value: value as Readonly<Record<string, JsonValue>> } : { fault: null }
  } catch {
    return { fault: findFault(text) }
  }
}
