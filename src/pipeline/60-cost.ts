// Usage → cost: prices what the call used, by the rule for its outcome.

import { noTraits } from '../base/money/model-traits.ts'
import type { Unit, Units, Usage } from '../base/money/usage.ts'
import { noUsage, outputBuckets, outputTokens, units } from '../base/money/usage.ts'
import type { CallPriceOrFree } from '../billing/price.ts'
import { computeBill, estimateTokens, hasFee } from '../billing/price.ts'
import type { ChargedUsage, FinishedCall, Outcome } from '../billing/who-pays.ts'
import { decideCharge } from '../billing/who-pays.ts'
import { mediaTokensMax } from '../protocols/media/media-tokens.ts'
import type { Call } from '../protocols/neutral/call.ts'
import { BYTES_PER_IMAGE, imageTokensDefault, TRANSCRIBED_TOKENS_PER_SECOND } from '../protocols/usage/media-bytes.ts'
import type { CallEnding, Exchange } from './exchange.ts'
import { lossesOf, outputLimit, runsTools } from './exchange.ts'
import { withHourWrites } from './settle/cache-writes.ts'
import type { Cost } from './settle/call-cost.ts'
import { hiddenTokens, rejectedTokens, unreportedInput, wasReaderSlow } from './settle/hidden-reasoning.ts'
import { withToolUses } from './settle/tool-uses.ts'
import type { UsageMeter } from './settle/usage-meter.ts'

export function cost(exchange: Exchange, ending: CallEnding): Cost {
  const { attempts } = exchange
  const { meter, candidate } = exchange.attempt
  // A piece that the funds do not cover is withheld. Its provider bills it, and so it is charged as far as it is reserved.
  const isLimited = ending.outcome === 'out_of_funds' && candidate !== undefined
  const images = imagesMade(exchange, ending)
  const finished: FinishedCall = {
    outcome: ending.outcome,
    isForwarded: meter.forwarded,
    hasContent: meter.outputBytes > 0,
    fellBack: attempts.length > 1,
    reported: isLimited ? limitOutput(meter.usage, outputLimit(exchange, candidate)) : meter.usage,
    // The report of a stream of images covers those that have arrived.
    isReportOutdated: meter.outputBytes > meter.reportedBytes || (images ?? 0) > (meter.uses.images ?? 0),
    isDelivered: meter.delivered || ending.contentDelivered === true,
    hasProviderTools: runsTools(exchange),
    wasReaderSlow: wasReaderSlow(exchange),
    hasInputFee: () => candidate?.price !== undefined && hasFee(candidate.price.price, inputUnits(exchange.call)),
    unreportedInput: () => unreportedInput(exchange, ending),
    estimateHidden: known => Math.max(hiddenTokens(exchange, ending, known), rejectedTokens(exchange, known)),
    estimate: () => estimateUsage(exchange, meter.outputBytes, images),
  }
  return priceCall(finished, priceOf(exchange), meter.serviceClass, charged => countedUsage(charged, exchange, images))
}

/** Images are made for the answer; the other units are in the request. */
function inputUnits(call: Call | undefined): Units {
  const { images: _output, ...input } = call?.units ?? {}
  return input
}

/** A service class that the translation dropped was not requested, whether it is dearer or cheaper. */
function priceOf(exchange: Exchange): CallPriceOrFree {
  const price = exchange.attempt.candidate?.price
  const isDropped = price?.serviceClass !== undefined && lossesOf(exchange).includes('service_tier')
  return isDropped ? { ...price, serviceClass: undefined } : price
}

/** Leaves out the output tokens beyond the limit: text first, then reasoning. */
function limitOutput(usage: Usage | undefined, most: number): Usage | undefined {
  let excess = usage === undefined ? 0 : outputTokens(usage) - most
  if (usage === undefined || excess <= 0) return usage
  const limited: Partial<Record<(typeof outputBuckets)[number], number>> = {}
  for (const bucket of outputBuckets) {
    const less = Math.min(excess, usage[bucket] ?? 0)
    if (less > 0) limited[bucket] = usage[bucket]! - less
    excess -= less
  }
  return { ...usage, ...limited }
}

