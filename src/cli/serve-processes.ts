// The parent of several gateway processes: passes signals on, and serves the sum of their metrics.

import { gatewaySettings, listenOrFail, metricsSettings } from '../boot/listen-fault.ts'
import { memoryBytesMax } from '../boot/runtime.ts'
import type { Config } from '../config.ts'
import { ConfigError } from '../config.ts'
import { listenText } from '../http/server/text-server.ts'
import { MetricsSum } from '../management/metrics/metrics-sum.ts'
import { ProcessGroup } from './processes.ts'

/** A process that is busy for longer is shown with its last figures. */
const METRICS_MS_MAX = 2_000

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** A process ends by itself a few seconds after the drain period. One that has not ended this much later is killed. */
const KILL_MS = 10_000

const MEGABYTE = 1024 * 1024

/** `command` is that of one process; only tests have another one. */
export async function serveProcesses(
  config: Config,
  say: (line: string) => void,
  command: readonly string[] = [process.execPath, ...process.execArgv, process.argv[1]!, 'serve'],
): Promise<void> {
  // Processes of one gateway share their port, so none of them would notice that another program uses it.
  if (config.port === 0) throw new ConfigError('Several processes need a fixed port: set PORT.')
  listenOrFail(config, gatewaySettings, () =>
    Bun.listen({ hostname: config.host, port: config.port, socket: { data() {} } }),
  ).stop(true)
  const metrics = openMetricsSum(config)
  const memoryBytes = (config.memoryBytesMax ?? memoryBytesMax()) / config.processes
  const memory = { WEIR_MEMORY_MB: String(Math.max(1, Math.floor(memoryBytes / MEGABYTE))) }
  const env = { ...config.env, ...memory, ...(metrics && { METRICS_HOST: '127.0.0.1', METRICS_PORT: '0' }) }
  const processes = new ProcessGroup({
    count: config.processes,
    command,
    env,
    killMs: config.drainMs + KILL_MS,
    onListening: (number, { metricsUrl }) => metrics?.begin(number, metricsUrl),
    onEnd: number => metrics?.end(number),
    complain: line => process.stderr.write(`weir: ${line}\n`),
  })
  process.on('SIGTERM', () => processes.stop('SIGTERM'))
  process.on('SIGINT', () => processes.stop('SIGINT'))
  if (await processes.start()) say(`Weir has ${config.processes} processes.`)
  process.exit((await processes.ended) ? 0 : 1)
}

interface MetricsOfProcesses {
  begin(number: number, url: string | null): void
  end(number: number): void
}

/** Undefined when metrics are off. */
function openMetricsSum({ metrics: address }: Config): MetricsOfProcesses | undefined {
  if (address === undefined) return undefined
  const urls = new Map<number, string>()
  const sum = new MetricsSum()
  const read = async ([number, url]: [number, string]): Promise<void> => {
    const text = await fetch(url, { signal: AbortSignal.timeout(METRICS_MS_MAX) }).then(response => response.text())
    // The process may have ended meanwhile.
    if (urls.get(number) === url) sum.note(number, text)
  }
  listenOrFail(address, metricsSettings, () =>
    listenText({
      ...address,
      path: '/metrics',
      async write() {
        await Promise.allSettled(Array.from(urls, read))
        return { text: sum.write(), contentType: CONTENT_TYPE }
      },
    }),
  )
  return {
    begin: (number, url) => void (url !== null && urls.set(number, url)),
    end(number) {
      urls.delete(number)
      sum.end(number)
    },
  }
}
