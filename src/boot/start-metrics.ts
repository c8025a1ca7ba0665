// The numbers of a gateway that wants to be watched: what counts its calls, and the port on which all is told.

import { readdirSync } from 'node:fs'
import packageJson from '../../package.json'
import { Metrics } from '../base/metrics.ts'
import type { Config } from '../config.ts'
import type { TextServer } from '../http/server/text-server.ts'
import { listenText } from '../http/server/text-server.ts'
import type { KnowsModel } from '../management/metrics/call-metrics.ts'
import { CallMetrics } from '../management/metrics/call-metrics.ts'
import type { MeasuredParts, ProcessReading } from '../management/metrics/gateway-metrics.ts'
import { addGatewayMetrics } from '../management/metrics/gateway-metrics.ts'
import type { RuleBook } from '../store/rules/rules-book.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'

const { version } = packageJson

export interface GatewayMetrics {
  /** Counts calls, from now on. */
  readonly calls: CallMetrics
  /** Adds what is read from the parts of the gateway, once all of them are there, and listens. */
  listen(parts: Omit<MeasuredParts, 'build' | 'process'> & { readonly schema: number }): TextServer
}

export interface Named {
  readonly catalogue: Pick<Catalogue, 'providers'>
  readonly rules: Pick<RuleBook, 'follow'>
}

const OPEN_METRICS = 'application/openmetrics-text'
const CONTENT_TYPES = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: `${OPEN_METRICS}; version=1.0.0; charset=utf-8`,
}

/** Undefined when nobody wants them: then nothing is counted either. */
export function openMetrics({ metrics: at }: Pick<Config, 'metrics'>, named: Named): GatewayMetrics | undefined {
  if (at === undefined) return undefined
  const metrics = new Metrics()
  return {
    calls: new CallMetrics(metrics, knowsModels(named)),
    listen({ schema, ...parts }) {
      const build = { version, runtime: process.versions.bun ?? '', schema }
      addGatewayMetrics(metrics, { ...parts, build, process: readProcess })
      return listenText({
        ...{ ...at, path: '/metrics' },
        write(accepts) {
          const format = accepts.includes(OPEN_METRICS) ? 'openmetrics' : 'prometheus'
          return { text: metrics.write(format), contentType: CONTENT_TYPES[format] }
        },
      })
    },
  }
}

/** In a provider's file, or among what a name of the operator's stands for. */
function knowsModels({ catalogue, rules }: Named): KnowsModel {
  let routed: ReadonlySet<string> = new Set()
  rules.follow(({ routes }) => (routed = new Set(routes.flatMap(({ members }) => members.map(({ model }) => model)))))
  return (provider, model) => catalogue.providers.get(provider)?.models.has(model) || routed.has(`${provider}/${model}`)
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
