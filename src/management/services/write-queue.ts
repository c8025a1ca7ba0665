// A rule is held against all others before it is written: meanwhile none of them may change.

export type Turn = <T>(run: () => Promise<T>) => Promise<T>

export function buildTurns(): Turn {
  let last: Promise<unknown> = Promise.resolve()
  return run => {
    const mine = last.then(run)
    last = mine.catch(() => {})
    return mine
  }
}
