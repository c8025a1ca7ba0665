// The texts of the console. English texts are in words/en, one file for each page, and are loaded with the page. Chinese
// texts are in words/zh and are loaded as one file when somebody chooses Chinese. A missing Chinese text is a type error.

import type { ReactNode } from 'react'
import { useSyncExternalStore } from 'react'
import type { Language } from '../preferences.ts'
import { currentLanguage, onPreferences } from '../preferences.ts'
import { isolated } from './isolated.ts'

/** A text with `{name}` for each value, or its plural forms, chosen by `{n}`. */
export type Text = string | { readonly one: string; readonly other: string }
type TextTable = Readonly<Record<string, Text>>

interface Words<T extends TextTable = TextTable> {
  readonly name: string
  readonly en: T
}

/** The Chinese texts for the English ones of a page. Chinese has one plural form. */
export type Chinese<W extends Words> = { readonly [K in keyof W['en']]: string }

export const words = <const T extends TextTable>(name: string, en: T): Words<T> => ({ name, en })

type ValueNames<S> = S extends `${string}{${infer Name}}${infer Rest}` ? Name | ValueNames<Rest> : never
type NamesIn<X> = X extends string ? ValueNames<X> : X extends { readonly other: infer O } ? ValueNames<O> | 'n' : never
type ValuesFor<X, V> = [NamesIn<X>] extends [never] ? [] : [values: { readonly [N in NamesIn<X>]: V }]

/** The keys of texts without values. */
export type PlainKey<W extends Words> = {
  [K in keyof W['en']]: [NamesIn<W['en'][K]>] extends [never] ? K : never
}[keyof W['en']] &
  string

export interface Translate<T extends TextTable> {
  <K extends keyof T & string>(key: K, ...values: ValuesFor<T[K], string | number>): string
  /** As the text, with elements such as links among its values. */
  rich<K extends keyof T & string>(key: K, ...values: ValuesFor<T[K], ReactNode>): ReactNode
  /** The text of a key that is known only at run time, such as a code; undefined if there is none. */
  find(key: string, values?: Readonly<Record<string, string | number>>): string | undefined
}

type ChineseTable = Readonly<Record<string, Readonly<Record<string, string>>>>
let chinese: ChineseTable | undefined

/** Loads the texts of a language. The language is used only after this, so that no text flashes in another language. */
export async function loadLanguage(language: Language): Promise<void> {
  if (language === 'zh' && chinese === undefined) chinese = (await import('./zh/all.ts')).chineseTables
}

const pluralRules = new Intl.PluralRules('en')
const PLACE = /\{(\w+)\}/g

function textOf({ name, en }: Words, language: Language, key: string, n: unknown): string | undefined {
  const translated = language === 'zh' ? chinese?.[name]?.[key] : undefined
  if (translated !== undefined) return translated
  const text = en[key]
  if (text === undefined || typeof text === 'string') return text
  return pluralRules.select(Number(n)) === 'one' ? text.one : text.other
}

type Values = Readonly<Record<string, unknown>>

function valueText(value: unknown, language: Language): string {
  if (typeof value === 'number') return value.toLocaleString(language === 'zh' ? 'zh-CN' : 'en-US')
  return isolated(String(value))
}

function translator<T extends TextTable>(table: Words<T>, language: Language): Translate<T> {
  const raw = (key: string, values?: Values): string => textOf(table, language, key, values?.n) ?? key
  const translate = (key: string, values: Values = {}): string =>
    raw(key, values).replace(PLACE, (place, name: string) =>
      name in values ? valueText(values[name], language) : place,
    )
  const rich = (key: string, values: Values = {}): ReactNode => {
    const parts = raw(key, values).split(PLACE)
    return parts.map((part, index) => {
      if (index % 2 === 0) return part
      const value = values[part]
      return typeof value === 'number' || typeof value === 'string' ? valueText(value, language) : (value as ReactNode)
    })
  }
  const find = (key: string, values?: Values): string | undefined => {
    const text = textOf(table, language, key, 1)
    return text === undefined || values === undefined ? text : translate(key, values)
  }
  return Object.assign(translate, { rich, find }) as Translate<T>
}

const translators = new WeakMap<Words, Map<Language, Translate<TextTable>>>()

/** The texts of a page in the language of the viewer, outside of React. */
export function translate<T extends TextTable>(table: Words<T>, language = currentLanguage()): Translate<T> {
  let made = translators.get(table)
  if (made === undefined) translators.set(table, (made = new Map()))
  let found = made.get(language)
  if (found === undefined) made.set(language, (found = translator(table as Words, language)))
  return found as unknown as Translate<T>
}

/** The texts of a page in the language of the viewer: `const t = useWords(keysWords)`, then `t('title')`. */
export function useWords<T extends TextTable>(table: Words<T>): Translate<T> {
  return translate(table, useSyncExternalStore(onPreferences, currentLanguage))
}
