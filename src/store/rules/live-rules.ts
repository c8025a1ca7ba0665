// Holds the current rules: reads them at the start and after each change, and passes them to all listeners. The rules
// are durable before they are passed on, so a restart has the same rules.

import { bounds } from '../../base/bounds.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import type { Seal, SealLocation } from '../../base/secrets/seal.ts'
import { SealError } from '../../base/secrets/seal.ts'
import { Secret } from '../../base/secrets/secret.ts'
import type { ChannelRow, MemberRow, PolicyName, RouteRow, Rules, StoredChannel } from './rules.ts'
import { noRules, policyNames } from './rules.ts'
import type { RulesReader, StoredChannelRow, StoredRules } from './rules-reader.ts'

export interface LiveRulesParts {
  readonly reader: Pick<RulesReader, 'read'>
  readonly seal: Seal
  /** Called for a proxy or a credential that cannot be decrypted. */
  onError(detail: string): void
}

type Listener = (rules: Rules) => void

export class LiveRules {
  readonly #parts: LiveRulesParts
  readonly #listeners: Listener[] = []
  #lastReload: Promise<void> = Promise.resolve()
  #storedJson = ''
  #current: Rules = noRules
  #problem: Hint | undefined
  /** Channels by their stored JSON: an unchanged channel keeps the same object and the same proxy secret. */
  #channels: ReadonlyMap<string, ChannelRow> = new Map()
  #stored: ReadonlyMap<string, StoredChannel> = new Map()

  constructor(parts: LiveRulesParts) {
    this.#parts = parts
  }

  get current(): Rules {
    return this.#current
  }

  /** Why the stored rules cannot be used. Until that is fixed, the old rules stay in force. */
  get problem(): Hint | undefined {
    return this.#problem
  }

  /** Calls the listener with the current rules, and again after each change. */
  subscribe(listener: Listener): void {
    this.#listeners.push(listener)
    listener(this.#current)
  }

  /**
   * Reads the rules again. `onRead` is called when they are read, and in the same tick they apply. One reading follows the
   * other, so that an older one never replaces a newer one.
   */
  reload(onRead?: () => void): Promise<void> {
    const reloaded = this.#lastReload.then(async () => {
      const rows = await this.#parts.reader.read()
      onRead?.()
      this.#apply(rows)
    })
    this.#lastReload = reloaded.catch(() => {})
    return reloaded
  }

  #apply(rows: StoredRules): void {
    const storedJson = JSON.stringify(rows)
    if (storedJson === this.#storedJson) return
    this.#storedJson = storedJson
    const unreadable = rows.routes.find(row => readRoute(row) === undefined)
    // Without this route its name could mean another model, so the rules are not changed at all.
    this.#problem = unreadable && hintOf('route_unreadable', { name: unreadable.name })
    if (unreadable !== undefined) return
    const routes = rows.routes.map(row => readRoute(row)!)
    this.#channels = convertChanged(rows.channels, this.#channels, row => this.#readChannel(row))
    this.#stored = convertChanged(rows.stored, this.#stored, row => this.#readStored(row))
    this.#current = {
      limits: rows.limits,
      tierLimits: rows.tierLimits,
      routes,
      channels: [...this.#channels.values()],
      stored: [...this.#stored.values()],
      providers: rows.providers,
    }
    this.#notifyListeners()
  }

  /** Calls all listeners, also after one of them has failed: they must not have different rules. */
  #notifyListeners(): void {
    const faults: unknown[] = []
    for (const listener of this.#listeners) {
      try {
        listener(this.#current)
      } catch (fault) {
        faults.push(fault)
      }
    }
    if (faults.length > 0) throw faults[0]
  }

  /** Encrypts a proxy for `setChannels`. */
  sealProxy(channel: string, proxy: Secret): string {
    return this.#parts.seal.seal(proxyPlace(channel), Buffer.from(proxy.reveal())).toString('base64')
  }

  sealCredential(channel: string, credential: Secret): string {
    return this.#parts.seal.seal(credentialPlace(channel), Buffer.from(credential.reveal())).toString('base64')
  }

  #readChannel({ proxy: sealed, ...row }: StoredRules['channels'][number]): ChannelRow {
    if (sealed === null) return { ...row, proxy: null }
    const proxy = this.#open(proxyPlace(row.channel), sealed)
    return proxy === undefined ? { ...row, disabled: true, proxy: null, proxyLost: true } : { ...row, proxy }
  }

  #readStored({ headers, parameters, times, credential: sealed, ...row }: StoredChannelRow): StoredChannel {
    const credential = sealed === null ? null : this.#open(credentialPlace(row.id), sealed)
    return {
      ...row,
      headers: JSON.parse(headers) as StoredChannel['headers'],
      parameters: JSON.parse(parameters) as StoredChannel['parameters'],
      times: JSON.parse(times) as StoredChannel['times'],
      ...(credential === undefined ? { credential: null, credentialLost: true } : { credential }),
    }
  }

  #open(place: SealLocation, sealed: string): Secret | undefined {
    try {
      return new Secret(this.#parts.seal.open(place, Buffer.from(sealed, 'base64')).toString())
    } catch (fault) {
      if (!(fault instanceof SealError)) throw fault
      this.#parts.onError(`the ${place.column} of ${place.row}: ${fault.message}`)
      return undefined
    }
  }
}

/** `channel_rule` is the former name of the table; it is part of every encrypted proxy. */
const proxyPlace = (channel: string): SealLocation => ({ table: 'channel_rule', row: channel, column: 'proxy' })
const credentialPlace = (channel: string): SealLocation => ({ table: 'channel', row: channel, column: 'credential' })

/** Converts rows, and keeps the objects of rows whose stored JSON has not changed. */
function convertChanged<Written, Row>(
  rows: readonly Written[],
  previous: ReadonlyMap<string, Row>,
  read: (row: Written) => Row,
): ReadonlyMap<string, Row> {
  return new Map(
    rows.map(row => {
      const text = JSON.stringify(row)
      return [text, previous.get(text) ?? read(row)]
    }),
  )
}

function readRoute({ name, policy, members }: StoredRules['routes'][number]): RouteRow | undefined {
  const rows = membersOf(members)
  const isKnown = (policyNames as readonly string[]).includes(policy)
  return rows && isKnown ? { name, policy: policy as PolicyName, members: rows } : undefined
}

function membersOf(text: string): readonly MemberRow[] | undefined {
  let rows: unknown
  try {
    rows = JSON.parse(text)
  } catch {
    return undefined
  }
  const isList = Array.isArray(rows) && rows.length > 0 && rows.length <= bounds.routeMembersMax && rows.every(isMember)
  return isList ? (rows as MemberRow[]) : undefined
}

function isMember(value: unknown): boolean {
  const { model, priority, weight } = (value ?? {}) as Partial<MemberRow>
  const isCount = (number: unknown): boolean => Number.isSafeInteger(number) && (number as number) >= 0
  return typeof model === 'string' && model !== '' && isCount(priority) && isCount(weight)
}
