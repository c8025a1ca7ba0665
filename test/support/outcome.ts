// Expectations about promises that do not block. `expect(promise).rejects` of bun test runs the event loop inside the
// matcher until the promise has settled, and that loop can sleep for seconds although there is work:
// https://github.com/oven-sh/bun/issues/14950

/** Waits for a promise. Returns a function that throws what the promise was rejected with, or else returns its value. */
export async function outcomeOf<T>(promise: Promise<T>): Promise<() => T> {
  try {
    const value = await promise
    return () => value
  } catch (fault) {
    return () => {
      throw fault
    }
  }
}
