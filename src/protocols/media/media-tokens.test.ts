// The bounds of media by the rules of the shipped provider files, compared with published examples.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import type { ImageTokenRule, MediaTokenRules } from '../../base/money/model-traits.ts'
import { parseProvider } from '../../upstreams/provider.ts'
import type { CallMedia } from './media-tokens.ts'
import { imageTokensMax, mediaTokensMax } from './media-tokens.ts'

function rulesOf(model: string): MediaTokenRules {
  const [provider, ...rest] = model.split('/')
  const file = new URL(`../../../providers/${provider}.json`, import.meta.url)
  const { models, traits } = parseProvider(readFileSync(file, 'utf8'), file.pathname)
  return (models.get(rest.join('/'))?.traits ?? traits).mediaTokens!
}

const image = (width: number, height: number, detail?: 'low' | 'high'): CallMedia => ({
  kind: 'image',
  facts: { chars: 0, image: { width, height } },
  ...(detail && { detail }),
})
const of = (facts: Partial<NonNullable<CallMedia['facts']>>): Pick<CallMedia, 'facts'> => ({
  facts: { chars: 0, ...facts },
})

describe('published examples', () => {
  const exact: readonly (readonly [string, CallMedia, number])[] = [
    ['openai/gpt-4o', image(1_024, 1_024, 'high'), 765],
    ['openai/gpt-4o', image(2_048, 4_096, 'high'), 1_105],
    ['openai/gpt-4o', image(4_096, 8_192, 'low'), 85],
    ['openai/gpt-4o-mini', image(1_024, 1_024), 2_833 + 4 * 5_667],
    ['openai/gpt-4o-mini', image(1_024, 1_024, 'low'), 2_833],
    ['openai/gpt-4.1', image(1_024, 1_024), 765],
    ['openai/o3', image(1_024, 1_024), 75 + 4 * 150],
    ['openai/gpt-5', image(1_024, 1_024), 70 + 4 * 140],
    ['openai/gpt-4.1-mini', image(1_024, 1_024), Math.ceil(1_024 * 1.62)],
    ['openai/gpt-4.1-nano', image(1_024, 1_024), Math.ceil(1_024 * 2.46)],
    ['openai/o4-mini', image(1_024, 1_024), Math.ceil(1_024 * 1.72)],
    ['openai/gpt-audio', { kind: 'audio', ...of({ audioSeconds: 60 }) }, 600],
    ['google/gemini-2.5-pro', { kind: 'audio', ...of({ audioSeconds: 60 }) }, 1_920],
    ['google/gemini-2.5-pro', { kind: 'file', ...of({ pdf: { pages: 10 } }) }, 2_580],
    ['google/gemini-3-pro-preview', image(5_000, 5_000), 2_240],
  ]
  test.each(exact)('%s: %j is %d', (model, media, tokens) => {
    expect(mediaTokensMax([media], rulesOf(model))).toBe(tokens)
  })

  /** Where the published number is of an image that was scaled down, or there were two formulas. */
  const atMost: readonly (readonly [string, CallMedia, number, number])[] = [
    ['openai/gpt-4.1-mini', image(1_800, 2_400), Math.ceil(1_452 * 1.62), 1.06],
    ['anthropic/claude-sonnet-4-5', image(200, 200), 64, 1.07],
    ['anthropic/claude-sonnet-4-5', image(1_000, 1_000), 1_334, 1.03],
    ['anthropic/claude-sonnet-4-5', image(1_092, 1_092), 1_590, 1.01],
    ['anthropic/claude-sonnet-4-5', image(8_000, 8_000), 1_600, 1.03],
    ['anthropic/claude-opus-4-7', image(8_000, 8_000), 4_784, 1.06],
    ['google/gemini-2.5-flash', image(960, 540), 6 * 258, 6],
    // Up to 300 tokens for a second, audio included.
    ['google/gemini-2.5-flash', { kind: 'video', ...of({ videoSeconds: 100 }) }, 29_000, 1.06],
  ]
  test.each(atMost)('%s: %j is at least %d, and not much more', (model, media, tokens, factor) => {
    const bound = mediaTokensMax([media], rulesOf(model))!
    expect(bound).toBeGreaterThanOrEqual(tokens)
    expect(bound).toBeLessThanOrEqual(Math.ceil(tokens * factor))
  })
})

