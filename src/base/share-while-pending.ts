// Requests that everybody may send must not multiply the work behind them.

/** While a run is pending, further callers get its result instead of a run of their own. */
export function shareWhilePending<T>(run: () => Promise<T>): () => Promise<T> {
  let pending: Promise<T> | undefined
  return () => {
    pending ??= run().finally(() => (pending = undefined))
    return pending
  }
}
