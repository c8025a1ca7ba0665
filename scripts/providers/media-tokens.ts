// The maximum of tokens that providers count for media in a request: rules over the ids of models; the first rule that
// matches applies. Files of other providers have one rule at their head: 16,384 tokens for an image, the most of any
// documented model there (Qwen). The file of Azure, where models have any name, has the highest count of all OpenAI
// models.
//
// OpenAI: "Images and vision", Calculating costs: tiles and patches, with the multiplier of each model; a second of audio
// is ten tokens. For some models after GPT-5 it is not documented which of the two applies, so they have the sum of
// both: the most tiles (85 + 8 × 170) and patches up to the 10,000 of the detail `original`. Anthropic: "Vision":
// patches of 28 pixels, at most 1,568 of them, since Opus 4.7 4,784; older models count one token for 750 pixels, which
// the multiplier 1.05 covers (784 / 750). Google: "Media resolution" and "Tokens": an image is cut into tiles of 258
// tokens: sixteen of 768 pixels for the largest, by another formula thirty for a strip of 10 to 1, so 32 tiles are
// counted; since Gemini 3 at most 2,240. A page has 258, since Gemini 3 at most 1,120, and its text is not billed; a
// second of audio 32; a frame 258, since Gemini 3 at most 280, with some tokens for its time.
//
// OpenAI and Anthropic also bill the text of a PDF, which can be as long as the context whatever the file looks like. So
// they have no rule for pages.

import type { MediaTokenRules } from '../../src/base/money/model-traits.ts'

type MediaRule = readonly [family: RegExp, rules: MediaTokenRules]

const tiles = (base: number, tile: number): MediaTokenRules => ({ image: { kind: 'tiles', base, tile } })
const patches = (multiplier: number): MediaTokenRules => ({
  image: { kind: 'patches', side: 32, patchesMax: 1_536, multiplier },
})
const either = (multiplier: number): MediaTokenRules => ({
  image: { kind: 'patches', side: 32, patchesMax: 10_000, highPatchesMax: 2_500, multiplier, base: 1_445 },
})

const openai: readonly MediaRule[] = [
  [/^gpt-audio/, { audioSecond: 10 }],
  [/^gpt-4o-mini/, tiles(2_833, 5_667)],
  [/^gpt-(4\.1|5)-mini/, patches(1.62)],
  [/^gpt-(4\.1|5)-nano/, patches(2.46)],
  [/^o4-mini/, patches(1.72)],
  [/^gpt-4(o|\.1|-turbo)/, tiles(85, 170)],
  [/^o[13](-\d|$)/, tiles(75, 150)],
  [/^gpt-5(-chat|-\d|$)/, tiles(70, 140)],
  [/^gpt-[5-9].*-(mini|nano)/, either(2.46)],
  [/^gpt-[5-9]/, either(1.62)],
]

const claudeImage = (patchesMax: number): MediaTokenRules => ({
  image: { kind: 'patches', side: 28, patchesMax, multiplier: 1.05 },
})

const claude: readonly MediaRule[] = [
  [/claude-(haiku|sonnet|opus)-4([-.][0-6](?!\d)|[-@]\d{8}|$)/, claudeImage(1_568)],
  [/claude/, claudeImage(4_784)],
]

const gemini: readonly MediaRule[] = [
  [
    /gemini-2/,
    {
      image: { kind: 'fixed', tokens: 32 * 258 },
      audioSecond: 32,
      videoFrame: 270,
      pdfPage: 258,
      pdfPagesMax: 1_000,
    },
  ],
  [
    /gemini-[3-9]/,
    { image: { kind: 'fixed', tokens: 2_240 }, audioSecond: 32, videoFrame: 290, pdfPage: 1_120, pdfPagesMax: 1_000 },
  ],
]

/** Only images, because an aggregator may read other media itself. */
const images = (rules: readonly MediaRule[], vendor: string): readonly MediaRule[] =>
  rules.flatMap(([family, { image }]) => {
    const source = family.source.replace(/^\^/, '')
    return image === undefined ? [] : [[new RegExp(`^${vendor}/.*?${source}`), { image }]]
  })

const families: Readonly<Record<string, readonly MediaRule[]>> = {
  'anthropic': claude,
  'bedrock': claude,
  'google': gemini,
  'openai': openai,
  'openrouter': [...images(claude, 'anthropic'), ...images(openai, 'openai'), ...images(gemini, 'google')],
  'vertex': gemini,
  'vertex-anthropic': claude,
}

export function mediaTokensOf(provider: string, model: string): MediaTokenRules | undefined {
  return families[provider]?.find(([family]) => family.test(model))?.[1]
}
