// Processor time of a piece of work. Unlike elapsed time, it hardly depends on how busy the machine is.
// It is measured for the whole process, so nothing else should run in the process meanwhile.

const MICROS_PER_MS = 1_000

function cpuMsSince(began: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(began)
  return (user + system) / MICROS_PER_MS
}

/** The least of several runs: the first run includes compilation, and a garbage collection may fall into another. */
export function leastCpuMs(work: () => void, tries = 3): number {
  let least = Number.POSITIVE_INFINITY
  for (let count = 0; count < tries; count++) {
    const began = process.cpuUsage()
    work()
    least = Math.min(least, cpuMsSince(began))
  }
  return least
}

/** For asynchronous work: includes the time of everything else in this process, such as a gateway and its upstream. */
export async function cpuMsOf(work: () => Promise<unknown>): Promise<number> {
  const began = process.cpuUsage()
  await work()
  return cpuMsSince(began)
}
