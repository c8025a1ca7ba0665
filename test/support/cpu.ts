// How much time the processor took for a piece of work. Unlike the time that passed, a busy machine hardly changes it.
// It is that of the whole process, so nothing else should go on in it meanwhile.

const MICROS_PER_MS = 1_000

function cpuMsSince(began: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(began)
  return (user + system) / MICROS_PER_MS
}

/** The least of several tries: the first is compiled, and the collector of garbage may run in another. */
export function leastCpuMs(work: () => void, tries = 3): number {
  let least = Number.POSITIVE_INFINITY
  for (let count = 0; count < tries; count++) {
    const began = process.cpuUsage()
    work()
    least = Math.min(least, cpuMsSince(began))
  }
  return least
}

/** Of work that waits for others in this process, such as a gateway and its upstream: what all of them took. */
export async function cpuMsOf(work: () => Promise<unknown>): Promise<number> {
  const began = process.cpuUsage()
  await work()
  return cpuMsSince(began)
}
