// Random numbers that are the same for the same seed on every machine (mulberry32).

function bitsFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
}

/** Returns a function that draws a whole number from 0 up to, and without, `below`. */
export function randomFrom(seed: number): (below: number) => number {
  const bits = bitsFrom(seed)
  return below => bits() % below
}

/** Returns a function that draws a number from 0 up to, and without, 1. */
export function chanceOf(seed: number): () => number {
  const bits = bitsFrom(seed)
  return () => bits() / 2 ** 32
}
