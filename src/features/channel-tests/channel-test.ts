// Tests one channel with a real but tiny call, for its operator. Nobody is billed, and a failed test does not count
// against the channel. A successful test closes the channel's circuit breaker, as any answer does.

import { bounds } from '../../base/bounds.ts'
import type { Deadlines } from '../../base/deadlines.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import type { PriceBook } from '../../billing/price-book.ts'
import type { OutgoingRequest } from '../../http/client/request.ts'
import { pathFor } from '../../pipeline/40-adapt.ts'
import { scrubUpstreamError } from '../../pipeline/attempt/open-response.ts'
import { originOf } from '../../pipeline/attempt/translation.ts'
import type { SendUpstreamQuery, UpstreamQueryAnswer } from '../../pipeline/attempt/upstream-query.ts'
import { UpstreamQueryFailed } from '../../pipeline/attempt/upstream-query.ts'
import { Losses } from '../../protocols/neutral/losses.ts'
import type { Codec, Protocol } from '../../protocols/protocol.ts'
import { findProtocol } from '../../protocols/protocols.ts'
import type { AttemptVerdict } from '../../routing/attempts.ts'
import { judgeError } from '../../routing/attempts.ts'
import type { Health } from '../../routing/health/health.ts'
import type { Channel } from '../../upstreams/channel.ts'
import { overrideFields } from '../../upstreams/overrides.ts'
import type { Model, Provider } from '../../upstreams/provider.ts'
import { fixedHeaders } from '../../upstreams/request-signature.ts'

export interface ChannelTestResult {
  readonly model: string
  readonly dialect: string
  readonly status: number | null
  readonly verdict: AttemptVerdict
  readonly headMs: number | null
  readonly totalMs: number
  readonly sent: OutgoingRequest
  readonly overrides: readonly string[]
  readonly received: { readonly contentType: string; readonly body: string } | null
  readonly fault: string | null
  /** The fault as a hint, unless it is a text of the upstream or of the network. */
  readonly faultHint?: Hint
}

export interface ChannelTestParts {
  readonly askWhole: SendUpstreamQuery
  readonly deadlines: Deadlines
  healthOf(channel: Channel): Health | undefined
}

export interface ChannelTestInput {
  readonly provider: Provider
  readonly channel: Channel
  readonly model: Model
  readonly upstreamProtocol: Protocol & { readonly codec: Codec }
}

export type TestChannel = (input: ChannelTestInput) => Promise<ChannelTestResult>

/** The dialect for a conversation with the model; undefined if the model has no such dialect. */
export function conversationProtocol(
  provider: Provider,
  model: Model,
): ChannelTestInput['upstreamProtocol'] | undefined {
  const served = model.speaks ?? Object.keys(provider.speaks)
  const protocol = served.map(findProtocol).find(one => one?.codec !== undefined)
  return protocol as ChannelTestInput['upstreamProtocol'] | undefined
}

/** The cheapest model that takes conversations; models without a price come last. */
export function cheapestModel(provider: Provider, prices: Pick<PriceBook, 'current'>): Model | undefined {
  const costOf = ({ id }: Model): number => {
    const rates = prices.current(`${provider.id}/${id}`)?.price.rates
    return rates === undefined ? Infinity : 3 * Number(rates.input) + Number(rates.output)
  }
  const usable = [...provider.models.values()].filter(model => conversationProtocol(provider, model) !== undefined)
  return usable.sort((one, other) => costOf(one) - costOf(other) || 0)[0]
}

const PROMPT = 'Say: ok'
const OUTPUT_TOKENS_MAX = 16

