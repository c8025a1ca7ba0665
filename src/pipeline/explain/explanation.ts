// What a call would meet, as JSON: its own part for any key, and channels and what would be sent to them only for keys
// that may know.

import { bounds } from '../../base/bounds.ts'
import type { Refusal } from '../../base/errors.ts'
import { speakRefusal } from '../../base/errors.ts'
import { textId } from '../../base/ids.ts'
import { formatUsd, nanos } from '../../base/money.ts'
import { rateTexts } from '../../base/price.ts'
import { availableOf } from '../../billing/dry-ledger.ts'
import type { OutgoingRequest } from '../../http/outgoing.ts'
import type { ExplainedSeat } from '../../routing/choose.ts'
import { mayUseChannel } from '../../identity/key-rights.ts'
import type { AccountRow } from '../../store/account-reader.ts'
import type { Channel } from '../../upstreams/catalogue.ts'
import type { Caller, Exchange, Hold, Route, Way } from '../exchange.ts'
import { lossesOf } from '../exchange.ts'
import type { ExplainedLane, Lanes } from '../lanes.ts'
import type { ExplainedPick } from '../picking.ts'

/** What was seen on the way, as far as it went. */
export interface Notes {
  /** Of a key that is known. */
  tier?: string
  /** The same, where it may be told. */
  caller?: Caller
  picking?: ExplainedPick
  request?: { readonly channel: Channel; readonly request: OutgoingRequest }
  /** Addresses whose contents would have been fetched. */
  unfetched?: number
  /** It has been answered before, and would be answered so again. */
  replays?: { readonly status: number; readonly requestId: string }
  refusal?: Refusal
}

export interface ExplanationParts {
  readonly account: AccountRow | undefined
  readonly lanes: Pick<Lanes, 'explain'>
}

export function explanationOf(exchange: Exchange, notes: Notes, { account, lanes }: ExplanationParts): object {
  const { caller } = notes
  const { call, route, hold, protocol } = exchange
  return {
    object: 'weir.explanation',
    requestId: exchange.requestId,
    dialect: protocol.name,
    wouldAnswer: wouldAnswer(exchange, notes),
    key: caller && whoOf(caller, account),
    limits: exchange.permit && [exchange.permit.quota],
    model: call && { asked: call.model, ...(route && { resolved: route.ways.map(({ option }) => option.name) }) },
    prices: route?.ways.map(priceOf),
    funds: account && fundsOf(account),
    hold: hold && heldOf(hold),
    loss: route && lossesOf(exchange),
    ...(notes.unfetched && { mediaToFetch: notes.unfetched }),
    ...(caller?.explains && call && { routing: routingOf(exchange, notes, lanes) }),
  }
}

const usd = (amount: bigint): string => formatUsd(nanos(amount))

/** Null where it would be forwarded: what comes then, nobody knows. */
function wouldAnswer(exchange: Exchange, { refusal, replays }: Notes): object | null {
  if (replays !== undefined) return { status: replays.status, replays: replays.requestId }
  if (refusal === undefined) return null
  const spoken = speakRefusal(refusal, exchange.requestId)
  const { status } = exchange.protocol.writeError(spoken)
  const { code, message, param, retryAfterMs } = spoken
  const again = retryAfterMs !== undefined && { retryAfterMs: Math.ceil(retryAfterMs) }
  return { status, code, message, param, ...again }
}

function whoOf(caller: Caller, account: AccountRow | undefined): object {
  const { allows, denies, requires } = caller
  return {
    id: textId('key', caller.keyId),
    name: account?.keyName,
    account: textId('acc', caller.accountId),
    tier: caller.tier,
    clamps: caller.clamps,
    strict: caller.strict,
    keepsBodies: caller.keepsBodies,
    explains: caller.explains,
    may: { allows, denies, requires },
  }
}

function fundsOf(account: AccountRow): object {
  const available = availableOf(account)
  return { kind: account.kind, frozen: account.frozen, available: available === null ? null : usd(available) }
}

