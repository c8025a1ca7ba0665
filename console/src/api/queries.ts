// The answers that pages have read, and when they are read again. It is apart from reads.ts, because the console starts with it,
// and pages for people who are not signed in read nothing.

import { QueryClient, useIsFetching } from '@tanstack/react-query'
import { ApiError } from './errors.ts'
import { onForget, onReturn } from './session.ts'

/** Only faults that may pass are tried again; a busy gateway says when. */
const isTemporary = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 429 || error.status === 502 || error.status === 503)

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      gcTime: 5 * 60_000,
      retry: (count, error) => count < 2 && isTemporary(error),
      retryDelay: (count, error) =>
        Math.min(10_000, ((error as ApiError).details?.retryAfterSeconds ?? 2 ** count) * 1_000),
      refetchOnWindowFocus: true,
      networkMode: 'always',
      throwOnError: false,
    },
    mutations: { networkMode: 'always' },
  },
})
onForget(() => queries.clear())
onReturn(() => void queries.refetchQueries({ type: 'active' }))

/** Whether a read that has no answer yet is under way. */
export const useIsWaiting = (): boolean => useIsFetching({ predicate: ({ state }) => state.status === 'pending' }) > 0
