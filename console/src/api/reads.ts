// Reads and writes of pages: useRead for one answer, useList for a list page by page, useWrite for a change.

import type { UseInfiniteQueryResult, UseMutationResult, UseQueryResult } from '@tanstack/react-query'
import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { useMemo, useRef } from 'react'
import type { AnswerOf, OperationName, Request } from './client.ts'
import { call } from './client.ts'
import type { ApiError } from './errors.ts'
import { isApiError, isRefused } from './errors.ts'
import { queries } from './queries.ts'

/** For reads of other places than the management interface. Whoever takes it from here shares the file of all reads. */
export { useQuery }

type GetName = Extract<OperationName, `GET ${string}`>
type ListName = {
  [N in GetName]: AnswerOf<N> extends { readonly data: readonly unknown[]; readonly next: string | null } ? N : never
}[GetName]
type RowOf<N extends ListName> = AnswerOf<N> extends { readonly data: readonly (infer R)[] } ? R : never

interface ReadOptions {
  readonly enabled?: boolean
  /** Reads again after this time while the page is visible. */
  readonly everyMs?: number
  /**
   * Shows the previous answer while another one is read, for example when a filter changes, and while the gateway is away: a
   * range up to now is another one each minute.
   */
  readonly keepsPrevious?: boolean
}

export function useRead<N extends GetName>(
  name: N,
  request?: Request<N>,
  { enabled = true, everyMs, keepsPrevious = false }: ReadOptions = {},
): UseQueryResult<AnswerOf<N>, ApiError> {
  const query = useQuery<AnswerOf<N>, ApiError>({
    queryKey: [name, request ?? {}],
    queryFn: ({ signal }) => call(name, ...([{ ...request, signal }] as never)),
    enabled,
    ...(everyMs !== undefined && { refetchInterval: everyMs }),
    ...(keepsPrevious && { placeholderData: keepPreviousData as never }),
  })
  const last = useRef<AnswerOf<N>>(undefined)
  if (query.data !== undefined) last.current = query.data
  const isKept = keepsPrevious && query.data === undefined && isApiError(query.error, 'offline')
  return isKept && last.current !== undefined ? ({ ...query, data: last.current } as typeof query) : query
}

export interface List<Row> {
  readonly rows: readonly Row[]
  readonly query: UseInfiniteQueryResult<unknown, ApiError>
  readonly hasMore: boolean
  readonly more: () => void
  /** The last page has no rows, but there may be more: the gateway has read very many rows, and found nothing among them. */
  readonly isEndedEarly?: boolean
}

/** Who scrolls further than the first page reads larger ones. */
const NEXT_ROWS = 200
/** A longer list is not read again when a tab is shown again, because all of its pages would be. */
const PAGES_READ_AGAIN = 5

/**
 * A list, page by page: `more` reads the next page. Its rows stay when the gateway refuses a filter, which may not be written
 * whole yet: the bar of filters shows why.
 */
export function useList<N extends ListName>(name: N, request?: Request<N>, options: ReadOptions = {}): List<RowOf<N>> {
  type Page = AnswerOf<N> & { readonly data: readonly RowOf<N>[]; readonly next: string | null }
  const query = useInfiniteQuery({
    queryKey: [name, request ?? {}, 'pages'],
    queryFn: ({ signal, pageParam }) => {
      const given = request as { readonly query?: object } | undefined
      const next = pageParam !== null && { limit: NEXT_ROWS, after: pageParam }
      const asked = { ...given, signal, query: { ...given?.query, ...next } }
      return call(name, ...([asked] as never)) as Promise<Page>
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page: Page) => page.next,
    enabled: options.enabled ?? true,
    placeholderData: keepPreviousData,
    refetchOnWindowFocus: ({ state }) => (state.data?.pages.length ?? 0) <= PAGES_READ_AGAIN,
    ...(options.everyMs !== undefined && { refetchInterval: options.everyMs }),
  })
  const last = useRef(query.data)
  if (query.data !== undefined) last.current = query.data
  const isFilter = isRefused(query.error) && query.error.details.param !== null
  const isKept = query.data === undefined && isFilter
  const data = isKept ? last.current : query.data
  const pages = data?.pages as readonly Page[] | undefined
  // Long lists are put together once for each page, not for each look at them.
  const rows = useMemo(() => (pages ?? []).flatMap(page => page.data), [pages])
  return {
    rows,
    query: (isKept ? { ...query, data } : query) as UseInfiniteQueryResult<unknown, ApiError>,
    hasMore: query.hasNextPage,
    isEndedEarly: query.hasNextPage && pages?.at(-1)?.data.length === 0,
    more: () => {
      if (!query.isFetchingNextPage) void query.fetchNextPage()
    },
  }
}

/** Makes all reads of these operations, named by the beginning of their paths, read again. */
export const readAgain = (...paths: readonly string[]): Promise<void> =>
  queries.invalidateQueries({
    predicate: ({ queryKey: [name] }) => paths.some(path => (name as string).startsWith(`GET /api/web/${path}`)),
  })

type WriteName = Exclude<OperationName, GetName>

/** A change. `changes`: the beginnings of the paths that must be read again after it, such as `keys`. */
export function useWrite<N extends WriteName>(
  name: N,
  ...changes: readonly string[]
): UseMutationResult<AnswerOf<N>, ApiError, Request<N>> {
  return useMutation<AnswerOf<N>, ApiError, Request<N>>({
    mutationFn: request => call(name, ...([request] as never)),
    onSuccess: () => readAgain(...changes),
  })
}

/** As `useWrite`, for what is gone afterwards: reads of the thing itself, which have the same parameters, are not repeated. */
export function useDelete<N extends WriteName>(
  name: N,
  ...changes: readonly string[]
): UseMutationResult<AnswerOf<N>, ApiError, Request<N>> {
  const paramsOf = (request: unknown): string => JSON.stringify((request as { readonly params?: object }).params)
  return useMutation<AnswerOf<N>, ApiError, Request<N>>({
    mutationFn: request => call(name, ...([request] as never)),
    onSuccess: (_, gone) =>
      queries.invalidateQueries({
        predicate: ({ queryKey: [read, request] }) =>
          changes.some(path => (read as string).startsWith(`GET /api/web/${path}`)) &&
          paramsOf(request) !== paramsOf(gone),
      }),
  })
}
