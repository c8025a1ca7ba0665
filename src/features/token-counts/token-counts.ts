// Counts the tokens of a request: by the provider where it can, else locally, corrected by what was learned about the
// model. Nothing is generated or billed. If the provider fails, the local count is used.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { describeFault } from '../../base/log.ts'
import { Stop } from '../../base/stop.ts'
import type { Send } from '../../http/client/request.ts'
import { checkModel } from '../../identity/key-rights.ts'
import type { LimitRate } from '../../pipeline/20-limit-rate.ts'
import { counting as aboutCounting } from '../../pipeline/20-limit-rate.ts'
import { passedHeaders } from '../../pipeline/attempt/forwarded-headers.ts'
import { addressesIn } from '../../pipeline/attempt/media.ts'
import type { Caller, Permit } from '../../pipeline/exchange.ts'
import { addQuotas } from '../../pipeline/reply/reply-headers.ts'
import type { ReferenceCheck } from '../../pipeline/route/references.ts'
import type { ChannelSeat, Lanes } from '../../pipeline/route/targets.ts'
import { fitting } from '../../pipeline/route/usable.ts'
import type { Conversation } from '../../protocols/neutral/conversation.ts'
import type { Asked } from '../../protocols/protocol.ts'
import type { CountDialect } from '../../protocols/token-counts/token-count.ts'
import { countDialectNamed } from '../../protocols/token-counts/token-counts.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Following } from '../stored-responses/previous-response.ts'
import type { CountReply, OwnCountParts } from './local-count.ts'
import { buildOwnCounts } from './local-count.ts'
import type { Counting } from './provider-count.ts'
import { askForCount, countPath, countRequest } from './provider-count.ts'

export interface CountAsk extends Asked {
  readonly caller: Caller
  readBody(): Promise<Buffer>
}

export type CountCall = (ask: CountAsk, dialect: CountDialect) => Promise<CountReply>

export interface CountingParts extends OwnCountParts {
  readonly lanes: Pick<Lanes, 'mouthsOf'>
  readonly limitRate: LimitRate
  readonly following: Pick<Following, 'whole'>
  readonly references: Pick<ReferenceCheck, 'seatsFor'>
  readonly send: Send
  onFailed(channelId: string, detail: string): void
  dateMs(): number
}

export function buildCounting(parts: CountingParts): CountCall {
  const { lanes, limitRate, following, references, send } = parts
  const ownCounts = buildOwnCounts(parts)

  async function askChannels(counting: CountedCall, upstreamDialect: CountDialect): Promise<Buffer | undefined> {
    const stop = new Stop<Error>()
    const timer = setTimeout(() => stop.stop(new Error('the count takes too long')), bounds.countAskedMsMax)
    try {
      for (const { channel } of counting.channels.slice(0, bounds.attemptsPerCallMax)) {
        const found = await countOnChannel(counting, upstreamDialect, { channel, stop })
        if (found !== undefined || stop.reason !== undefined) return found
      }
      return undefined
    } finally {
      clearTimeout(timer)
    }
  }

  async function countOnChannel(counting: Counting, upstreamDialect: CountDialect, { channel, stop }: CountChannel) {
    try {
      return await stop.during(
        askForCount(send, await countRequest(counting, upstreamDialect, channel), { upstreamDialect, channel, stop }),
      )
    } catch (fault) {
      // A caller gets the provider's error only if its own bytes were sent, and not for a translation.
      if (fault instanceof Refusal && upstreamDialect === counting.dialect) throw fault
      parts.onFailed(channel.id, describeFault(fault))
      return undefined
    }
  }

  return async function countCall(ask, dialect) {
    // The limits are checked before the body is read, so that a refused body counts as well.
    const permit = limitRate(ask.caller, aboutCounting)
    try {
      return await countWith(permit, ask, dialect)
    } finally {
      permit.lease.release()
    }
  }

  async function countWith(permit: Permit, ask: CountAsk, dialect: CountDialect): Promise<CountReply> {
    const { caller } = ask
    const read = dialect.readCall(await ask.readBody(), ask)
    // A key may not count with a model that it may not call, because a count may show the text to a provider.
    const [target] = fitting(lanes.mouthsOf(read.model, caller.requires), found => {
      checkModel(caller, read.model, found.name)
      return found
    })
    const { provider, model } = target!
    const call = await following.whole(read, permit, dialect)
    const about = { protocol: dialect.protocol, provider, accountId: caller.accountId }
    const channels = references.seatsFor(call, { ...about, channels: target!.seats })
    let conversation: Conversation | undefined
    const said = (): Conversation | undefined => (conversation ??= dialect.codec?.readConversation(call))
    const forwarded = passedHeaders(dialect.protocol, ask) ?? {}
    const counting: CountedCall = { dialect, provider, model, channels, call, passed: forwarded, said }
    const { body, headers } = (await byProvider(counting)) ?? (await ownCounts(counting))
    const replyHeaders: Record<string, string> = { ...headers }
    addQuotas(replyHeaders, permit.quotas, { dialect: dialect.protocol, dateMs: parts.dateMs() })
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
interface CountedCall extends Counting {
  readonly channels: readonly ChannelSeat[]
}

interface CountChannel {
  readonly channel: Channel
  readonly stop: Stop<Error>
}

/** The caller's dialect if the provider counts in it, else the first one that can express the whole request. */
function dialectForCount({ dialect, provider, model, call, said }: Counting): CountDialect | undefined {
  const served = model.speaks ?? Object.keys(provider.speaks)
  const { name } = dialect.protocol
  if (served.includes(name) && countPath(provider, dialect) !== undefined) return dialect
  if (dialect.codec === undefined || call.bodyBytes > bounds.countTranslatedBytesMax) return undefined
  const other = served.map(countDialectNamed).find(one => one?.writeConversation && countPath(provider, one))
  // Media are not fetched for a count; such a request is estimated locally.
  return other?.codec !== undefined && addressesIn(said()!, other.codec).size === 0 ? other : undefined
}
