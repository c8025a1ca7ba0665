// The rules as they are: read at the start and after each change, and told to all who go by them. What is told is
// durable, so that what holds now holds after a restart.

import { bounds } from '../base/bounds.ts'
import type { Seal } from '../base/seal.ts'
import { SealError } from '../base/seal.ts'
import { Secret } from '../base/secret.ts'
import type { ChannelRow, MemberRow, PolicyName, RouteRow, Rules } from './rules.ts'
import { noRules, policyNames } from './rules.ts'
import type { RulesReader, WrittenRules } from './rules-reader.ts'

export interface RuleBookParts {
  readonly reader: Pick<RulesReader, 'read'>
  readonly seal: Seal
  /** Told of a proxy that does not open. */
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
    this.#channels = new Map(rows.channels.map(row => {
      const text = JSON.stringify(row)
      return [text, this.#channels.get(text) ?? this.#readChannel(row)]
    }))
    this.#current = { limits: rows.limits, routes, channels: [...this.#channels.values()] }
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

  /** For `setChannel`. */
  sealProxy(channel: string, proxy: Secret): string {
    return this.#parts.seal.close(placeOf(channel), Buffer.from(proxy.reveal())).toString('base64')
  }

  #readChannel({ proxy: sealed, ...row }: WrittenRules['channels'][number]): ChannelRow {
    if (sealed === null) return { ...row, proxy: null }
    try {
      const proxy = this.#parts.seal.open(placeOf(row.channel), Buffer.from(sealed, 'base64')).toString()
      return { ...row, proxy: new Secret(proxy) }
    } catch (fault) {
      if (!(fault instanceof SealError)) throw fault
      this.#parts.onTrouble(`the proxy of ${row.channel}: ${fault.message}`)
      return { ...row, disabled: true, proxy: null, proxyLost: true }
    }
  }
}

const placeOf = (channel: string) => ({ table: 'channel_rule', row: channel, column: 'proxy' })

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
