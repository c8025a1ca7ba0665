// A port for a server that a test starts later. It is below the ports that the kernel gives to outgoing connections and to
// listeners on port 0: one of those could be taken by another test before the server listens.

const FIRST = 10_000
const LAST = 32_000

/** A port of 127.0.0.1 that nothing listens on. */
export function freePort(): number {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    if (isFree(port)) return port
  }
}

function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true)
    return true
  } catch {
    return false
  }
}
