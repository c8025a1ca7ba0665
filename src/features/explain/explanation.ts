// Writes the explanation of a call as JSON. Every key sees its own part; channels and upstream requests are shown only
// to keys that have the right.

import { bounds } from '../../base/bounds.ts'
import type { Refusal } from '../../base/errors.ts'
import { buildErrorReply } from '../../base/errors.ts'
import { textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import { rateTexts } from '../../base/money/price.ts'
import { availableOf } from '../../billing/dry-ledger.ts'
import type { OutgoingRequest } from '../../http/client/request.ts'
import { mayUseChannel } from '../../identity/key-rights.ts'
import type { Caller, Candidate, Exchange, Hold, Route } from '../../pipeline/exchange.ts'
import { capFor, lossesOf } from '../../pipeline/exchange.ts'
import type { ExplainedPick } from '../../pipeline/route/channel-picker.ts'
import type { ExplainedTarget, Targets } from '../../pipeline/route/targets.ts'
import type { KeyAccount } from '../../store/ledger/account-reader.ts'
import type { Channel } from '../../upstreams/channel.ts'

/** What the stages found, as far as the call came. */
export interface ExplanationNotes {
  /** The tier of a known key. */
  tier?: string
  /** Set where the key may get an explanation. */
  caller?: Caller
  /** Whether the explanation shows channels. Undefined: the key decides. */
  readonly showsRouting?: boolean
  /** Models that cannot serve the call, each with the code of its refusal. */
  readonly unusable: Map<string, string>
  /** The route as 30-route found it, and as it was before the hold. */
  foundRoute?: Route
  readableRoute?: Route
  pick?: ExplainedPick
  request?: { readonly channel: Channel; readonly request: OutgoingRequest }
  /** The number of addresses whose media would be fetched. */
  unfetched?: number
  /** The call would get the stored answer of this earlier call. */
  replays?: { readonly status: number; readonly requestId: string }
  refusal?: Refusal
}

export interface ExplanationParts {
  readonly account: KeyAccount | undefined
  readonly targets: Pick<Targets, 'explain'>
}

export function explanationOf(
  exchange: Exchange,
  notes: ExplanationNotes,
  { account, targets }: ExplanationParts,
): object {
  const { caller } = notes
  const { call, route, hold, attempt, protocol } = exchange
  return {
    object: 'weir.explanation',
    requestId: exchange.requestId,
    dialect: protocol.name,
    wouldAnswer: wouldAnswer(exchange, notes),
    key: caller && keyOf(caller, account),
    limits: exchange.permit?.quotas ?? notes.refusal?.extras.quotas,
    model: call && {
      requested: call.model,
      ...(route && { resolved: route.candidates.map(({ option }) => option.name) }),
    },
    prices: route?.candidates.map(priceOf),
    funds: account && fundsOf(account),
    hold: hold && heldOf(hold, attempt.candidate!),
    loss: route && lossesOf(exchange),
    ...(attempt.overrides && { overrides: attempt.overrides }),
    ...(notes.unfetched && { mediaToFetch: notes.unfetched }),
    ...((notes.showsRouting ?? caller?.explains) && call && { routing: routingOf(exchange, notes, targets) }),
  }
}

/** Null where the call would be forwarded: its answer is unknown. */
function wouldAnswer(exchange: Exchange, { refusal, replays }: ExplanationNotes): object | null {
  if (replays !== undefined) return { status: replays.status, replays: replays.requestId }
  if (refusal === undefined) return null
  const error = buildErrorReply(refusal, exchange.requestId)
  const { status } = exchange.protocol.writeError(error)
  const { code, message, param, retryAfterMs } = error
  const retry = retryAfterMs !== undefined && { retryAfterMs: Math.ceil(retryAfterMs) }
  return { status, code, message, param, hint: refusal.extras.hint?.data, ...retry }
}

function keyOf(caller: Caller, account: KeyAccount | undefined): object {
  const { allows, denies, requires } = caller
  return {
    id: textId('key', caller.keyId),
    name: account?.keyName,
    account: textId('acc', caller.accountId),
    tier: caller.tier,
    strictCap: caller.strictCap,
    strict: caller.strict,
    keepsBodies: caller.keepsBodies,
    explains: caller.explains,
    may: { allows, denies, requires },
  }
}

function fundsOf(account: KeyAccount): object {
  const available = availableOf(account)
  return { kind: account.kind, frozen: account.frozen, available: available === null ? null : usdText(available) }
}

function priceOf({ option, price }: Candidate): object {
  if (price === undefined) return { model: option.name, free: true }
  const { version, perMille, serviceClass } = price
  return {
    model: option.name,
    version,
    /** USD per million, before the multiplier. */
    rates: rateTexts(price.price.rates),
    cases: price.price.cases.length,
    multiplier: Number(perMille) / 1_000,
    serviceClass,
  }
}

function heldOf(hold: Hold, candidate: Candidate): object {
  const { amount, inputTokens, slices } = hold
  const { inputTokensMax, outputTokensMax, thoughtTokensMax, choices, searchesMax, units } = candidate.size
  const tokens = { inputTokensMax, outputTokensMax, thoughtTokensMax, choices, searchesMax, units }
  return { usd: usdText(amount), ...tokens, countedInputTokens: inputTokens, slices, cap: capFor(hold, candidate) }
}

function routingOf(
  { call, protocol, route }: Exchange,
  notes: ExplanationNotes,
  lanes: ExplanationParts['targets'],
): object {
  const { pick } = notes
  const explained = lanes.explain(call!.model, protocol)
  return {
    policy: route?.group.policy,
    affinity: pick && affinityOf(pick),
    picked: pick && pickedOf(pick),
    candidates: candidatesOf(explained, notes, route),
    upstream: notes.request && upstreamOf(notes.request),
  }
}

function affinityOf({ conversationKey: key, preferredChannel, choice }: ExplainedPick): object | null {
  if (key === undefined) return null
  const isKept = choice.kind === 'try' && choice.reason === 'kept'
  const state = preferredChannel === undefined ? 'new' : isKept ? 'kept' : 'moved'
  return { conversation: key, keptOn: preferredChannel ?? null, state }
}

function pickedOf({ choice }: ExplainedPick): object {
  if (choice.kind !== 'try') return choice
  return { model: choice.target.name, channel: choice.channel.id, reason: choice.reason }
}

/** Every channel of every model of the name, with the reason why it cannot take the call. */
function candidatesOf(
  targets: readonly ExplainedTarget[],
  notes: ExplanationNotes,
  route: Route | undefined,
): readonly object[] {
  const found: object[] = []
  for (const { model, refused, channels } of targets) {
    if (refused !== undefined) found.push({ model, channel: null, dropped: refused })
    for (const { id, tags } of channels) {
      const picked = notes.pick?.channels.find(one => one.model === model && one.channel === id)
      if (picked !== undefined) found.push({ ...picked, score: Math.round(picked.score * 1_000) / 1_000, tags })
      else found.push({ model, channel: id, dropped: droppedBefore(notes, { model, id, tags, route }), tags })
    }
  }
  return found.slice(0, bounds.explainedChannelsMax)
}

interface UnpickedChannel {
  readonly model: string
  /** The channel's id. */
  readonly id: string
  readonly tags: readonly string[]
  readonly route: Route | undefined
}

/** Why the channel was not considered; null where the call did not come so far. */
function droppedBefore(notes: ExplanationNotes, { model, id, tags, route }: UnpickedChannel): string | null {
  const hasModel = ({ candidates }: Route): boolean => candidates.some(({ option }) => option.name === model)
  const unfit = notes.unusable.get(model)
  if (unfit !== undefined) return unfit
  if (!mayUseChannel(notes.caller!, tags)) return 'tags_missing'
  if (notes.foundRoute === undefined) return notes.refusal?.code ?? null
  if (!hasModel(notes.foundRoute)) return 'model_unfit'
  if (notes.readableRoute !== undefined && !hasModel(notes.readableRoute)) return 'modality_unsupported'
  if (route !== undefined && !hasModel(route)) return 'not_affordable'
  const isInRoute = route?.candidates.some(
    ({ option, channels }) => option.name === model && channels.some(channel => channel.id === id),
  )
  return isInRoute ? null : 'kept_elsewhere'
}

/** The request as it would be sent, without its credential. */
function upstreamOf({ channel, request }: NonNullable<ExplanationNotes['request']>): object {
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

/** The beginning of the body. Secrets are removed before it is cut, because half a secret would not be found. */
function textOf(body: Uint8Array, clean: (text: string) => string): string {
  const shown = Buffer.from(body.buffer, body.byteOffset, Math.min(body.byteLength, 2 * bounds.explainedBodyBytesMax))
  return clean(shown.toString('utf8')).slice(0, bounds.explainedBodyBytesMax)
}