function priceOf({ option, price }: Way): object {
  if (price === undefined) return { model: option.name, free: true }
  const { version, perMille, serviceClass } = price
  return {
    model: option.name,
    version,
    /** USD for a million, before the multiplier. */
    rates: rateTexts(price.price.rates),
    cases: price.price.cases.length,
    multiplier: Number(perMille) / 1_000,
    serviceClass,
  }
}

function heldOf({ amount, size, cap, inputTokens }: Hold): object {
  const { inputTokensMax, outputTokensMax, thoughtTokensMax, choices, searchesMax, units } = size
  const tokens = { inputTokensMax, outputTokensMax, thoughtTokensMax, choices, searchesMax, units }
  return { usd: usd(amount), ...tokens, countedInputTokens: inputTokens, cap }
}

function routingOf({ call, protocol, route }: Exchange, notes: Notes, lanes: ExplanationParts['lanes']): object {
  const { picking, caller } = notes
  const explained = lanes.explain(call!.model, protocol)
  return {
    policy: route?.policy,
    affinity: picking && affinityOf(picking),
    picked: picking && pickedOf(picking),
    candidates: candidatesOf(explained, { route, seats: picking?.seats, caller: caller! }),
    upstream: notes.request && upstreamOf(notes.request),
  }
}

function affinityOf({ conversation, keptOn, choice }: ExplainedPick): object | null {
  if (conversation === undefined) return null
  const isKept = choice.kind === 'try' && choice.why === 'kept'
  return { conversation, keptOn: keptOn ?? null, state: keptOn === undefined ? 'new' : isKept ? 'kept' : 'moved' }
}

function pickedOf({ choice }: ExplainedPick): object {
  if (choice.kind !== 'try') return choice
  return { model: choice.option.name, channel: choice.seat.id, why: choice.why }
}

interface Candidates {
  readonly route: Route | undefined
  readonly seats: readonly ExplainedSeat[] | undefined
  readonly caller: Caller
}

/** Every channel of every model that the name stands for, with what keeps it from the call. */
function candidatesOf(explained: readonly ExplainedLane[], { route, seats, caller }: Candidates): readonly object[] {
  const found: object[] = []
  for (const { model, refused, channels } of explained) {
    const way = route?.ways.find(({ option }) => option.name === model)
    if (refused !== undefined && channels.length === 0) found.push({ model, channel: null, dropped: refused })
    for (const { id, tags } of channels) {
      const seat = seats?.find(one => one.model === model && one.channel === id)
      if (seat !== undefined) found.push({ ...seat, score: Math.round(seat.score * 1_000) / 1_000, tags })
      else found.push({ model, channel: id, dropped: droppedBefore({ refused, way, id, caller, tags }), tags })
    }
  }
  return found.slice(0, bounds.explainedChannelsMax)
}

interface Before {
  readonly refused: string | undefined
  readonly way: Way | undefined
  readonly id: string
  readonly caller: Caller
  readonly tags: readonly string[]
}

/** Why it did not even come into question; null where nobody has asked yet. */
function droppedBefore({ refused, way, id, caller, tags }: Before): string | null {
  if (refused !== undefined) return refused
  if (!mayUseChannel(caller, tags)) return 'tags_missing'
  if (way === undefined) return 'model_unfit'
  return way.seats.some(seat => seat.id === id) ? null : 'not_here'
}

/** As it would be sent, without what proves that it is us. */
function upstreamOf({ channel, request }: NonNullable<Notes['request']>): object {
  const clean = (text: string): string => channel.key.scrub(text)
  const { method = 'POST', url, headers, body } = request
  const isJson = headers['content-type'] === 'application/json'
  return {
    channel: channel.id,
    method,
    url: clean(url),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, clean(value)])),
    body: isJson ? textOf(body, clean) : null,
    bodyBytes: body.byteLength,
    bodyCut: body.byteLength > bounds.explainedBodyBytesMax,
  }
}

/** Its beginning. A secret that is cut in two is none that could be found, so that it is looked for before. */
function textOf(body: Uint8Array, clean: (text: string) => string): string {
  const shown = Buffer.from(body.buffer, body.byteOffset, Math.min(body.byteLength, 2 * bounds.explainedBodyBytesMax))
  return clean(shown.toString('utf8')).slice(0, bounds.explainedBodyBytesMax)
}
