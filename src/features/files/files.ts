// Serves files that callers upload to an upstream. A file is stored at one channel, whose credential all callers share,
// so the gateway itself remembers which account owns it. The list comes from that memory, and a call that names the
// file of another account is refused before anything goes upstream (references.ts).
//
// An upload is work for an upstream. So it is admitted like a call, by the rights of its key, the limits, the gate and
// the funds of its account, all before its body is read.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { plainNames } from '../../base/text/rule-names.ts'
import { availableOf } from '../../billing/dry-ledger.ts'
import type { BodyType } from '../../http/server/body.ts'
import type { RestrictedModel } from '../../identity/key-rights.ts'
import { checkModelAllowed, mayUseChannel } from '../../identity/key-rights.ts'
import type { Gate } from '../../limits/gate.ts'
import { GateLease } from '../../limits/gate.ts'
import type { LimitRate } from '../../pipeline/20-limit-rate.ts'
import { requestDemand } from '../../pipeline/20-limit-rate.ts'
import { scrubUpstreamError } from '../../pipeline/attempt/open-response.ts'
import type { QueryUpstream, UpstreamQuery, UpstreamQueryAnswer } from '../../pipeline/attempt/upstream-query.ts'
import { UpstreamQueryFailed } from '../../pipeline/attempt/upstream-query.ts'
import type { Caller, Permit } from '../../pipeline/exchange.ts'
import { addLimitHeaders } from '../../pipeline/reply/reply-headers.ts'
import type { Targets } from '../../pipeline/route/targets.ts'
import { ark } from '../../protocols/ark/dialect.ts'
import { findError, parseAnswerObject } from '../../protocols/passthrough-call.ts'
import { invalid } from '../../protocols/request/checks.ts'
import type { AccountReader } from '../../store/ledger/account-reader.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Provider } from '../../upstreams/provider.ts'
import type { FileRegistry } from '../../vault/vault.ts'

export interface FileServiceParts {
  readonly files: FileRegistry
  readonly catalogue: Pick<Catalogue, 'providers' | 'channelsOf' | 'findOrSuccessor' | 'rulesOf' | 'index'>
  readonly targets: Pick<Targets, 'modelTargets'>
  readonly limitRate: LimitRate
  readonly gate: Pick<Gate, 'admit'>
  readonly accounts: Pick<AccountReader, 'findByKey'>
  readonly queryUpstream: QueryUpstream
  dateMs(): number
}

/** A request about files. */
export interface FileRequest {
  readonly caller?: Caller
  readonly path: string
  header(name: string): string | undefined
  query(name: string): string | null
  readBody(type: BodyType): Promise<Buffer>
}

export interface FileReply {
  readonly status?: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

interface FileLocation {
  readonly provider: Provider
  readonly channel: Channel
}

const DIALECT = 'ark-files'
/** This header chooses the provider where several take files. */
const PROVIDER = 'x-weir-provider'
const PAGE_SIZE = 20
const PAGE_SIZE_MAX = 100
/** How many requests to upstreams one request for a list may cause; the next page continues. */
const LISTED_FILES_MAX = 20
const PARALLEL_REQUESTS = 8
/** An id becomes part of a URL. */
const ID = /^[A-Za-z0-9][\w.:-]{0,199}$/

export class FileService {
  readonly #parts: FileServiceParts
  /** The uploads that are running, by account. */
  readonly #uploads = new Map<number, { files: number; bytes: number }>()

  constructor(parts: FileServiceParts) {
    this.#parts = parts
  }

