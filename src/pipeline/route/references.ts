// Whether a call may name what it names at its upstream. An id that names something kept there is passed only to the
// channel that has it, and only if this account made it through this gateway; or where the operator lets all callers
// of a channel name whatever is kept there. To everybody else it is not there, whether or not it exists.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import { formValues } from '../../protocols/passthrough-call.ts'
import type { Protocol } from '../../protocols/protocol.ts'
import { invalid } from '../../protocols/request/checks.ts'
import { madeReader } from '../../protocols/request/created-references.ts'
import { isObject } from '../../protocols/request/json-object.ts'
import type { Reference, ReferenceKind } from '../../protocols/request/references.ts'
import { findReferences, pathText, referencesFound } from '../../protocols/request/references.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Provider } from '../../upstreams/provider.ts'
import type { References } from '../../vault/vault.ts'
import { narrowed } from '../30-route.ts'
import type { Exchange, Route } from '../exchange.ts'
import type { Settle } from '../settle/settle.ts'
import { NamesMade } from './created-references.ts'
import type { ChannelSeat } from './targets.ts'

export interface ReferenceCheckParts {
  readonly references: Pick<References, 'owned'>
  readonly catalogue: Pick<Catalogue, 'heirOf' | 'ruleOf'>
}

/** Where a call may go. */
interface Candidate {
  readonly provider: Provider
  /** The upstream's dialect; undefined where it is not known yet. */
  readonly spoken?: Protocol
}

type Fits = (candidate: Candidate, seat: ChannelSeat) => boolean

export class ReferenceCheck {
  readonly #parts: ReferenceCheckParts

  constructor(parts: ReferenceCheckParts) {
    this.#parts = parts
  }

  /** The route by those channels alone at which all lies that the call names. `isBrought`: with earlier turns. */
  near(route: Route, call: Call, { protocol, isBrought = false }: Nearing): Route {
    const threaded = nearThreads(route, call, protocol)
    const { accountId } = route.permit.caller
    const seats = threaded.ways.flatMap(way => way.seats)
    const named = this.#read(call, { protocol, accountId, seats })
    if (named === undefined) return threaded
    const pinned = narrowed(threaded, named.fits)
    if (pinned !== undefined) return pinned
    // What an earlier turn was told elsewhere is still the account's own.
    const loose = isBrought || named.isOptional ? narrowed(threaded, named.fitsLoosely) : undefined
    if (loose !== undefined) return loose
    throw named.refusal(threaded.ways[0]!)
  }

  /** The same for a count of tokens, of the channels of one model. */
  seatsFor(call: Call, { protocol, provider, accountId, seats }: Counted): readonly ChannelSeat[] {
    const named = this.#read(call, { protocol, accountId, seats })
    if (named === undefined) return seats
    const left = seats.filter(seat => named.fits({ provider }, seat))
    if (left.length > 0) return left
    throw named.refusal({ provider })
  }

  #read(call: Call, { protocol, accountId, seats }: Reading): Named | undefined {
    const json = protocol.takes === 'multipart' ? formValues(call.json) : call.json
    const isOwnHost = ownHosts(seats)
    const keeps = (reference: Reference): boolean => isKept(reference, call, isOwnHost)
    const before = referencesFound(json)
    throwIfMany(before, bounds.referencesFoundMax, 'things')
    const kept = before?.filter(keeps) ?? findReferences(json, keeps)
    if (kept.length === 0) return undefined
    throwIfMany(kept, bounds.referencesOfCallMax, 'kept things')
    const ids = new Set(kept.map(keyOf))
    return new Named(kept, {
      protocol,
      owned: this.#parts.references.owned(accountId, [...ids]),
      heirOf: id => this.#parts.catalogue.heirOf(id)?.id,
      isOpen: id => this.#parts.catalogue.ruleOf(id).foreignIds,
    })
  }
}

interface Nearing {
  readonly protocol: Protocol
  readonly isBrought?: boolean
}

interface Reading {
  readonly protocol: Protocol
  readonly accountId: number
  readonly seats: readonly ChannelSeat[]
}

interface Counted extends Reading {
  readonly provider: Provider
}

/** What can be sent in the request itself instead of its id. */
const SENDABLE: ReadonlySet<ReferenceKind> = new Set([
  ...(['audio', 'cached content', 'context', 'conversation', 'file', 'item', 'message', 'prompt', 'response'] as const),
])

/** What to do next. The same words for what another account has made and for what nobody has. */
function adviceFor(kind: ReferenceKind): string {
  if (kind === 'url') return 'is no public address: begin it with https://, or give the content itself as a data: URL.'
  const instead = SENDABLE.has(kind) ? 'send its content again' : 'leave it out'
  const written = kind === 'file' ? ' (an address begins with https://)' : ''
  const what = kind === 'other' ? 'thing' : kind
  return `names a kept ${what}: ${instead}${written}, or use a key of the account that made it. See docs/kept-state.md.`
}

const keyOf = ({ kind, id }: Reference): string => `${kind}:${id}`

/** The fields that are looked after where they are followed; any other one would pass to the upstream as it is. */
const FOLLOWED: ReadonlySet<unknown> = new Set(['previous_response_id', 'conversation'])

