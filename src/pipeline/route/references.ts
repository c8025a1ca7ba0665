// Checks the references of a call: ids that name something which an upstream stores. Such an id is sent only to the
// channel that has the thing, and only if the caller's account created it through this gateway, or if the operator
// allows all callers of a channel to use any id there. All other callers are told that the id is unknown.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import { parseFormValues } from '../../protocols/passthrough-call.ts'
import type { Protocol } from '../../protocols/protocol.ts'
import { invalid } from '../../protocols/request/checks.ts'
import { buildCreatedIdsReader } from '../../protocols/request/created-references.ts'
import { isObject } from '../../protocols/request/json-body.ts'
import type { Reference, ReferenceKind } from '../../protocols/request/references.ts'
import {
  findReferences,
  formatReferencePath,
  getCachedReferences,
  plainHost,
} from '../../protocols/request/references.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Provider } from '../../upstreams/provider.ts'
import type { ReferenceRegistry } from '../../vault/vault.ts'
import { narrowRoute } from '../30-route.ts'
import type { Exchange, Route } from '../exchange.ts'
import type { Settle } from '../settle/settle.ts'
import { CreatedReferences } from './created-references.ts'
import type { ModelTarget, Target, TargetChannel } from './targets.ts'

export interface ReferenceCheckParts {
  readonly references: Pick<ReferenceRegistry, 'channelsOf'>
  readonly catalogue: Pick<Catalogue, 'findOrSuccessor' | 'rulesOf'>
}

/** Where a call may be sent. The upstream's dialect is undefined where it is not known yet. */
type Upstream = Pick<Target, 'provider'> & Partial<Pick<Target, 'upstreamProtocol'>>

type Fits = (upstream: Upstream, channel: TargetChannel) => boolean

export class ReferenceCheck {
  readonly #parts: ReferenceCheckParts

  constructor(parts: ReferenceCheckParts) {
    this.#parts = parts
  }

  /**
   * The route through those channels only that have everything the call names. `isBrought`: with earlier turns. Returns
   * a promise only for a call that names something.
   */
  narrow(route: Route, call: Call, { protocol, isBrought = false }: NearOptions): Route | Promise<Route> {
    const threaded = narrowToThreads(route, call, protocol)
    const { accountId } = route.permit.caller
    const reading = this.#read(call, { protocol, accountId, targets: threaded.candidates })
    return reading === undefined ? threaded : this.#narrowTo(threaded, reading, isBrought)
  }

  async #narrowTo(threaded: Route, reading: Promise<CallReferences>, isBrought: boolean): Promise<Route> {
    const references = await reading
    const pinned = narrowRoute(threaded, references.fits)
    if (pinned !== undefined) return pinned
    // Ids of earlier turns that another channel created still belong to the account.
    const loose = isBrought || references.isOptional ? narrowRoute(threaded, references.fitsLoosely) : undefined
    if (loose !== undefined) return loose
    throw references.refusal(threaded.candidates[0]!)
  }

  /** The channels of one model that a token count may use. */
  async channelsFor(
    call: Call,
    { protocol, provider, accountId, channels }: Counted,
  ): Promise<readonly TargetChannel[]> {
    const references = await this.#read(call, { protocol, accountId, targets: [{ channels }] })
    if (references === undefined) return channels
    const left = channels.filter(channel => references.fits({ provider }, channel))
    if (left.length > 0) return left
    throw references.refusal({ provider })
  }

  #read(call: Call, { protocol, accountId, targets }: Reading): Promise<CallReferences> | undefined {
    const json = protocol.requestType === 'multipart' ? parseFormValues(call.json) : call.json
    const isOwnHost = ownHosts(targets)
    const keeps = (reference: Reference): boolean => isStored(reference, call, isOwnHost)
    const found = getCachedReferences(json)
    throwIfTooMany(found, bounds.referencesFoundMax, 'objects')
    const stored = found?.filter(keeps) ?? findReferences(json, keeps)
    if (stored.length === 0) return undefined
    throwIfTooMany(stored, bounds.referencesOfCallMax, 'stored objects')
    return this.#readOwned(stored, protocol, accountId)
  }

  async #readOwned(stored: readonly Reference[], protocol: Protocol, accountId: number): Promise<CallReferences> {
    const ids = new Set(stored.map(keyOf))
    return new CallReferences(stored, {
      protocol,
      owned: await this.#parts.references.channelsOf(accountId, [...ids]),
      heirOf: id => this.#parts.catalogue.findOrSuccessor(id)?.id,
      isOpen: id => this.#parts.catalogue.rulesOf(id).foreignIds,
    })
  }
}

