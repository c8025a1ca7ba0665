// What an error, a warning or a finding says, as a code with values and as an English sentence. Both come from the table
// of sentences, so that a text that people see always has a code, and a client can show it in another language.

import type { Place } from './hint-sentences.ts'
import { musts, sentences, subjectOf } from './hint-sentences.ts'

type Sentences = typeof sentences
type Musts = typeof musts

/** Every code. A client may meet one that it does not know: of a later version. */
export type HintCode = keyof Sentences | keyof Musts

export const hintCodes = [...Object.keys(sentences), ...Object.keys(musts)] as readonly HintCode[]

/** A value may itself be a sentence. */
type Value = string | number | Hint

type NamesIn<S> = S extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never
type ValuesOf<S> = S extends string
  ? [NamesIn<S>] extends [never]
    ? []
    : [values: { readonly [Name in NamesIn<S>]: Value }]
  : S extends (values: infer V) => string
    ? [values: V]
    : never

/** A hint for programs. */
export interface HintData {
  readonly code: string
  readonly values: Readonly<Record<string, string | number | HintData>>
}

type Values = Readonly<Record<string, Value>>

/** Only `hintOf` and `hintOfValue` create hints, so that there is none without a row in the table. */
export class Hint {
  readonly code: HintCode
  readonly #values: Values
  readonly #write: () => string

  private constructor(code: HintCode, values: Values, write: () => string) {
    this.code = code
    this.#values = values
    this.#write = write
  }

  static of(this: void, code: keyof Sentences, values: Values = {}): Hint {
    const sentence: string | ((values: never) => string) = sentences[code]
    return new Hint(code, values, () =>
      typeof sentence === 'string'
        ? sentence.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name]))
        : sentence(values as never),
    )
  }

  static ofValue(place: Place, [code, values]: Must): Hint {
    const write = musts[code] as (of: typeof values) => string
    const all = { ...place, ...values } as Values
    return new Hint(code, all, () => `${subjectOf(place)} is not valid: ${write(values)}.`)
  }

  static read(this: void, text: string): Hint | undefined {
    if (!text.startsWith('{')) return undefined
    const { code, values } = JSON.parse(text) as { readonly code: string; readonly values: Values }
    return Object.hasOwn(sentences, code) ? Hint.of(code as keyof Sentences, values) : undefined
  }

  /** The English sentence. */
  get text(): string {
    return this.#write()
  }

  toString(): string {
    return this.text
  }

  get data(): HintData {
    const values = Object.entries(this.#values).map(([name, value]) => [
      name,
      value instanceof Hint ? value.data : value,
    ])
    return { code: this.code, values: Object.fromEntries(values) as HintData['values'] }
  }
}

export type FromHint<Result> = <Code extends keyof Sentences>(
  code: Code,
  ...values: ValuesOf<Sentences[Code]>
) => Result

export const hintOf = Hint.of as FromHint<Hint>

/** A hint that was stored as JSON. Undefined: a sentence that an earlier version has stored, or a code of a later one. */
export const readHint = Hint.read

/** For sentences that only the command line shows. */
export const forOperator = (text: string): Hint => hintOf('for_operator', { text })

/** What a value must be: a code of `musts` with the values that its text needs. */
export type Must = { readonly [Code in keyof Musts]: [Code, Parameters<Musts[Code]>[0]] }[keyof Musts]

/** A field, or a part of a request as a whole, has a value that is not allowed. */
export const hintOfValue = (place: Place, must: Must): Hint => Hint.ofValue(place, must)

/** An error with a sentence for the person whose input is wrong. */
export class HintedError extends Error {
  readonly hint: Hint
  /** The field of the request that is wrong, if it is one. */
  readonly field: string | undefined

  constructor(hint: Hint, field?: string) {
    super(hint.text)
    this.hint = hint
    this.field = field
  }
}