  async upload(request: FileRequest): Promise<FileReply> {
    const caller = callerOf(request)
    const entered = this.#parts.gate.admit(caller)
    if (!(entered instanceof GateLease)) throw entered
    try {
      const { location, permit } = await this.#admit(caller, request.header(PROVIDER))
      try {
        if (!location.provider.free) await this.#checkFunds(caller)
        const { body, ...reply } = await this.#uploadWithin(caller, request, location)
        const headers: Record<string, string> = {}
        addLimitHeaders(headers, permit.quotas, { dialect: ark, dateMs: this.#parts.dateMs() })
        return { ...reply, body, headers }
      } catch (fault) {
        throw withQuotas(fault, permit.quotas)
      } finally {
        permit.lease.release()
      }
    } finally {
      entered.release()
    }
  }

  /** An upload without a usable provider counts as a request, so that it is limited, too. */
  async #admit(caller: Caller, wanted: string | undefined): Promise<{ location: FileLocation; permit: Permit }> {
    const { limitRate } = this.#parts
    let location: FileLocation
    try {
      location = this.#locationFor(caller, wanted)
    } catch (fault) {
      const { quotas, lease } = await limitRate(caller, requestDemand)
      lease.release()
      throw withQuotas(fault, quotas)
    }
    const name = `${location.provider.id}/files`
    return { location, permit: await limitRate(caller, { model: name, names: plainNames(name), tokens: 0 }) }
  }

  /** Uploads the file, unless the account would have too many files. */
  async #uploadWithin({ accountId }: Caller, request: FileRequest, location: FileLocation): Promise<FileReply> {
    const running = this.#uploads.get(accountId) ?? { files: 0, bytes: 0 }
    this.#uploads.set(accountId, running)
    let bytes = 0
    running.files++
    try {
      await this.#checkQuota(accountId, running)
      const body = await request.readBody('multipart')
      bytes = body.byteLength
      running.bytes += bytes
      await this.#checkQuota(accountId, running)
      return await this.#put({ accountId, body, location }, request)
    } finally {
      running.files--
      running.bytes -= bytes
      if (running.files === 0) this.#uploads.delete(accountId)
    }
  }

  async #checkQuota(accountId: number, running: { readonly files: number; readonly bytes: number }): Promise<void> {
    // Counted before the files are read: an upload that ends meanwhile must not be missing in both.
    const { files: runningFiles, bytes: runningBytes } = running
    const { files, bytes } = await this.#parts.files.sum(accountId)
    const { filesOfAccountMax, filesOfAccountBytesMax } = bounds
    if (files + runningFiles <= filesOfAccountMax && bytes + runningBytes <= filesOfAccountBytesMax) return
    const hint = hintOf('call_files_max', { max: filesOfAccountMax, gib: filesOfAccountBytesMax / 1024 ** 3 })
    throw new Refusal('files_too_many', `account ${accountId}`, { hint })
  }