/** Not what is looked after elsewhere: earlier responses, drafts of tasks, and items that we named. */
function isKept({ kind, path, host }: Reference, call: Call, isOwnHost: (host: string) => boolean): boolean {
  if (call.state !== undefined && path.length === 1 && FOLLOWED.has(path[0])) return false
  if (kind === 'task' && isDraftOfTask(call, path)) return false
  return host === undefined || isOwnHost(host)
}

/** Whether a host is that of an upstream. Most calls never ask. */
function ownHosts(seats: readonly ChannelSeat[]): (host: string) => boolean {
  let hosts: ReadonlySet<string | undefined> | undefined
  return host => (hosts ??= new Set(seats.map(({ channel }) => URL.parse(channel.baseUrl)?.hostname))).has(host)
}

function throwIfMany(found: readonly Reference[] | undefined, most: number, what: string): void {
  if (found === undefined || found.length <= most) return
  throw invalid(pathText(found[0]!.path), `and others name more than ${most} ${what}`)
}

/** `content[1].draft_task`. */
const isDraftOfTask = ({ dialect }: Call, [field, , name, ...more]: Reference['path']): boolean =>
  dialect === 'ark-tasks' && field === 'content' && name === 'draft_task' && more.length === 0

interface NamedParts {
  readonly protocol: Protocol
  readonly owned: ReadonlyMap<string, string>
  heirOf(channelId: string): string | undefined
  isOpen(channelId: string): boolean
}

/** All that one call names, and who has it. */
class Named {
  readonly #kept: readonly Reference[]
  readonly #parts: NamedParts
  readonly isOptional: boolean

  constructor(kept: readonly Reference[], parts: NamedParts) {
    this.#kept = kept
    this.#parts = parts
    this.isOptional = kept.every(({ isOptional }) => isOptional)
  }

  readonly fits: Fits = (candidate, seat) =>
    this.#kept.every(reference => this.#isUnread(reference, candidate) || this.#isThere(reference, seat))

  /** It is the account's own, wherever it lies. */
  readonly fitsLoosely: Fits = (candidate, seat) =>
    this.#kept.every(
      reference =>
        this.#isUnread(reference, candidate) || this.#parts.owned.has(keyOf(reference)) || this.#parts.isOpen(seat.id),
    )

  refusal(candidate: Candidate): Refusal {
    const { owned } = this.#parts
    const read = this.#kept.filter(reference => !this.#isUnread(reference, candidate))
    const { kind, path } = read.find(reference => !owned.has(keyOf(reference))) ?? read[0] ?? this.#kept[0]!
    const field = pathText(path)
    if (kind === 'message' && path[0] === 'thread') return new Refusal('thread_unknown', 'a call', { param: field })
    const extras = { param: field, hint: `"${field}" ${adviceFor(kind)}` }
    return new Refusal(kind === 'file' ? 'file_unknown' : 'reference_unknown', kind, extras)
  }

  #isThere(reference: Reference, { id }: ChannelSeat): boolean {
    const { owned, heirOf, isOpen } = this.#parts
    const channel = owned.get(keyOf(reference))
    return channel === undefined ? isOpen(id) : heirOf(channel) === id
  }

  /** Only an upstream of the caller's dialect that keeps answers would look for it. */
  #isUnread({ isOptional, kind }: Reference, { provider, spoken }: Candidate): boolean {
    const { protocol } = this.#parts
    if (!isOptional) return false
    const isNative = spoken === undefined ? provider.speaks[protocol.name] !== undefined : spoken === protocol
    return !isNative || (kind === 'item' && !provider.can.keepsResponses)
  }
}

/** A thread lies at an upstream of the caller's dialect that keeps them. Its first message makes it. */
function nearThreads(route: Route, { json }: Call, protocol: Protocol): Route {
  if (protocol.name !== 'anthropic-messages' || !isObject(json.thread)) return route
  const near = narrowed(route, ({ provider, spoken }) => spoken === protocol && provider.can.keepsThreads)
  if (near === undefined) throw new Refusal('thread_unsupported', route.asked, { param: 'thread' })
  return near
}

/** For a call whose answer may give ids; undefined for most. */
export function namesMadeBy({ call, protocol, route }: Exchange): NamesMade | undefined {
  const { json } = call!
  const keeps = route!.ways.some(({ provider }) => provider.can.keepsResponses)
  const read = madeReader(protocol.name, keeps || call!.state === undefined ? json : { ...json, store: false })
  return read && new NamesMade(read)
}

export interface OwningParts {
  readonly references: Pick<References, 'own'>
  readonly log: Log
}

/** Settles, and notes whose the ids are that the answer gave: before its caller has the end of it. */
export function owningSettle(settle: Settle, { references, log }: OwningParts): Settle {
  async function own(exchange: Exchange): Promise<void> {
    const made = exchange.names?.made
    if (made === undefined) return
    try {
      await references.own(exchange.permit!.caller.accountId, made.ids, made.channel)
    } catch (fault) {
      const told = { request: exchange.requestId, fault: describeFault(fault) }
      log.error('ids of an answer are not kept: its account cannot use them', told)
    }
  }

  return async (exchange, ending) => {
    if (exchange.names === undefined) return await settle(exchange, ending)
    exchange.owned ??= own(exchange)
    await Promise.all([settle(exchange, ending), exchange.owned])
  }
}
