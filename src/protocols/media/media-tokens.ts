// The most tokens that a provider counts for the media of a call, by the rules in its file.

import type { ImageTokenRule, MediaTokenRules } from '../../base/money/model-traits.ts'
import type { ImageSize } from './image-size.ts'

/** A piece of input that is not text. */
export interface CallMedia {
  readonly kind: 'image' | 'audio' | 'video' | 'file'
  /** What its bytes say. Absent if they are elsewhere (a URL, a file id), or cannot be read. */
  readonly facts?: MediaFacts
  readonly detail?: 'low' | 'high'
  /** How many frames of a video the request asks for. */
  readonly framesPerSecond?: number
}

/** Read from the bytes of a medium. Plain data, because it may come from another thread. */
export interface MediaFacts {
  /** How many characters of the request are its bytes in base64. */
  readonly chars: number
  /** The base64 has the alphabet for URLs, which only Google reads. */
  readonly isUrlSafe?: true
  readonly image?: ImageSize
  /** The bytes are a PDF; its pages, if they can be counted. */
  readonly pdf?: { readonly pages?: number }
  readonly audioSeconds?: number
  readonly videoSeconds?: number
}

/** Undefined: no rule bounds some of the media, so that only the context of the model does. */
export function mediaTokensMax(media: readonly CallMedia[], rules: MediaTokenRules): number | undefined {
  let sum = 0
  for (const one of media) {
    const tokens = tokensOf[one.kind](one, rules)
    if (tokens === undefined) return undefined
    sum += Math.ceil(tokens)
  }
  return sum
}

type CountMedia = (media: CallMedia, rules: MediaTokenRules) => number | undefined

const tokensOf: Readonly<Record<CallMedia['kind'], CountMedia>> = {
  // Providers scale a large image down, so that there is a most for one that cannot be seen.
  image: ({ facts, detail }, { image: rule }) => rule && imageTokensMax(rule, facts?.image, detail),
  audio({ facts }, { audioSecond }) {
    const seconds = facts?.audioSeconds
    return seconds === undefined || audioSecond === undefined ? undefined : seconds * audioSecond
  },
  video({ facts, framesPerSecond = 1 }, { videoFrame, audioSecond = 0 }) {
    const seconds = facts?.videoSeconds
    if (seconds === undefined || videoFrame === undefined) return undefined
    return Math.ceil(seconds * Math.max(1, framesPerSecond) + 1) * videoFrame + Math.ceil(seconds) * audioSecond
  },
  file({ facts }, { pdfPage, pdfPagesMax = Infinity }) {
    if (facts?.pdf === undefined || pdfPage === undefined) return undefined
    const pages = Math.min(facts.pdf.pages ?? Infinity, pdfPagesMax)
    return pages === Infinity ? undefined : pages * pdfPage
  },
}

/** Without a size: of the largest image. */
export function imageTokensMax(rule: ImageTokenRule, size: ImageSize | undefined, detail: CallMedia['detail']): number {
  if (rule.kind === 'fixed') return rule.tokens
  if (rule.kind === 'tiles') return detail === 'low' ? rule.base : rule.base + rule.tile * tilesMax(size)
  const { side, patchesMax, highPatchesMax = patchesMax, multiplier = 1, base = 0 } = rule
  const most = detail === 'high' ? highPatchesMax : patchesMax
  const patches = size === undefined ? most : Math.ceil(size.width / side) * Math.ceil(size.height / side)
  return base + Math.ceil(Math.min(patches, most) * multiplier)
}

const [TILE_SIDE, SHORT_SIDE, LONG_SIDE_MAX] = [512, 768, 2_048] as const

/**
 * The image is scaled to 768 pixels at its shorter side. That a smaller one is not enlarged is not documented, so it
 * counts as enlarged.
 */
function tilesMax(size: ImageSize | undefined): number {
  const ratio = size === undefined ? Infinity : Math.max(size.width, size.height) / Math.min(size.width, size.height)
  const longSide = Math.min(SHORT_SIDE * ratio, LONG_SIDE_MAX)
  return Math.ceil(SHORT_SIDE / TILE_SIDE) * Math.ceil(longSide / TILE_SIDE)
}
