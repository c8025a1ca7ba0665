// Files that callers put at an upstream, and whose they are. A file lies at one channel, under the credential of all
// who call through it, so that only what we remember of it makes it one account's: its list is made of that, and a call
// that names another's file is refused before anything goes upstream.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import type { BodyType } from '../http/body.ts'
import { invalid } from '../protocols/checks.ts'
import { parseAnswer, saidError } from '../protocols/side-call.ts'
import type { Catalogue, Channel } from '../upstreams/catalogue.ts'
import type { Provider } from '../upstreams/provider.ts'
import type { Files } from '../vault/vault.ts'
import type { Caller } from './exchange.ts'
import { scrubbed } from './opening.ts'
import type { AskUpstream, Question, WholeAnswer } from './whole-answer.ts'
import { Unanswered } from './whole-answer.ts'

export interface FileServiceParts {
  readonly files: Files
  readonly catalogue: Pick<Catalogue, 'providers' | 'channelsOf' | 'heirOf'>
  readonly askUpstream: AskUpstream
}

/** What a caller asks of files. */
export interface FileAsk {
  readonly caller?: Caller
  readonly path: string
  header(name: string): string | undefined
  query(name: string): string | null
  readBody(type: BodyType): Promise<Buffer>
}

export interface FileReply {
  readonly status?: number
  readonly body: string
}

interface Place {
  readonly provider: Provider
  readonly channel: Channel
}

const DIALECT = 'ark-files'
/** Chosen by a header where several providers take files. */
const PROVIDER = 'x-weir-provider'
const PAGE = 20
const PAGE_MAX = 100
const AT_ONCE = 8
/** It becomes a part of an address. */
const ID = /^[A-Za-z0-9][\w.:-]{0,199}$/

export class FileService {
  readonly #parts: FileServiceParts

  constructor(parts: FileServiceParts) {
    this.#parts = parts
  }

