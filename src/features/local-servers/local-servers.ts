// Finds servers of models on this machine at their usual ports, and keeps the lists of their models up to date: at the
// start, at an interval, and when a call names a model that is not known. A server that the operator has configured is
// not looked for, but its models are listed, too.
//
// Any program may listen at such a port, and what answers there is free of charge. So a server counts only if it shows
// what it is: by its own interface, or by the owner that it writes beside its models (`localServer` in its file).

import { bounds } from '../../base/bounds.ts'
import type { ErrorCode } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import type { OutgoingRequest } from '../../http/client/request.ts'
import type { SendUpstreamQuery } from '../../pipeline/attempt/upstream-query.ts'
import { UpstreamQueryFailed } from '../../pipeline/attempt/upstream-query.ts'
import { isObject, parseUpstreamJson } from '../../protocols/request/json-body.ts'
import type { Catalogue, FoundProvider, FoundProviders } from '../../upstreams/catalogue.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { fixedHeaders } from '../../upstreams/request-signature.ts'
import type { ListModels, UpstreamModels } from '../channel-tests/list-models.ts'
import { ModelListUnavailable } from '../channel-tests/list-models.ts'

/** Which servers are looked for: those at their usual ports, none, or these providers at these ports. */
export type LocalServerPorts = 'usual' | 'none' | ReadonlyMap<string, number>

export interface LocalServersParts {
  readonly catalogue: Pick<Catalogue, 'providers' | 'channelsOf' | 'localChannel' | 'setFound'>
  readonly listModels: ListModels
  readonly sendQuery: SendUpstreamQuery
  readonly ports: LocalServerPorts
  readonly everyMs: number
  readonly log: Log
  nowMs(): number
}

const SOURCE = 'servers'

/** The errors of calls that a newly found server or model may answer. */
const UNSERVED: readonly ErrorCode[] = ['model_unknown', 'provider_unknown', 'no_channel']

export class LocalServers {
  readonly #parts: LocalServersParts
  #found: FoundProviders = new Map()
  #ownPort = 0
  #timer: ReturnType<typeof setInterval> | undefined
  #refreshing: Promise<boolean> | undefined
  #refreshedMs = -Infinity
  #closed = false

  constructor(parts: LocalServersParts) {
    this.#parts = parts
  }

  /** `ownPort`: the port of this gateway, which is not taken for a server of models. */
  start(ownPort: number): void {
    this.#ownPort = ownPort
    this.#warnOfUnknown()
    this.#timer = setInterval(() => void this.#refresh(), this.#parts.everyMs)
    this.#timer.unref()
    void this.#refresh()
  }

  /** After a call was refused: looks again, unless it was just done. Resolves to whether something has changed. */
  async refreshFor(code: ErrorCode): Promise<boolean> {
    if (!UNSERVED.includes(code)) return false
    const isRecent = this.#parts.nowMs() - this.#refreshedMs < bounds.localServersGapMs
    if (this.#refreshing === undefined && (isRecent || this.#candidates().length === 0)) return false
    return await this.#refresh()
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#timer)
  }

  #warnOfUnknown(): void {
    const { catalogue, ports, log } = this.#parts
    const { unknown, allowed } = checkServerNames(ports, catalogue.providers)
    for (const provider of unknown)
      log.warn('WEIR_LOCAL_SERVERS names a provider that is no local server', { provider, allowed: allowed.join() })
  }