describe('every rule', () => {
  const models = [
    ...['openai/gpt-4o', 'openai/gpt-4o-mini', 'openai/gpt-5-mini', 'openai/gpt-5.6', 'anthropic/claude-opus-5'],
    ...['google/gemini-2.5-pro', 'dashscope/qwen3-vl-plus', 'ark/doubao-seed-1-8-251228', 'azure/any', 'xai/any'],
  ]
  const side = fc.integer({ min: 1, max: 20_000 })
  const rules: readonly (readonly [string, ImageTokenRule])[] = models.map(name => [name, rulesOf(name).image!])

  test.each(rules)('%s: a rotated image has the same bound, and none has more than an unseen image', (_name, rule) => {
    fc.assert(
      fc.property(side, side, fc.constantFrom(undefined, 'low', 'high'), (width, height, detail) => {
        const tokens = imageTokensMax(rule, { width, height }, detail)
        expect(tokens).toBeGreaterThan(0)
        expect(imageTokensMax(rule, { width: height, height: width }, detail)).toBe(tokens)
        expect(imageTokensMax(rule, undefined, detail)).toBeGreaterThanOrEqual(tokens)
        expect(imageTokensMax(rule, { width, height }, undefined)).toBeGreaterThanOrEqual(tokens)
      }),
    )
  })

  test('tiles are at least those of the published steps', () => {
    const rule: ImageTokenRule = { kind: 'tiles', base: 0, tile: 1 }
    fc.assert(
      fc.property(side, side, (width, height) => {
        const fit = Math.min(1, 2_048 / Math.max(width, height))
        const shrink = Math.min(1, 768 / (Math.min(width, height) * fit))
        const tiles = (length: number): number => Math.ceil(Math.floor(length * fit * shrink) / 512) || 1
        expect(imageTokensMax(rule, { width, height }, 'high')).toBeGreaterThanOrEqual(tiles(width) * tiles(height))
      }),
    )
  })

  test('patches are at least those of the image as it is scaled down', () => {
    const rule: ImageTokenRule = { kind: 'patches', side: 32, patchesMax: 1_536 }
    fc.assert(
      fc.property(side, side, (width, height) => {
        const shrink = Math.min(1, Math.sqrt((1_536 * 32 * 32) / (width * height)))
        const patches = Math.floor((width * shrink) / 32) * Math.floor((height * shrink) / 32)
        expect(imageTokensMax(rule, { width, height }, 'high')).toBeGreaterThanOrEqual(patches)
      }),
    )
  })
})

describe('without a bound', () => {
  const all: MediaTokenRules = rulesOf('google/gemini-2.5-pro')
  const unbound: readonly (readonly [string, CallMedia, MediaTokenRules])[] = [
    ['an image without a rule', image(1, 1), {}],
    ['audio by URL', { kind: 'audio' }, all],
    ['audio without a rule', { kind: 'audio', ...of({ audioSeconds: 1 }) }, {}],
    ['a video of unknown length', { kind: 'video', ...of({ audioSeconds: 1 }) }, all],
    ['a file by URL', { kind: 'file' }, all],
    ['a file that is no PDF', { kind: 'file', ...of({ audioSeconds: 1 }) }, all],
    ['unknown pages without a most', { kind: 'file', ...of({ pdf: {} }) }, { pdfPage: 1 }],
  ]
  test.each(unbound)('%s makes the whole call unbound', (_name, media, rules) => {
    expect(mediaTokensMax([image(1, 1), media], { image: { kind: 'fixed', tokens: 1 }, ...rules })).toBe(
      media.kind === 'image' ? 2 : undefined,
    )
    expect(mediaTokensMax([media], rules)).toBeUndefined()
  })

  test('nothing is free: unknown pages are as many as the provider takes, and no more are counted', () => {
    expect(mediaTokensMax([{ kind: 'file', ...of({ pdf: {} }) }], all)).toBe(258_000)
    expect(mediaTokensMax([{ kind: 'file', ...of({ pdf: { pages: 5_000 } }) }], all)).toBe(258_000)
    const once = mediaTokensMax([{ kind: 'video', ...of({ videoSeconds: 9 }) }], all)!
    const often = mediaTokensMax([{ kind: 'video', ...of({ videoSeconds: 9 }), framesPerSecond: 24 }], all)
    expect(often).toBe((9 * 24 + 1) * 270 + 9 * 32)
    expect(mediaTokensMax([{ kind: 'video', ...of({ videoSeconds: 9 }), framesPerSecond: 0.01 }], all)).toBe(once)
  })
})

test('OpenAI and Anthropic have no rule for pages: they also bill their text, which nothing bounds', () => {
  for (const model of ['openai/gpt-5', 'anthropic/claude-opus-5', 'openrouter/google/gemini-2.5-pro']) {
    expect(rulesOf(model).pdfPage).toBeUndefined()
  }
})