interface NearOptions {
  readonly protocol: Protocol
  readonly isBrought?: boolean
}

interface Reading {
  readonly protocol: Protocol
  readonly accountId: number
  readonly targets: readonly Pick<ModelTarget, 'channels'>[]
}

interface Counted extends Omit<Reading, 'targets'> {
  readonly channels: readonly TargetChannel[]
  readonly provider: Provider
}

/** Kinds whose content can be sent in the request instead of the id. */
const SENDABLE: ReadonlySet<ReferenceKind> = new Set([
  'audio',
  'cached content',
  'context',
  'conversation',
  'file',
  'item',
  'message',
  'prompt',
  'response',
])

/** What the caller can do. The text is the same for ids of other accounts and for ids that nobody has. */
function adviceFor(field: string, kind: ReferenceKind): Hint {
  if (kind === 'url') return hintOf('call_stored_url', { field })
  const resend = kind === 'file' ? 'call_stored_resend_file' : 'call_stored_resend'
  const instead = hintOf(SENDABLE.has(kind) ? resend : 'call_stored_omit')
  return hintOf('call_stored', { field, kind: kind === 'other' ? 'object' : kind, instead })
}

const keyOf = ({ kind, id }: Reference): string => `${kind}:${id}`

/** These fields are checked where previous responses are found; in other calls they would reach the upstream. */
const CHECKED_ELSEWHERE: ReadonlySet<unknown> = new Set(['previous_response_id', 'conversation'])

/** False for what is checked elsewhere: previous responses, drafts of tasks, and items that the gateway named. */
function isStored({ kind, path, host }: Reference, call: Call, isOwnHost: (host: string) => boolean): boolean {
  if (call.state !== undefined && path.length === 1 && CHECKED_ELSEWHERE.has(path[0])) return false
  if (kind === 'task' && isDraftOfTask(call, path)) return false
  return host === undefined || isOwnHost(host)
}

/** Whether a host belongs to an upstream. The set is built at the first question, because most calls never ask. */
function ownHosts(targets: Reading['targets']): (host: string) => boolean {
  let hosts: ReadonlySet<string | undefined> | undefined
  return host => {
    const hostOf = ({ channel }: TargetChannel): string | undefined => {
      const url = URL.parse(channel.baseUrl)
      return url === null ? undefined : plainHost(url)
    }
    hosts ??= new Set(targets.flatMap(({ channels }) => channels.map(hostOf)))
    return hosts.has(host)
  }
}

function throwIfTooMany(found: readonly Reference[] | undefined, most: number, what: string): void {
  if (found === undefined || found.length <= most) return
  throw invalid(formatReferencePath(found[0]!.path), `and others name more than ${most} ${what}`)
}

/** `content[1].draft_task`. */
const isDraftOfTask = ({ dialect }: Call, [field, , name, ...more]: Reference['path']): boolean =>
  dialect === 'ark-tasks' && field === 'content' && name === 'draft_task' && more.length === 0

interface CallReferencesParts {
  readonly protocol: Protocol
  readonly owned: ReadonlyMap<string, string>
  heirOf(channelId: string): string | undefined
  isOpen(channelId: string): boolean
}

/** The references of one call, and which channels have them. */
class CallReferences {
  readonly #stored: readonly Reference[]
  readonly #parts: CallReferencesParts
  readonly isOptional: boolean

  constructor(stored: readonly Reference[], parts: CallReferencesParts) {
    this.#stored = stored
    this.#parts = parts
    this.isOptional = stored.every(({ isOptional }) => isOptional)
  }