/** Prices a finished call or task. `count` adds what is billed per unit to the charged tokens. */
export function priceCall(
  finished: FinishedCall,
  price: CallPriceOrFree,
  servedClass: string | undefined,
  count: (charged: ChargedUsage) => Usage,
): Cost {
  const charged = decideCharge(finished)
  // Where the rule charges nothing, no units are charged either.
  const usage = charged.source === 'none' ? charged.usage : count(charged)
  const { amount, lines } = computeBill(usage, price, servedClass)
  return { usage, source: charged.source, rule: charged.rule, amount, lines }
}

function countedUsage(charged: ChargedUsage, exchange: Exchange, images: number | undefined): Usage {
  const { call, attempt } = exchange
  const usage = withAudioInput(withMediaOutput(withHourWrites(charged.usage, exchange), exchange), exchange)
  const searched = withSearch({ ...charged, usage }, exchange)
  const counted = call === undefined ? searched : withUnits(searched, call, attempt.meter.outputBytes, images)
  return withToolUses(counted, exchange, charged.source !== 'estimated')
}

/**
 * Searches that the provider has named count, whatever else it reports. Not every dialect reports searches: a provider
 * that had to search and answered has searched at least once.
 */
function withSearch({ usage, source }: ChargedUsage, exchange: Exchange): Usage {
  const { call, attempt } = exchange
  const { candidate, meter } = attempt
  const named = meter.queries?.size ?? 0
  if (named > 0) return { ...usage, searches: Math.max(named, usage.searches ?? 0) }
  if (source === 'reported' && candidate?.upstreamProtocol.tellsSearches) return usage
  const isLost = lossesOf(exchange).includes('web_search')
  const isRequested = (call?.searchesMax ?? 0) > 0 && !isLost && !candidate?.withoutSearch
  if (!isRequested || usage.searches !== undefined || outputTokens(usage) === 0) return usage
  return { ...usage, searches: Math.max(1, meter.uses.searches ?? 0) }
}

/**
 * A report may not say how many output tokens are images or audio, although the answer has some. Then as many as an
 * estimate counts are, because these kinds have other rates than text.
 */
function withMediaOutput(usage: Usage, exchange: Exchange): Usage {
  const { meter } = exchange.attempt
  if (meter.pictureBytes + meter.soundBytes === 0) return usage
  if (usage.outputImage !== undefined || usage.outputAudio !== undefined) return usage
  const { outputImage = 0, outputAudio = 0 } = outputTokensOf(exchange, meter.outputBytes)
  // Images of a tool are not among the tokens of the model.
  const pictures = imagesOf(exchange.call).images === undefined ? outputImage : 0
  // Tokens that only the total of a report includes count as reasoning.
  const kind = usage.output > 0 ? 'output' : 'reasoning'
  const tokens = usage[kind] ?? 0
  const { output: text, ...media } = limitTokens({ outputImage: pictures, outputAudio, output: tokens }, tokens)
  return { ...usage, [kind]: text, ...media }
}

/** The same for audio in the request. */
function withAudioInput(usage: Usage, exchange: Exchange): Usage {
  if (inputMedia.some(bucket => usage[bucket] !== undefined)) return usage
  const { audio } = estimateInput(exchange)
  // What was read from a cache may be audio. A report that says so does not divide its input by kind.
  const inputAudio = Math.min(Math.max(0, audio - (usage.cacheRead ?? 0)), usage.input)
  return inputAudio === 0 ? usage : { ...usage, input: usage.input - inputAudio, inputAudio }
}

const inputMedia = ['inputAudio', 'cacheReadAudio', 'inputImage', 'cacheReadImage'] as const

