// The rules as they are: read at the start and after each change, and told to all who go by them. What is told is
// durable, so that what holds now holds after a restart.

import { bounds } from '../../base/bounds.ts'
import type { Seal, SealedPlace } from '../../base/secrets/seal.ts'
import { SealError } from '../../base/secrets/seal.ts'
import { Secret } from '../../base/secrets/secret.ts'
import type { ChannelRow, MemberRow, PolicyName, RouteRow, Rules, StoredChannel } from './rules.ts'
import { noRules, policyNames } from './rules.ts'
import type { RulesReader, WrittenChannel, WrittenRules } from './rules-reader.ts'

export interface RuleBookParts {
  readonly reader: Pick<RulesReader, 'read'>
  readonly seal: Seal
  /** Told of a proxy or a credential that does not open. */
  onTrouble(detail: string): void
}

type Listener = (rules: Rules) => void

export class RuleBook {
  readonly #parts: RuleBookParts
  readonly #listeners: Listener[] = []
  #written = ''
  #current: Rules = noRules
  #problem: string | undefined
  /** By what is written: one that has not changed is the same as before, its proxy too. */
  #channels: ReadonlyMap<string, ChannelRow> = new Map()
  #stored: ReadonlyMap<string, StoredChannel> = new Map()

  constructor(parts: RuleBookParts) {
    this.#parts = parts
  }

  get current(): Rules {
    return this.#current
  }

  /** Why what is written cannot be used; until that is mended, the rules stay what they were. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Called with the rules as they are, and again after each change. */
  follow(listener: Listener): void {
    this.#listeners.push(listener)
    listener(this.#current)
  }

  renew(): void {
    const rows = this.#parts.reader.read()
    const written = JSON.stringify(rows)
    if (written === this.#written) return
    this.#written = written
    const unreadable = rows.routes.find(row => readRoute(row) === undefined)
    // A name that is left out may mean something else: better no change than that.
    this.#problem = unreadable && `The route "${unreadable.name}" cannot be read. Take it away: weir routes remove.`
    if (unreadable !== undefined) return
    const routes = rows.routes.map(row => readRoute(row)!)
    this.#channels = readAnew(rows.channels, this.#channels, row => this.#readChannel(row))
    this.#stored = readAnew(rows.stored, this.#stored, row => this.#readStored(row))
    const [channels, stored] = [[...this.#channels.values()], [...this.#stored.values()]]
    const { limits, tierLimits, providers } = rows
    this.#current = { limits, tierLimits, routes, channels, stored, providers }
    this.#tell()
  }

  /** All of them, also where one fails: they must not go by different rules. */
  #tell(): void {
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

  /** For `setChannels`. */
  sealProxy(channel: string, proxy: Secret): string {
    return this.#parts.seal.close(proxyPlace(channel), Buffer.from(proxy.reveal())).toString('base64')
  }

  sealCredential(channel: string, credential: Secret): string {
    return this.#parts.seal.close(credentialPlace(channel), Buffer.from(credential.reveal())).toString('base64')
  }

  #readChannel({ proxy: sealed, ...row }: WrittenRules['channels'][number]): ChannelRow {
    if (sealed === null) return { ...row, proxy: null }
    const proxy = this.#open(proxyPlace(row.channel), sealed)
    return proxy === undefined ? { ...row, disabled: true, proxy: null, proxyLost: true } : { ...row, proxy }
  }

  #readStored({ headers, parameters, times, credential: sealed, ...row }: WrittenChannel): StoredChannel {
    const credential = sealed === null ? null : this.#open(credentialPlace(row.id), sealed)
    return {
      ...row,
      headers: JSON.parse(headers) as StoredChannel['headers'],
      parameters: JSON.parse(parameters) as StoredChannel['parameters'],
      times: JSON.parse(times) as StoredChannel['times'],
      ...(credential === undefined ? { credential: null, credentialLost: true } : { credential }),
    }
  }

  #open(place: SealedPlace, sealed: string): Secret | undefined {
    try {
      return new Secret(this.#parts.seal.open(place, Buffer.from(sealed, 'base64')).toString())
    } catch (fault) {
      if (!(fault instanceof SealError)) throw fault
      this.#parts.onTrouble(`the ${place.column} of ${place.row}: ${fault.message}`)
      return undefined
    }
  }
}

/** The table had another name when the first of them were sealed. */
const proxyPlace = (channel: string): SealedPlace => ({ table: 'channel_rule', row: channel, column: 'proxy' })
const credentialPlace = (channel: string): SealedPlace => ({ table: 'channel', row: channel, column: 'credential' })

/** By what is written, each as before where that is the same. */
function readAnew<Written, Row>(
  rows: readonly Written[],
  before: ReadonlyMap<string, Row>,
  read: (row: Written) => Row,
): ReadonlyMap<string, Row> {
  return new Map(
    rows.map(row => {
      const text = JSON.stringify(row)
      return [text, before.get(text) ?? read(row)]
    }),
  )
}

function readRoute({ name, policy, members }: WrittenRules['routes'][number]): RouteRow | undefined {
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
