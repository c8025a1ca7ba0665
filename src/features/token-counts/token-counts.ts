// Counts the tokens of a request: by the provider where it can, else locally, corrected by what was learned about the
// model. Nothing is generated or billed. If the provider fails, the local count is used.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { describeFault } from '../../base/log.ts'
import { checkModelAllowed } from '../../identity/key-rights.ts'
import type { LimitRate } from '../../pipeline/20-limit-rate.ts'
import { countDemand as aboutCounting } from '../../pipeline/20-limit-rate.ts'
import { forwardedHeaders } from '../../pipeline/attempt/forwarded-headers.ts'
import { mediaUrls } from '../../pipeline/attempt/media.ts'
import type { SendUpstreamQuery } from '../../pipeline/attempt/upstream-query.ts'
import type { Caller, Permit } from '../../pipeline/exchange.ts'
import { addLimitHeaders } from '../../pipeline/reply/reply-headers.ts'
import type { ReferenceCheck } from '../../pipeline/route/references.ts'
import type { TargetChannel, Targets } from '../../pipeline/route/targets.ts'
import { selectUsable } from '../../pipeline/route/usable.ts'
import type { Conversation } from '../../protocols/neutral/conversation.ts'
import type { RequestHead } from '../../protocols/protocol.ts'
import type { TokenCountDialect } from '../../protocols/token-counts/count-dialect.ts'
import { findTokenCountDialect } from '../../protocols/token-counts/count-dialects.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { PreviousResponses } from '../stored-responses/previous-response.ts'
import type { CountReply, LocalCountParts } from './local-count.ts'
import { buildLocalCount } from './local-count.ts'
import type { CountInput } from './provider-count.ts'
import { buildCountRequest, countPath, readCountAnswer } from './provider-count.ts'

export interface CountApiRequest extends RequestHead {
  readonly caller: Caller
  readBody(): Promise<Buffer>
}

export type CountCall = (request: CountApiRequest, dialect: TokenCountDialect) => Promise<CountReply>

export interface CountCallParts extends LocalCountParts {
  readonly targets: Pick<Targets, 'modelTargets'>
  readonly limitRate: LimitRate
  readonly previousResponses: Pick<PreviousResponses, 'withAllTurns'>
  readonly references: Pick<ReferenceCheck, 'channelsFor'>
  readonly sendQuery: SendUpstreamQuery
  nowMs(): number
  onFailed(channelId: string, detail: string): void
  dateMs(): number
}

export function buildCountCall(parts: CountCallParts): CountCall {
  const { targets, limitRate, previousResponses, references, sendQuery, nowMs } = parts
  const ownCounts = buildLocalCount(parts)

  /** All channels together have the time of one count. */
  async function askChannels(counting: CountedCall, upstreamDialect: TokenCountDialect): Promise<Buffer | undefined> {
    const untilMs = nowMs() + bounds.providerCountMsMax
    for (const { channel } of counting.channels.slice(0, bounds.attemptsPerCallMax)) {
      const msMax = untilMs - nowMs()
      if (msMax <= 0) return undefined
      const found = await countOnChannel(counting, upstreamDialect, channel, msMax)
      if (found !== undefined) return found
    }
    return undefined
  }

  async function countOnChannel(
    counting: CountInput,
    upstreamDialect: TokenCountDialect,
    channel: Channel,
    msMax: number,
  ): Promise<Buffer | undefined> {
    const { provider } = counting
    const dialect = upstreamDialect.protocol.name
    try {
      const request = buildCountRequest(counting, upstreamDialect, channel)
      const target = { provider, channel, dialect, msMax, bytesMax: bounds.answerBytesMax }
      return readCountAnswer(await sendQuery(target, request), upstreamDialect, channel)
    } catch (fault) {
      // A caller gets the provider's error only if its own bytes were sent, and not for a translation.
      if (fault instanceof Refusal && upstreamDialect === counting.dialect) throw fault
      parts.onFailed(channel.id, describeFault(fault))
      return undefined
    }
  }

  return async function countCall(request, dialect) {
    // The limits are checked before the body is read, so that a refused body counts as well.
    const permit = await limitRate(request.caller, aboutCounting)
    try {
      return await countWith(permit, request, dialect)
    } finally {
      permit.lease.release()
    }
  }

  async function countWith(permit: Permit, request: CountApiRequest, dialect: TokenCountDialect): Promise<CountReply> {
    const { caller } = request
    const read = dialect.readCall(await request.readBody(), request)
    // A key may not count with a model that it may not call, because a count may show the text to a provider.
    const [target] = selectUsable(targets.modelTargets(read.model, caller.requires), found => {
      checkModelAllowed(caller, { requested: read.model, names: found.names })
      return found
    })
    const { provider, model } = target!
    const call = await previousResponses.withAllTurns(read, permit, dialect)
    const about = { protocol: dialect.protocol, provider, accountId: caller.accountId }
    const channels = await references.channelsFor(call, { ...about, channels: target!.channels })
    let conversation: Conversation | undefined
    const readConversation = (): Conversation | undefined => (conversation ??= dialect.codec?.readConversation(call))
    const forwarded = forwardedHeaders(dialect.protocol, request) ?? {}
    const counting: CountedCall = {
      dialect,
      provider,
      model,
      channels,
      call,
      forwardedHeaders: forwarded,
      conversation: readConversation,
    }
    const { body, headers } = (await byProvider(counting)) ?? (await ownCounts(counting))
    const replyHeaders: Record<string, string> = { ...headers }
    addLimitHeaders(replyHeaders, permit.quotas, { dialect: dialect.protocol, dateMs: parts.dateMs() })
    return { body, headers: replyHeaders }
  }

  async function byProvider(counting: CountedCall): Promise<CountReply | undefined> {
    const upstreamDialect = dialectForCount(counting)
    const answer = upstreamDialect && (await askChannels(counting, upstreamDialect))
    if (answer === undefined) return undefined
    const { dialect, call } = counting
    const body =
      upstreamDialect === dialect
        ? answer.toString('utf8')
        : dialect.writeCounts([upstreamDialect!.readCount(answer)!], call)
    return { body, headers: { 'X-Weir-Count': 'provider' } }
  }
}

/** A request to count, with the channels that may be asked. */
interface CountedCall extends CountInput {
  readonly channels: readonly TargetChannel[]
}

/** The caller's dialect if the provider counts in it, else the first one that can express the whole request. */
function dialectForCount({ dialect, provider, model, call, conversation }: CountInput): TokenCountDialect | undefined {
  const served = model.speaks ?? Object.keys(provider.speaks)
  const { name } = dialect.protocol
  if (served.includes(name) && countPath(provider, dialect) !== undefined) return dialect
  if (dialect.codec === undefined || call.bodyBytes > bounds.countTranslatedBytesMax) return undefined
  const other = served.map(findTokenCountDialect).find(one => one?.writeConversation && countPath(provider, one))
  // Media are not fetched for a count; such a request is estimated locally.
  return other?.codec !== undefined && mediaUrls(conversation()!, other.codec).size === 0 ? other : undefined
}