  async upload(ask: FileAsk): Promise<FileReply> {
    const { accountId } = callerOf(ask)
    const place = this.#placeFor(ask.header(PROVIDER))
    const body = await ask.readBody('multipart')
    const contentType = ask.header('content-type') ?? ''
    if (!/^[\x20-\x7e]{1,4096}$/.test(contentType)) throw new Refusal('form_invalid', 'its type is not usable')
    const answer = await this.#ask(place, { body, contentType })
    const { id } = parseAnswer(answer.body) ?? {}
    if (typeof id !== 'string' || !ID.test(id)) throw new Refusal('upstream_unusable', `${place.channel.id}: no id`)
    // Of nobody, it would be there for nobody: then better not at all.
    const owned = this.#parts.files.own({ accountId, id }, place.channel.id)
    await owned.catch(() => this.#ask(place, { method: 'DELETE', below: `/${id}` }).catch(() => {}))
    await owned
    return told(answer)
  }

  async get(ask: FileAsk): Promise<FileReply> {
    const { id, place } = this.#find(ask)
    return told(await this.#ask(place, { method: 'GET', below: `/${id}` }))
  }

  async delete(ask: FileAsk): Promise<FileReply> {
    const { accountId } = callerOf(ask)
    const { id, place } = this.#find(ask)
    const answer = await this.#ask(place, { method: 'DELETE', below: `/${id}` })
    await this.#parts.files.disown({ accountId, id })
    return told(answer)
  }

  /** What its upstream says of each; one that it has forgotten is left out. */
  async list(ask: FileAsk): Promise<FileReply> {
    const { accountId } = callerOf(ask)
    const limit = limitOf(ask.query('limit'))
    const all = this.#parts.files.list(accountId)
    const ordered = ask.query('order') === 'asc' ? all.toReversed() : all
    const after = ask.query('after')
    const rest = after === null ? ordered : ordered.slice(ordered.findIndex(({ id }) => id === after) + 1)
    const purpose = ask.query('purpose')
    const found: { readonly id: string; readonly text: string }[] = []
    let next = 0
    while (next < rest.length && found.length < limit) {
      const some = rest.slice(next, next + Math.min(AT_ONCE, limit - found.length))
      next += some.length
      const texts = await Promise.all(some.map(({ id, channel }) => this.#wordsOf(id, channel, purpose)))
      texts.forEach((text, index) => text !== undefined && found.push({ id: some[index]!.id, text }))
    }
    const ends = { first_id: found[0]?.id ?? null, last_id: found.at(-1)?.id ?? null, has_more: next < rest.length }
    const [, ...tail] = JSON.stringify(ends)
    return { body: `{"object":"file","data":[${found.map(({ text }) => text).join(',')}],${tail.join('')}` }
  }

  #placeFor(wanted: string | undefined): Place {
    const { providers, channelsOf } = this.#parts.catalogue
    for (const provider of providers.values()) {
      const [channel] = channelsOf(provider.id)
      if (wanted !== undefined && wanted !== provider.id) continue
      if (channel !== undefined && provider.speaks[DIALECT] !== undefined) return { provider, channel }
    }
    throw new Refusal(wanted === undefined ? 'no_channel' : 'provider_unknown', 'no provider takes files')
  }

  #placeOf(channelId: string): Place | undefined {
    const { providers, heirOf } = this.#parts.catalogue
    const channel = heirOf(channelId)
    return channel && { provider: providers.get(channel.providerId)!, channel }
  }

  #find(ask: FileAsk): { readonly id: string; readonly place: Place } {
    const id = ask.path.slice(ask.path.lastIndexOf('/') + 1)
    const channel = ID.test(id) ? this.#parts.files.owns({ accountId: callerOf(ask).accountId, id }) : undefined
    if (channel === undefined) throw unknown(id)
    const place = this.#placeOf(channel)
    if (place === undefined) throw new Refusal('no_channel', channel)
    return { id, place }
  }

  async #wordsOf(id: string, channel: string, purpose: string | null): Promise<string | undefined> {
    const place = this.#placeOf(channel)
    if (place === undefined) return undefined
    const { body } = await this.#ask(place, { method: 'GET', below: `/${id}` }).catch(fault => {
      if (fault instanceof Refusal && fault.code === 'file_unknown') return { body: Buffer.alloc(0) }
      throw fault
    })
    const json = parseAnswer(body)
    return json === undefined || (purpose !== null && json.purpose !== purpose) ? undefined : body.toString()
  }

  async #ask(place: Place, asked: Partial<Question>): Promise<WholeAnswer> {
    const [bytesMax, msMax] = [bounds.errorBodyBytesMax, bounds.firstContentMsMax]
    const question: Question = { ...place, dialect: DIALECT, bytesMax, msMax, ...asked }
    const answer = await this.#parts.askUpstream(question).catch(fault => {
      throw fault instanceof Unanswered ? fault.refusal : fault
    })
    if (answer.status >= 200 && answer.status <= 299) return answer
    throw refusalBy(answer, place)
  }
}

const told = ({ status, body }: WholeAnswer): FileReply => ({ status, body: body.toString() })

const unknown = (detail: string, extras = {}): Refusal =>
  new Refusal('file_unknown', detail.slice(0, bounds.keptIdCharsMax), extras)

function callerOf({ caller }: FileAsk): Caller {
  if (caller === undefined) throw new Error('files are asked for with a key')
  return caller
}

/** What is said of our credential is not the caller's to read. */
function refusalBy({ status, body }: WholeAnswer, { channel }: Place): Refusal {
  if (status === 404) return unknown(channel.id)
  if (status === 429) return new Refusal('upstream_rate_limited', channel.id)
  if (status < 400 || status > 499 || [401, 402, 403, 407].includes(status)) {
    return new Refusal('upstream_unusable', `${channel.id}: ${status}`)
  }
  const json = parseAnswer(body)
  const words = { message: `The upstream answered with status ${status}.`, ...(json && saidError(json)), status }
  return new Refusal('upstream_refused', `${channel.id}: ${status}`, { upstream: scrubbed(words, channel) })
}

function limitOf(text: string | null): number {
  if (text === null || text === '') return PAGE
  const limit = /^[1-9]\d{0,2}$/.test(text) ? Number(text) : Number.NaN
  if (!(limit <= PAGE_MAX)) throw invalid('limit', `must be an integer from 1 to ${PAGE_MAX}`)
  return limit
}
