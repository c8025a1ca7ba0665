// Usage → cost, by who pays for this ending.

import { noTraits } from '../base/money/model-traits.ts'
import type { Unit, Units, Usage } from '../base/money/usage.ts'
import { noUsage, outputTokens, units } from '../base/money/usage.ts'
import { billOf, estimateTokens, hasFee } from '../billing/price.ts'
import type { ChargedUsage } from '../billing/who-pays.ts'
import { chargedUsage } from '../billing/who-pays.ts'
import type { Call } from '../protocols/neutral/call.ts'
import { BYTES_PER_PICTURE, pictureTokensDefault } from '../protocols/usage/media-bytes.ts'
import type { Ending, Exchange } from './exchange.ts'
import { lossesOf, runsTools } from './exchange.ts'
import type { Cost } from './settle/call-cost.ts'
import { hiddenTokens } from './settle/hidden-reasoning.ts'
import { withUses } from './settle/tool-uses.ts'
import { keptWaiting } from './settle/usage-meter.ts'

export function cost(exchange: Exchange, ending: Ending): Cost {
  const { meter, attempts } = exchange
  const charged = chargedUsage({
    outcome: ending.outcome,
    forwarded: meter.forwarded,
    content: meter.outputBytes > 0,
    fellBack: attempts.length > 1,
    reported: meter.usage,
    stale: meter.outputBytes > meter.reportedBytes,
    delivered: meter.delivered || ending.shown === true,
    tools: runsTools(exchange),
    slow: meter.waitedMs > 0 && keptWaiting(meter, exchange.endedMs ?? exchange.timings.nowMs()),
    hidden: known => hiddenTokens(exchange, ending, known),
    estimate: () => estimateOf(exchange, meter.outputBytes),
  })
  const usage = charged.source === 'none' ? charged.usage : countedUsage(charged, exchange)
  // A class that the upstream was never asked for was not served.
  const served = lossesOf(exchange).includes('service_tier') ? 'default' : meter.serviceClass
  return { ...charged, usage, ...billOf(usage, exchange.route?.price, served) }
}

/** With all that is billed one by one. Where the rule charges nothing, nothing of that is charged either. */
function countedUsage(charged: ChargedUsage, exchange: Exchange): Usage {
  const counted = withUnits(withSearch(charged, exchange), exchange)
  return withUses(counted, exchange, charged.source !== 'estimated')
}

/** Not every dialect tells how often a provider searched. Asked to, it searched at least once if it answered. */
function withSearch({ usage, source }: ChargedUsage, exchange: Exchange): Usage {
  const { call, route } = exchange
  if (source === 'reported' && route?.spoken.tellsSearches) return usage
  const isLost = lossesOf(exchange).includes('web_search')
  const asked = (call?.searchesMax ?? 0) > 0 && !isLost && !route?.withoutSearch
  if (!asked || usage.searches !== undefined || outputTokens(usage) === 0) return usage
  return { ...usage, searches: Math.max(1, exchange.meter.uses.searches ?? 0) }
}

/** What the answer does not count is counted by the request. What is made, and not read, only if it came. */
function withUnits(usage: Usage, { call, meter }: Exchange): Usage {
  if (call?.units === undefined && call?.unitsGuess === undefined) return usage
  const counted: Partial<Record<Unit, number>> = {}
  for (const unit of units) {
    const most = call?.units?.[unit]
    const count = call?.unitsGuess?.[unit] ?? most
    if (count === undefined || usage[unit] !== undefined) continue
    const spoken = unit === 'seconds' ? secondsOf(meter.outputBytes, call) : 0
    const held = Math.min(Math.max(count, spoken), most ?? count)
    // Words that came back were spoken, however short the file claims to be.
    const least = spoken === 0 ? 0 : Math.ceil(meter.outputBytes / SECOND_TEXT_BYTES_MAX)
    if (unit !== 'images' || meter.outputBytes > 0) counted[unit] = Math.max(held, least)
  }
  return { ...usage, ...counted }
}

/** Nobody speaks more than 25 characters in a second; a character has up to three bytes in the scripts of today. */
const SECOND_TEXT_BYTES_MAX = 75

function secondsOf(outputBytes: number, call: Call | undefined): number {
  return call?.secondTextBytes === undefined ? 0 : Math.ceil(outputBytes / call.secondTextBytes)
}

/** What a call used when it had written so much, as far as we can tell ourselves, and never more than was held for. */
export function estimateOf(exchange: Exchange, outputBytes: number): Usage {
  const { call, hold, route } = exchange
  // What is billed one by one is not guessed in tokens as well.
  if (route?.price !== undefined && hasFee(route.price.price, call?.units)) return noUsage
  const input = estimateTokens(call?.inputBytes ?? 0)
  const written = outputBytes > 0 ? writtenTokens(exchange, outputBytes) : {}
  if (hold === undefined) return { input, ...within(written, Infinity) }
  const { inputTokensMax, outputTokensMax, thoughtTokensMax = 0, choices } = hold.size
  return {
    input: Math.min(hold.inputTokens ?? input, inputTokensMax),
    ...within(written, (outputTokensMax + thoughtTokensMax) * choices),
  }
}

type Tokens = Readonly<Partial<Record<'output' | 'outputImage' | 'outputAudio', number>>>

/** By what each of them is, since pictures and sound have other rates than text. */
function writtenTokens({ call, meter, route }: Exchange, outputBytes: number): Tokens {
  const { outputTokensGuess: guess, outputGuessKind = 'output' } = call ?? {}
  if (guess !== undefined) return { [outputGuessKind]: guess }
  const drawn = Math.min(meter.pictureBytes, outputBytes)
  const spoken = Math.min(meter.soundBytes, outputBytes - drawn)
  // A picture that has a fee is not billed in tokens as well.
  const isPaidApart = route?.price !== undefined && hasFee(route.price.price, imagesOf(call))
  const { pictureTokens = pictureTokensDefault } = route?.model?.traits ?? route?.provider?.traits ?? noTraits
  return {
    output: estimateTokens(outputBytes - drawn - spoken),
    outputImage: isPaidApart ? 0 : Math.ceil((drawn / BYTES_PER_PICTURE) * pictureTokens),
    outputAudio: estimateTokens(spoken),
  }
}

const imagesOf = (call: Call | undefined): Units =>
  call?.services?.some(({ unit }) => unit === 'images') ? { images: 1 } : {}

/** No more of all of them together than this; text gives way first. */
function within({ output = 0, outputImage = 0, outputAudio = 0 }: Tokens, most: number): Tokens & { output: number } {
  const drawn = Math.min(outputImage, most)
  const spoken = Math.min(outputAudio, most - drawn)
  return {
    output: Math.min(output, most - drawn - spoken),
    ...(drawn > 0 && { outputImage: drawn }),
    ...(spoken > 0 && { outputAudio: spoken }),
  }
}
