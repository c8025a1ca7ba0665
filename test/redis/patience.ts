// Redis has 100 ms for a command of a gateway, and two seconds for the check at the start. Without an answer in time, a
// gateway goes on without Redis. A busy machine may need longer, so tests that need each answer wait for it.

import type { RedisConnection } from '../../src/store/redis/client.ts'

/** How long a command of a gateway may take. */
export const COMMAND_MS = 100
/** How long the check at the start waits for an answer. */
export const CHECK_MS = 2_000

const PATIENT_MS = 60_000

/** From now on, timers of this length take much longer. Returns a function that ends this. */
export function beginPatience(lengthMs: number): () => void {
  const original = globalThis.setTimeout
  const patient = (work: () => void, ms?: number, ...rest: []): unknown =>
    original(work, ms === lengthMs ? PATIENT_MS : ms, ...rest)
  globalThis.setTimeout = patient as unknown as typeof setTimeout
  return () => {
    globalThis.setTimeout = original
  }
}

/** The first try to connect fails if it takes longer than a second. */
export async function untilUp(...connections: readonly Pick<RedisConnection, 'isUp'>[]): Promise<void> {
  while (connections.some(({ isUp }) => !isUp)) await Bun.sleep(5)
}
