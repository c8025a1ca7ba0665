// Stands for `weir serve` as a child of several processes: listens on the shared port, tells its parent, and ends after a
// signal. Its first line of the log of signals is its number; `HOLD` keeps it until the second signal.

import { appendFileSync } from 'node:fs'

const { PORT, METRICS_PORT, WEIR_PROCESS: number, SIGNALS, FAILS, HOLD } = process.env
if (FAILS === number) {
  process.stderr.write('weir: the database is away\n')
  process.exit(1)
}

let calls = 0
Bun.serve({
  hostname: '127.0.0.1',
  port: Number(PORT),
  reusePort: true,
  fetch() {
    calls++
    return new Response(`${number} ${process.pid}`, { headers: { connection: 'close' } })
  },
})
const metrics =
  METRICS_PORT === undefined
    ? undefined
    : Bun.serve({
        hostname: '127.0.0.1',
        port: Number(METRICS_PORT),
        fetch: () => new Response(`# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total{} ${calls}\n`),
      })

let signals = 0
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    appendFileSync(SIGNALS!, `${number} ${signal}\n`)
    if (++signals > 1 || HOLD === undefined) process.exit(0)
  })
}
process.on('disconnect', () => process.exit(0))
process.send!({ url: `http://127.0.0.1:${PORT}`, metricsUrl: metrics === undefined ? null : metrics.url.href })
