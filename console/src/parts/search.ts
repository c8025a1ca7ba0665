// What changes the view of a page is in the address: filters, range, sort, tab, open row. Values are texts.

import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'

export type Search = Readonly<Record<string, string | undefined>>

/** For `validateSearch` of a route: the parameters that its page knows. Others are dropped, `account` stays. */
export const searchOf =
  <const Names extends readonly string[]>(...names: Names) =>
  (search: Readonly<Record<string, unknown>>): { readonly [N in Names[number] | 'account']?: string } => {
    const known: Record<string, string> = {}
    for (const name of [...names, 'account']) {
      const value = search[name]
      if (typeof value === 'string' && value !== '') known[name] = value
    }
    return known as { readonly [N in Names[number] | 'account']?: string }
  }

export const parseSearch = (text: string): Search => Object.fromEntries(new URLSearchParams(text))

export function stringifySearch(search: Readonly<Record<string, unknown>>): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(search))
    if (value !== undefined && value !== '') parameters.set(name, String(value))
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

type Change = (changed: Search, options?: { readonly isNewEntry?: boolean }) => void

/** The parameters of the address, and a function that changes some of them. An undefined value removes one. */
export function useSearchState<T extends Search = Search>(): readonly [search: T, change: Change] {
  const search = useSearch({ strict: false } as never) as unknown as T
  const navigate = useNavigate()
  const change = useCallback<Change>(
    (changed, { isNewEntry = false } = {}) => {
      void navigate({
        to: '.',
        search: ((old: Search) => ({ ...old, ...changed })) as never,
        replace: !isNewEntry,
        resetScroll: false,
      })
    },
    [navigate],
  )
  return [search, change]
}

const HOUR = 3_600_000
export const ranges = {
  '1h': HOUR,
  '24h': 24 * HOUR,
  '7d': 168 * HOUR,
  '30d': 720 * HOUR,
  '90d': 2_160 * HOUR,
} as const
type RangeName = keyof typeof ranges

export interface Range {
  readonly from: string
  /** Undefined: until now. */
  readonly before: string | undefined
  readonly lengthMs: number
}

/** The time that `?range=`, or `?from=` and `?before=`, name. It begins at a full minute, so that reads can be kept. */
export function rangeOf({ range, from, before }: Search, standard: RangeName = '24h'): Range {
  if (from !== undefined && !Number.isNaN(Date.parse(from))) {
    const endMs = before === undefined ? Date.now() : Date.parse(before)
    return { from: new Date(from).toISOString(), before, lengthMs: endMs - Date.parse(from) }
  }
  const lengthMs = ranges[range as RangeName] ?? ranges[standard]
  const minute = Math.floor(Date.now() / 60_000) * 60_000
  return { from: new Date(minute - lengthMs).toISOString(), before: undefined, lengthMs }
}

/** As `rangeOf`, for a list that is read page by page: it would begin anew with each minute, while somebody scrolls in it. */
export function useListRange({ range, from, before }: Search, standard?: RangeName): Range {
  return useMemo(() => rangeOf({ range, from, before }, standard), [range, from, before, standard])
}

/** Drops undefined values, which the types of requests do not take. */
export function definedOnly<T extends object>(values: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never
}