export function buildTestChannel({ askWhole, deadlines, healthOf }: ChannelTestParts): TestChannel {
  return async function tryChannel({ provider, channel, model, upstreamProtocol }) {
    const sinceMs = deadlines.nowMs()
    const { request, overrides } = buildRequest({ provider, channel, model, upstreamProtocol })
    const name = `${provider.id}/${model.id}`
    const channelUse = healthOf(channel)?.begin(0, sinceMs, { accountId: 0, model: name })
    const tested = { model: name, dialect: upstreamProtocol.name, sent: request, overrides }
    try {
      const msMax = Math.min(channel.timeouts?.totalMs ?? bounds.channelTestMsMax, bounds.channelTestMsMax)
      const asking = { provider, channel, dialect: upstreamProtocol.name, bytesMax: bounds.answerBytesMax, msMax }
      const answer = await askWhole(asking, request)
      const nowMs = deadlines.nowMs()
      const judged = judge(answer, { upstreamProtocol, channel })
      if (judged.verdict === 'answered') channelUse?.noteAnswer({}, nowMs)
      channelUse?.end({ verdict: judged.verdict === 'answered' ? 'answered' : 'left', tokens: 0 }, nowMs)
      const times = { headMs: Math.round(answer.headAtMs - sinceMs), totalMs: Math.round(nowMs - sinceMs) }
      return { ...tested, ...times, status: answer.status, ...judged }
    } catch (fault) {
      const nowMs = deadlines.nowMs()
      channelUse?.end({ verdict: 'left', tokens: 0 }, nowMs)
      if (!(fault instanceof UpstreamQueryFailed)) throw fault
      const isSlow = fault.refusal.code === 'upstream_too_slow'
      const message = scrubUpstreamError({ status: 0, message: fault.message }, channel).message
      const nothing = { status: null, received: null, headMs: null, totalMs: Math.round(nowMs - sinceMs) }
      return { ...tested, ...nothing, verdict: isSlow ? 'too_slow' : 'broken', fault: message }
    }
  }
}

/** The request as a call of this dialect would send it, without the signature. */
function buildRequest({ provider, channel, model, upstreamProtocol }: ChannelTestInput) {
  const text = upstreamProtocol.codec.writeConversation(
    {
      messages: [{ role: 'user', parts: [{ kind: 'text', text: PROMPT }] }],
      tools: [],
      lostFields: [],
      settings: { stream: false, outputTokensMax: OUTPUT_TOKENS_MAX },
    },
    {
      model: model.id,
      traits: model.traits ?? provider.traits,
      outputTokensMax: OUTPUT_TOKENS_MAX,
      cap: undefined,
      capField: provider.can.outputCap,
      askUsage: false,
      origin: originOf(channel.id, model.id),
      media: new Map(),
      notes: { losses: new Losses(), renamed: new Map() },
    },
  )
  const fields = channel.overrides?.fields.get(upstreamProtocol.name)
  const changed = fields && overrideFields(Buffer.from(text), fields)
  const request: OutgoingRequest = {
    url: channel.baseUrl + pathFor(provider.speaks[upstreamProtocol.name]!.plain, model.id),
    headers: {
      'content-type': 'application/json',
      'accept': 'application/json',
      ...fixedHeaders,
      ...upstreamProtocol.headers,
    },
    body: changed?.body ?? Buffer.from(text),
  }
  const overrides = [...(changed?.names ?? []), ...Object.keys(channel.overrides?.headers ?? {})]
  return { request, overrides }
}

type JudgedChannel = Pick<ChannelTestInput, 'upstreamProtocol' | 'channel'>

function judge({ status, contentType, body }: UpstreamQueryAnswer, { upstreamProtocol, channel }: JudgedChannel) {
  const clean = (text: string): string => scrubUpstreamError({ status, message: text }, channel).message
  const shown = body.toString('utf8', 0, bounds.errorBodyBytesMax)
  const received = { contentType: clean(contentType), body: clean(shown) }
  const reading = upstreamProtocol.readAnswer(body)
  const isGood = status >= 200 && status <= 299
  if (isGood && reading !== undefined && reading.error === undefined) {
    return { verdict: 'answered' as const, received, fault: null }
  }
  if (isGood) {
    const hint = hintOf('test_unreadable')
    return { verdict: 'broken' as const, received, fault: hint.text, faultHint: hint }
  }
  const error = reading?.error
  const words = { message: `status ${status}`, ...error, status }
  return { verdict: judgeError(words, error !== undefined), received, fault: clean(words.message) }
}