  /** An upload is free, but an account without funds could not use the file. */
  async #checkFunds({ keyId }: Caller): Promise<void> {
    const { accounts, dateMs } = this.#parts
    const account = await accounts.findByKey(keyId, dateMs())
    if (account === undefined) throw new Error(`no account of key ${keyId}`)
    if (account.frozen) throw new Refusal('account_frozen', 'an upload')
    const available = availableOf(account)
    if (available === null || available > 0n) return
    const isBudget = account.budgets.some(({ cap, spent, held }) => cap - spent - held <= 0n)
    const hint = hintOf('call_files_funds')
    throw new Refusal(isBudget ? 'budget_too_low' : 'balance_too_low', 'an upload', { hint })
  }

  async #put({ accountId, body, location }: Upload, request: FileRequest): Promise<FileReply> {
    const contentType = request.header('content-type') ?? ''
    if (!/^[\x20-\x7e]{1,4096}$/.test(contentType)) throw new Refusal('form_invalid', 'unusable content type')
    const answer = await this.#ask(location, { body, contentType })
    const { id } = parseAnswerObject(answer.body) ?? {}
    if (typeof id !== 'string' || !ID.test(id)) throw new Refusal('upstream_unusable', `${location.channel.id}: no id`)
    // A file without an owner could not be used by anybody, so it is deleted again.
    const at = { channel: location.channel.id, bytes: body.byteLength }
    const owned = this.#parts.files.add({ accountId, id }, at)
    await owned.catch(() => this.#ask(location, { method: 'DELETE', subpath: `/${id}` }).catch(() => {}))
    await owned
    return replyOf(answer)
  }

  async get(request: FileRequest): Promise<FileReply> {
    const { id, location } = await this.#find(request)
    return replyOf(await this.#ask(location, { method: 'GET', subpath: `/${id}` }))
  }

  async delete(request: FileRequest): Promise<FileReply> {
    const { accountId } = callerOf(request)
    const { id, location } = await this.#find(request)
    const answer = await this.#ask(location, { method: 'DELETE', subpath: `/${id}` }).catch(fault => {
      if (isUnknownFile(fault)) return undefined // its upstream has deleted it already
      throw fault
    })
    await this.#parts.files.remove({ accountId, id })
    return answer === undefined ? { body: JSON.stringify({ object: 'file', id, deleted: true }) } : replyOf(answer)
  }

  /** Lists what the upstream says about each file; files that it has deleted are left out. */
  async list(request: FileRequest): Promise<FileReply> {
    const { accountId } = callerOf(request)
    const limit = limitOf(request.query('limit'))
    const all = await this.#parts.files.list(accountId)
    const ordered = request.query('order') === 'asc' ? all.toReversed() : all
    const after = request.query('after')
    const rest = after === null ? ordered : ordered.slice(ordered.findIndex(({ id }) => id === after) + 1)
    const purpose = request.query('purpose')
    const found: { readonly id: string; readonly text: string }[] = []
    let next = 0
    // Each file takes one request to its upstream, also where the purpose does not match.
    while (next < rest.length && found.length < limit && next < LISTED_FILES_MAX) {
      const some = rest.slice(next, next + Math.min(PARALLEL_REQUESTS, limit - found.length, LISTED_FILES_MAX - next))
      next += some.length
      const texts = await Promise.all(some.map(({ id, channel }) => this.#fileText(id, channel, purpose)))
      texts.forEach((text, index) => text !== undefined && found.push({ id: some[index]!.id, text }))
    }
    const hasMore = next < rest.length
    const lastId = hasMore ? rest[next - 1]!.id : found.at(-1)?.id
    const ends = { first_id: found[0]?.id ?? null, last_id: lastId ?? null, has_more: hasMore }
    const [, ...tail] = JSON.stringify(ends)
    return { body: `{"object":"file","data":[${found.map(({ text }) => text).join(',')}],${tail.join('')}` }
  }

  /** The first provider of which the key may call a model, through a channel with all tags that the key requires. */
  #locationFor(caller: Caller, wanted: string | undefined): FileLocation {
    const { providers, channelsOf, rulesOf } = this.#parts.catalogue
    let forbidden: Refusal | undefined
    for (const provider of providers.values()) {
      if (wanted !== undefined && wanted !== provider.id) continue
      const channels = provider.speaks[DIALECT] === undefined ? [] : channelsOf(provider.id)
      const channel = channels.find(({ id }) => mayUseChannel(caller, rulesOf(id).tags))
      if (channel !== undefined && this.#mayCall(caller, provider)) return { provider, channel }
      const hint = hintOf('call_files_forbidden')
      if (channels.length > 0) forbidden = new Refusal('model_forbidden', provider.id, { hint })
    }
    if (forbidden !== undefined) throw forbidden
    throw new Refusal(wanted === undefined ? 'no_channel' : 'provider_unknown', 'no provider takes files')
  }

  /** Whether the key may call a model of the provider, by its own name or by an allowed alias. */
  #mayCall(caller: Caller, offering: Provider): boolean {
    const { id, models, openModels } = offering
    const { allows, accountAllows, requires } = caller
    const { index } = this.#parts.catalogue
    const own = [...models.keys()].map(model => ({
      requested: `${id}/${model}`,
      names: index.namesOf(offering, model),
    }))
    const patterns = [...(allows ?? []), ...(accountAllows ?? [])]
    const named = patterns.flatMap(pattern => {
      // A provider without a list of models accepts any name.
      const requested = pattern === '*' ? `${id}/x` : openModels ? pattern.replaceAll('*', 'x') : pattern
      const found = orUndefined(() => this.#parts.targets.modelTargets(requested, requires)) ?? []
      return found.flatMap(({ provider, names }) => (provider.id === id ? [{ requested, names }] : []))
    })
    const isOpen = allows === null && accountAllows === null && openModels
    const isAllowed = (model: RestrictedModel): boolean =>
      orUndefined(() => checkModelAllowed(caller, model) ?? true) === true
    return isOpen || own.some(isAllowed) || named.some(isAllowed)
  }

  #locationOf(channelId: string): FileLocation | undefined {
    const { providers, findOrSuccessor } = this.#parts.catalogue
    const channel = findOrSuccessor(channelId)
    return channel && { provider: providers.get(channel.providerId)!, channel }
  }

  async #find(request: FileRequest): Promise<{ readonly id: string; readonly location: FileLocation }> {
    const id = request.path.slice(request.path.lastIndexOf('/') + 1)
    const owner = { accountId: callerOf(request).accountId, id }
    const channel = ID.test(id) ? await this.#parts.files.channelOf(owner) : undefined
    if (channel === undefined) throw unknownFile(id)
    const location = this.#locationOf(channel)
    if (location === undefined) throw new Refusal('no_channel', channel)
    return { id, location }
  }

  async #fileText(id: string, channel: string, purpose: string | null): Promise<string | undefined> {
    const location = this.#locationOf(channel)
    if (location === undefined) return undefined
    const { body } = await this.#ask(location, { method: 'GET', subpath: `/${id}` }).catch(fault => {
      if (isUnknownFile(fault)) return { body: Buffer.alloc(0) }
      throw fault
    })
    const json = parseAnswerObject(body)
    return json === undefined || (purpose !== null && json.purpose !== purpose) ? undefined : body.toString()
  }

  async #ask(location: FileLocation, query: Partial<UpstreamQuery>): Promise<UpstreamQueryAnswer> {
    const [bytesMax, msMax] = [bounds.errorBodyBytesMax, bounds.firstContentMsMax]
    const question: UpstreamQuery = { ...location, dialect: DIALECT, bytesMax, msMax, ...query }
    const answer = await this.#parts.queryUpstream(question).catch(fault => {
      throw fault instanceof UpstreamQueryFailed ? fault.refusal : fault
    })
    if (answer.status < 200 || answer.status > 299) throw refusalBy(answer, location)
    const isEmptyEnd = query.method === 'DELETE' && answer.body.length === 0
    if (isEmptyEnd || typeof parseAnswerObject(answer.body)?.id === 'string') return answer
    throw new Refusal('upstream_unusable', `${location.channel.id}: no file`)
  }
}