/** Endings after which the upstream does not go on with the call. */
const workEnded: ReadonlySet<Outcome> = new Set<Outcome>(['completed', 'refused', 'gateway_fault'])

/**
 * How many images a call has made, if its answer shows that. If the call was ended early, images that may have been
 * unfinished then count as well, because the provider may bill them: the next one, or all if they are made at once. No
 * more count than were requested.
 */
function imagesMade({ call, attempt: { meter } }: Exchange, { outcome }: CallEnding): number | undefined {
  const { images } = meter.uses
  if (images === undefined || call?.imageOrder === undefined) return undefined
  if (call.imageOrder === 'at_once') return workEnded.has(outcome) || !call.stream ? images : call.units?.images
  return workEnded.has(outcome) || meter.finished ? images : images + 1
}

type CountedCall = Pick<Call, 'units' | 'unitsGuess' | 'secondTextBytes'>

/**
 * Takes units that the answer does not report from the request. Images count only if output arrived. `images` is their
 * number if the answer shows it.
 */
export function withUnits(usage: Usage, call: CountedCall, outputBytes: number, images?: number): Usage {
  if (call.units === undefined && call.unitsGuess === undefined) return usage
  const counted: Partial<Record<Unit, number>> = {}
  for (const unit of units) {
    const most = call.units?.[unit]
    const count = unit === 'images' && images !== undefined ? images : (call.unitsGuess?.[unit] ?? most)
    // An answer that was worth a charge has used the unit, so a report of 0 says nothing.
    if (count === undefined || (usage[unit] ?? 0) > 0) continue
    const seconds = unit === 'seconds' ? speechSeconds(outputBytes, call) : 0
    const held = Math.min(Math.max(count, seconds), most ?? count)
    // Text in the answer proves that speech was read, however short the file claims to be.
    const least = seconds === 0 ? 0 : Math.ceil(outputBytes / SECOND_TEXT_BYTES_MAX)
    if (unit !== 'images' || outputBytes > 0) counted[unit] = Math.max(held, least)
  }
  return { ...usage, ...counted }
}

/** Nobody speaks more than 25 characters per second, and a character has up to three bytes in today's scripts. */
const SECOND_TEXT_BYTES_MAX = 75

const speechSeconds = (outputBytes: number, { secondTextBytes }: CountedCall): number =>
  secondTextBytes === undefined ? 0 : Math.ceil(outputBytes / secondTextBytes)

/**
 * The gateway's own estimate of the usage after so many bytes of output, and so many images if the answer shows their
 * number. It never exceeds what the hold covers.
 */
export function estimateUsage(
  exchange: Exchange,
  outputBytes: number,
  images = exchange.attempt.meter.uses.images,
): Usage {
  const { call, hold, attempt } = exchange
  const { candidate } = attempt
  // What is billed per unit is not billed in tokens as well.
  if (candidate?.price !== undefined && hasFee(candidate.price.price, call?.units)) return noUsage
  const { input, audio, image } = estimateInput(exchange)
  const written = outputBytes > 0 ? outputTokensOf(exchange, outputBytes, images) : {}
  if (hold === undefined || candidate === undefined) {
    return { input, ...mediaInput(audio, image), ...limitTokens(written, Infinity) }
  }
  const most = candidate.size.inputTokensMax
  const audioTokens = Math.min(audio, most)
  const imageTokens = Math.min(image, most - audioTokens)
  return {
    input: Math.min(hold.inputTokens ?? input, most - audioTokens - imageTokens),
    ...mediaInput(audioTokens, imageTokens),
    ...limitTokens(written, outputLimit(exchange, candidate)),
  }
}

/** Audio and images may have rates of their own. */
const mediaInput = (audio: number, image: number): Pick<Usage, 'inputAudio' | 'inputImage'> => ({
  ...(audio > 0 && { inputAudio: audio }),
  ...(image > 0 && { inputImage: image }),
})

