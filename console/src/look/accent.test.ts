// The site chooses the hue of the accent; the contrast must be enough with any.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const css = readFileSync(join(import.meta.dir, 'styles.css'), 'utf8')

type Rgb = readonly [red: number, green: number, blue: number]

/** Linear values; what a screen cannot show is clipped, as browsers do. */
function fromOklch(lightness: number, chroma: number, hue: number): Rgb {
  const [a, b] = [chroma * Math.cos((hue * Math.PI) / 180), chroma * Math.sin((hue * Math.PI) / 180)]
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3
  const clip = (value: number): number => Math.min(1, Math.max(0, value))
  return [
    clip(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    clip(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    clip(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ]
}

function fromHex(hex: string): Rgb {
  const linear = (at: number): number => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  }
  return [linear(1), linear(3), linear(5)]
}

/** As WCAG has it. */
function contrast(one: Rgb, other: Rgb): number {
  const [dark, light] = [one, other].map(([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b).sort((a, b) => a - b)
  return (light! + 0.05) / (dark! + 0.05)
}

/** The tokens of the rule with this selector. */
function tokensOf(selector: string): ReadonlyMap<string, (hue: number) => Rgb> {
  const start = css.indexOf(`${selector} {`)
  const rule = css.slice(start, css.indexOf('}', start))
  const colors = rule.matchAll(/--([\w-]+): (?:(#\w{6})|oklch\(([\d.]+) ([\d.]+) var\(--accent-hue\)\));/g)
  return new Map(
    Array.from(colors, ([, name, hex, lightness, chroma]) => [
      name!,
      hue => (hex === undefined ? fromOklch(Number(lightness), Number(chroma), hue) : fromHex(hex)),
    ]),
  )
}

const themes = [
  { theme: 'light', own: ':root', ofHue: '[data-accent]' },
  { theme: 'dark', own: ':root[data-theme="dark"]', ofHue: '[data-theme="dark"] [data-accent]' },
]
const pairs = [
  ['accent', 'bg'],
  ['accent', 'surface'],
  ['accent', 'sunken'],
  ['accent', 'accent-soft'],
  ['on-accent', 'accent'],
  ['text', 'accent-soft'],
  ['muted', 'accent-soft'],
] as const

test.each(themes)('$theme: every hue has enough contrast', ({ own, ofHue }) => {
  const ofSite = tokensOf(ofHue)
  expect([...ofSite.keys()]).toEqual(['accent', 'on-accent', 'accent-soft'])
  const tokens = new Map([...tokensOf(own), ...ofSite])
  const pale = pairs.flatMap(([one, other]) =>
    Array.from({ length: 360 }, (_, hue) => hue)
      .filter(hue => contrast(tokens.get(one)!(hue), tokens.get(other)!(hue)) < 4.5)
      .map(hue => `${one} on ${other}, hue ${hue}`),
  )
  expect(pale).toEqual([])
})