  readonly fits: Fits = (upstream, channel) =>
    this.#stored.every(reference => this.#isIgnored(reference, upstream) || this.#isStoredAt(reference, channel))

  /** Every reference belongs to the account, wherever it is stored. */
  readonly fitsLoosely: Fits = (upstream, channel) =>
    this.#stored.every(
      reference =>
        this.#isIgnored(reference, upstream) ||
        this.#parts.owned.has(keyOf(reference)) ||
        this.#parts.isOpen(channel.id),
    )

  refusal(upstream: Upstream): Refusal {
    const { owned } = this.#parts
    const read = this.#stored.filter(reference => !this.#isIgnored(reference, upstream))
    const { kind, path } = read.find(reference => !owned.has(keyOf(reference))) ?? read[0] ?? this.#stored[0]!
    const field = formatReferencePath(path)
    if (kind === 'message' && path[0] === 'thread') return new Refusal('thread_unknown', 'a call', { param: field })
    const extras = { param: field, hint: adviceFor(field, kind) }
    return new Refusal(kind === 'file' ? 'file_unknown' : 'reference_unknown', kind, extras)
  }

  #isStoredAt(reference: Reference, { id }: TargetChannel): boolean {
    const { owned, heirOf, isOpen } = this.#parts
    const channel = owned.get(keyOf(reference))
    return channel === undefined ? isOpen(id) : heirOf(channel) === id
  }

  /** Only an upstream that speaks the caller's dialect and stores answers would look an optional id up. */
  #isIgnored({ isOptional, kind }: Reference, { provider, upstreamProtocol }: Upstream): boolean {
    const { protocol } = this.#parts
    if (kind === 'session' && provider.can.labelsSessions) return true
    if (!isOptional) return false
    const isNative =
      upstreamProtocol === undefined ? provider.speaks[protocol.name] !== undefined : upstreamProtocol === protocol
    return !isNative || (kind === 'item' && !provider.can.keepsResponses)
  }
}

/** A thread needs an upstream that speaks the caller's dialect and stores threads. Its first message creates it. */
function narrowToThreads(route: Route, { json }: Call, protocol: Protocol): Route {
  if (protocol.name !== 'anthropic-messages' || !isObject(json.thread)) return route
  const near = narrowRoute(
    route,
    ({ provider, upstreamProtocol }) => upstreamProtocol === protocol && provider.can.keepsThreads,
  )
  if (near === undefined) throw new Refusal('thread_unsupported', route.group.requestedModel, { param: 'thread' })
  return near
}

/** For a call whose answer may create ids; undefined for most calls. */
export function createdReferencesOf({ call, protocol, route }: Exchange): CreatedReferences | undefined {
  const { json } = call!
  const isStored = call!.state === undefined || route!.candidates.some(({ provider }) => provider.can.keepsResponses)
  const read = buildCreatedIdsReader(protocol.name, isStored ? json : { ...json, store: false })
  return read && new CreatedReferences(read)
}

export interface SettleWithReferencesParts {
  readonly references: Pick<ReferenceRegistry, 'add'>
  readonly log: Log
}

/** Settles, and writes the created ids as the account's own, before the caller gets the end of the answer. */
export function settleWithReferences(settle: Settle, { references, log }: SettleWithReferencesParts): Settle {
  async function own(exchange: Exchange): Promise<void> {
    const made = exchange.storage.createdReferences?.created
    if (made === undefined) return
    try {
      await references.add(exchange.permit!.caller.accountId, made.ids, made.channel)
    } catch (fault) {
      const fields = { request: exchange.requestId, fault: describeFault(fault) }
      log.error('the ids that an answer created were not stored: the account cannot use them', fields)
    }
  }

  return (exchange, ending) => {
    if (exchange.storage.createdReferences === undefined) return settle(exchange, ending)
    exchange.storage.referencesOwned ??= own(exchange)
    return Promise.all([settle(exchange, ending), exchange.storage.referencesOwned]).then(() => {})
  }
}