interface EstimatedInput {
  readonly input: number
  readonly audio: number
  readonly image: number
}

/**
 * Media count by the rules of the model, as in the hold: a call may end before its upstream reports the input, and then
 * this estimate is charged. A medium without a rule counts as some text.
 */
function estimateInput({ call, attempt: { candidate } }: Exchange): EstimatedInput {
  const { inputBytes = 0, extraBytes = 0, imageInputBytes = 0, media, secondTextBytes } = call ?? {}
  const { seconds = 0 } = call?.units ?? {}
  const transcribed = secondTextBytes === undefined ? 0 : seconds * TRANSCRIBED_TOKENS_PER_SECOND
  const image = estimateTokens(imageInputBytes)
  const unlisted = { input: estimateTokens(inputBytes + extraBytes) - transcribed - image, audio: transcribed, image }
  if (media === undefined) return unlisted
  const rules = (candidate?.model.traits ?? candidate?.provider.traits)?.mediaTokens
  if (rules === undefined) return unlisted
  const sound = media.items.filter(({ kind }) => kind === 'audio')
  const audio = mediaTokensMax(sound, rules)
  const all = mediaTokensMax(media.items, rules)
  if (audio === undefined || all === undefined) return unlisted
  return { input: estimateTokens(media.textBytes + extraBytes) + all - audio, audio, image: 0 }
}

type Tokens = Readonly<Partial<Record<'output' | 'outputImage' | 'outputAudio', number>>>

/** Estimates each kind of output apart, because images and audio have other rates than text. */
function outputTokensOf({ call, attempt }: Exchange, outputBytes: number, images?: number): Tokens {
  const { meter, candidate } = attempt
  if (call?.outputTokensGuess !== undefined) {
    const { outputTokensGuess: guess, outputGuessKind = 'output', imageOrder, soundTokenBytes = Infinity } = call
    const most = call.units?.images
    const isShown = images !== undefined && imageOrder !== undefined && most !== undefined
    const drawn = isShown ? Math.ceil(tokensPerImage(meter, guess / most) * Math.min(images, most)) : guess
    return { [outputGuessKind]: Math.max(drawn, Math.ceil(outputBytes / soundTokenBytes)) }
  }
  const imageBytes = Math.min(meter.pictureBytes, outputBytes)
  const audioBytes = Math.min(meter.soundBytes, outputBytes - imageBytes)
  // An image that is billed per unit is not billed in tokens as well.
  const isBilledPerImage = candidate?.price !== undefined && hasFee(candidate.price.price, imagesOf(call))
  const { pictureTokens = imageTokensDefault } = candidate?.model?.traits ?? candidate?.provider?.traits ?? noTraits
  return {
    output: estimateTokens(outputBytes - imageBytes - audioBytes),
    outputImage: isBilledPerImage ? 0 : Math.ceil((imageBytes / BYTES_PER_IMAGE) * pictureTokens),
    outputAudio: estimateTokens(audioBytes),
  }
}

/** The images that are not reported yet count like those that are. */
function tokensPerImage({ usage, uses: { images = 0 } }: UsageMeter, guess: number): number {
  const reported = usage === undefined ? 0 : outputTokens(usage)
  return reported > 0 && images > 0 ? reported / images : guess
}

const imagesOf = (call: Call | undefined): Units =>
  call?.services?.some(({ unit }) => unit === 'images') ? { images: 1 } : {}

/** Limits the sum of all kinds; text is cut first, then audio. */
function limitTokens(
  { output = 0, outputImage = 0, outputAudio = 0 }: Tokens,
  most: number,
): Tokens & { output: number } {
  const imageTokens = Math.min(outputImage, most)
  const audioTokens = Math.min(outputAudio, most - imageTokens)
  return {
    output: Math.min(output, most - imageTokens - audioTokens),
    ...(imageTokens > 0 && { outputImage: imageTokens }),
    ...(audioTokens > 0 && { outputAudio: audioTokens }),
  }
}