interface Upload {
  readonly accountId: number
  readonly body: Buffer
  readonly location: FileLocation
}

/** Adds what is left of the limits to a refusal. */
function withQuotas(fault: unknown, quotas: Permit['quotas']): unknown {
  if (!(fault instanceof Refusal)) return fault
  return new Refusal(fault.code, fault.message.slice(fault.code.length + 2), { ...fault.extras, quotas })
}

/** Returns undefined where `find` throws a refusal. */
function orUndefined<Value>(find: () => Value): Value | undefined {
  try {
    return find()
  } catch (fault) {
    if (fault instanceof Refusal) return undefined
    throw fault
  }
}

const replyOf = ({ status, body }: UpstreamQueryAnswer): FileReply => ({ status, body: body.toString() })

const unknownFile = (detail: string, extras = {}): Refusal =>
  new Refusal('file_unknown', detail.slice(0, bounds.storedIdCharsMax), extras)

const isUnknownFile = (fault: unknown): boolean => fault instanceof Refusal && fault.code === 'file_unknown'

function callerOf({ caller }: FileRequest): Caller {
  if (caller === undefined) throw new Error('files need a caller with a key')
  return caller
}

/** The caller never gets an error about the channel's credential. */
function refusalBy({ status, body }: UpstreamQueryAnswer, { channel }: FileLocation): Refusal {
  if (status === 404) return unknownFile(channel.id)
  if (status === 429) return new Refusal('upstream_rate_limited', channel.id)
  if (status < 400 || status > 499 || [401, 402, 403, 407].includes(status)) {
    return new Refusal('upstream_unusable', `${channel.id}: ${status}`)
  }
  const json = parseAnswerObject(body)
  const words = { message: `The upstream answered with status ${status}.`, ...(json && findError(json)), status }
  return new Refusal('upstream_refused', `${channel.id}: ${status}`, { upstream: scrubUpstreamError(words, channel) })
}

function limitOf(text: string | null): number {
  if (text === null || text === '') return PAGE_SIZE
  const limit = /^[1-9]\d{0,2}$/.test(text) ? Number(text) : Number.NaN
  if (!(limit <= PAGE_SIZE_MAX)) throw invalid('limit', `must be an integer from 1 to ${PAGE_SIZE_MAX}`)
  return limit
}