  /** Looks at all servers at once, or joins the search that is running. */
  #refresh(): Promise<boolean> {
    this.#refreshing ??= this.#refreshAll().finally(() => {
      this.#refreshing = undefined
      this.#refreshedMs = this.#parts.nowMs()
    })
    return this.#refreshing
  }

  async #refreshAll(): Promise<boolean> {
    const results = await Promise.all(
      this.#candidates().map(async candidate => [candidate.provider.id, await this.#look(candidate)] as const),
    )
    const found: FoundProviders = new Map(
      results.flatMap(([id, server]) => (server === undefined ? [] : [[id, server] as const])),
    )
    if (this.#closed || isSame(found, this.#found)) return false
    this.#logChanges(found)
    this.#found = found
    this.#parts.catalogue.setFound(SOURCE, found)
    return true
  }

  #logChanges(found: FoundProviders): void {
    const { log } = this.#parts
    for (const [provider, { baseUrl, models }] of found) {
      if (baseUrl !== undefined && this.#found.get(provider)?.baseUrl !== baseUrl)
        log.info('found a local server', { provider, address: baseUrl, models: models.length })
    }
    for (const [provider, { baseUrl }] of this.#found) {
      if (baseUrl !== undefined && !found.has(provider)) log.info('a local server is gone', { provider })
    }
  }

  /** The servers to look at: configured ones, and those that may be at a port of this machine. */
  #candidates(): readonly Candidate[] {
    const { catalogue, ports } = this.#parts
    if (ports === 'none') return []
    return [...catalogue.providers.values()].flatMap((provider): readonly Candidate[] => {
      if (provider.localServer === undefined) return []
      const isConfigured =
        catalogue.channelsOf(provider.id).length > 0 && this.#found.get(provider.id)?.baseUrl === undefined
      if (isConfigured) return [{ provider }]
      const baseUrl = this.#addressOf(provider)
      return baseUrl === undefined ? [] : [{ provider, baseUrl }]
    })
  }

  #addressOf({ id, baseUrl }: Provider): string | undefined {
    const { ports } = this.#parts
    const url = new URL(baseUrl)
    const port = typeof ports === 'string' ? Number(url.port) : ports.get(id)
    if (port === undefined || port === this.#ownPort) return undefined
    url.port = String(port)
    return url.href
  }

  /** The models of a server. Undefined: no server of this kind answers. A configured server keeps its last list. */
  async #look({ provider, baseUrl }: Candidate): Promise<FoundProvider | undefined> {
    const { catalogue, listModels } = this.#parts
    const channel =
      baseUrl === undefined ? catalogue.channelsOf(provider.id)[0] : catalogue.localChannel(provider.id, baseUrl)
    if (channel === undefined) return undefined
    try {
      const listed = await listModels(provider, channel, bounds.localServerMsMax)
      if (baseUrl !== undefined && !(await this.#isServer(provider, channel, listed))) return undefined
      return {
        ...(baseUrl !== undefined && { baseUrl }),
        models: listed.ids.slice(0, bounds.localModelsMax).map(id => ({ id })),
      }
    } catch (fault) {
      if (!(fault instanceof ModelListUnavailable)) throw fault
      return baseUrl === undefined ? this.#found.get(provider.id) : undefined
    }
  }

  async #isServer(provider: Provider, channel: Channel, { ids, rows }: UpstreamModels): Promise<boolean> {
    const { ownedBy, answers } = provider.localServer!
    // A gateway lists its models with their providers. It must not become a provider of itself.
    if (ids.some(id => id.startsWith(`${provider.id}/`))) return false
    const isOwned = ids.length > 0 && ids.every(id => rows.get(id)?.owned_by === ownedBy)
    if (ownedBy !== undefined && !isOwned) return false
    const checks = [...answers].map(async ([path, fields]) => {
      const answer = await this.#fetchJson(provider, channel, path)
      return fields.every(field => hasField(answer, field.split('.')))
    })
    return !(await Promise.all(checks)).includes(false)
  }

  /** The JSON at a path of the server. Undefined if there is none; a redirect is not followed. */
  async #fetchJson(provider: Provider, channel: Channel, path: string): Promise<unknown> {
    const [dialect] = Object.keys(provider.speaks)
    const { origin } = new URL(channel.baseUrl)
    const target = { provider, channel: { ...channel, baseUrl: origin }, dialect: dialect! }
    const limits = { bytesMax: bounds.localServerBytesMax, msMax: bounds.localServerMsMax }
    const request: OutgoingRequest = {
      method: 'GET',
      url: origin + path,
      headers: { accept: 'application/json', ...fixedHeaders },
      body: new Uint8Array(),
    }
    try {
      const { status, body } = await this.#parts.sendQuery({ ...target, ...limits }, request)
      return status === 200 ? parseUpstreamJson(body) : undefined
    } catch (fault) {
      if (fault instanceof UpstreamQueryFailed) return undefined
      throw fault
    }
  }
}

/** Which of the named servers are no local servers, and the names of those that are. */
export function checkServerNames(ports: LocalServerPorts, providers: Catalogue['providers']) {
  const allowed = [...providers.values()].flatMap(one => (one.localServer === undefined ? [] : [one.id]))
  const named = typeof ports === 'string' ? [] : [...ports.keys()]
  return { unknown: named.filter(name => !allowed.includes(name)), allowed }
}

/** Whether a JSON value has the field; in a list, each of at least one row. */
function hasField(value: unknown, path: readonly string[]): boolean {
  const [name, ...rest] = path
  if (name === undefined) return value !== undefined && value !== null
  if (Array.isArray(value)) return value.length > 0 && value.every(row => hasField(row, path))
  return isObject(value) && Object.hasOwn(value, name) && hasField(value[name], rest)
}

interface Candidate {
  readonly provider: Provider
  /** Where it may be found; undefined: it is configured. */
  readonly baseUrl?: string
}

const isSame = (one: FoundProviders, other: FoundProviders): boolean => textOf(one) === textOf(other)

const textOf = (found: FoundProviders): string =>
  JSON.stringify([...found].map(([id, { baseUrl, models }]) => [id, baseUrl, models.map(model => model.id)]))
