// Runs writes one after the other. A rule is checked against all other rules before it is written, so none of them may
// change in between.

export type WriteQueue = <T>(run: () => Promise<T>) => Promise<T>

export function buildWriteQueue(): WriteQueue {
  let last: Promise<unknown> = Promise.resolve()
  return run => {
    const current = last.then(run)
    last = current.catch(() => {})
    return current
  }
}
