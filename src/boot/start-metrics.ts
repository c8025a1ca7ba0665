// Creates the metrics of the gateway and the HTTP server that exposes them.

import { readdirSync } from 'node:fs'
import packageJson from '../../package.json'
import { Metrics } from '../base/metrics.ts'
import type { Config } from '../config.ts'
import type { TextServer } from '../http/server/text-server.ts'
import { listenText } from '../http/server/text-server.ts'
import type { IsKnownModel } from '../management/metrics/call-metrics.ts'
import { CallMetrics } from '../management/metrics/call-metrics.ts'
import type { GatewayMetricsParts, ProcessReading } from '../management/metrics/gateway-metrics.ts'
import { addGatewayMetrics } from '../management/metrics/gateway-metrics.ts'
import type { LiveRules } from '../store/rules/live-rules.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'

const { version } = packageJson

export interface GatewayMetrics {
  /** Counts finished and refused calls. */
  readonly calls: CallMetrics
  /** Adds the metrics that are read from the gateway's parts, once they all exist, and starts the server. */
  listen(parts: Omit<GatewayMetricsParts, 'build' | 'process'> & { readonly schema: number }): TextServer
}

export interface ModelNameSources {
  readonly catalogue: Pick<Catalogue, 'providers'>
  readonly rules: Pick<LiveRules, 'subscribe'>
}

const OPEN_METRICS = 'application/openmetrics-text'
const CONTENT_TYPES = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: `${OPEN_METRICS}; version=1.0.0; charset=utf-8`,
}

/** Undefined when metrics are off; then nothing is counted either. */
export function openMetrics(
  { metrics: address }: Pick<Config, 'metrics'>,
  named: ModelNameSources,
): GatewayMetrics | undefined {
  if (address === undefined) return undefined
  const metrics = new Metrics()
  return {
    calls: new CallMetrics(metrics, knowsModels(named)),
    listen({ schema, ...parts }) {
      const build = { version, runtime: process.versions.bun ?? '', schema }
      addGatewayMetrics(metrics, { ...parts, build, process: readProcess })
      return listenText({
        ...address,
        path: '/metrics',
        write(accepts) {
          const format = accepts.includes(OPEN_METRICS) ? 'openmetrics' : 'prometheus'
          return { text: metrics.write(format), contentType: CONTENT_TYPES[format] }
        },
      })
    },
  }
}

/** Whether a model is in a provider file or a member of a configured model name. Other models get no label of their own. */
function knowsModels({ catalogue, rules }: ModelNameSources): IsKnownModel {
  let aliased: ReadonlySet<string> = new Set()
  rules.subscribe(
    ({ routes }) => (aliased = new Set(routes.flatMap(({ members }) => members.map(({ model }) => model)))),
  )
  return (provider, model) =>
    catalogue.providers.get(provider)?.models.has(model) || aliased.has(`${provider}/${model}`)
}

function readProcess(): ProcessReading {
  const { rss, heapUsed } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  return { residentBytes: rss, heapBytes: heapUsed, cpuSeconds: (user + system) / 1e6, openFiles: openFiles() }
}

function openFiles(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return undefined
  }
}
