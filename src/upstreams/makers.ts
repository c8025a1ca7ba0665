// Reads who made a model and what its maker calls it. The same model has other ids at other providers: a provider file
// says by patterns how its ids become the maker's names, for instance "global.anthropic.*-v1:0" → "anthropic/*".

export interface MakerPattern {
  readonly pattern: RegExp
  /** Empty: the maker is not known. */
  readonly maker: string
  /** The maker's name of the model; `*` stands for what the first `*` of the pattern matches. */
  readonly name: string
}

/** A model as its maker names it. */
export interface MadeModel {
  /** The id of the maker's own provider, or another word for a maker without one. Empty: the maker is not known. */
  readonly maker: string
  /** The name of the model without a provider in front. */
  readonly bareName: string
}

const STARS_MAX = 2
const TARGET = /^([a-z0-9][a-z0-9-]{0,39})?\/([\x21-\x7e]{1,200})$/

/** Throws an Error that says what is wrong with the pattern. */
export function readMakerPattern(pattern: string, target: unknown): MakerPattern {
  const stars = pattern.split('*').length - 1
  if (pattern === '' || stars > STARS_MAX) throw new Error(`"${pattern}" may contain at most ${STARS_MAX} *`)
  const [, maker = '', name] = TARGET.exec(String(target)) ?? []
  if (typeof target !== 'string' || name === undefined) throw new Error(`"${pattern}" must be text such as "maker/*"`)
  if (name.split('*').length - 1 > Math.min(stars, 1)) throw new Error(`"${pattern}" does not give a * for "${target}"`)
  const escaped = pattern.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '(.*)')
  return { pattern: new RegExp(`^${escaped}$`), maker, name }
}

/** The first pattern that matches decides. Without a match the model's maker is unknown, and its id is its name. */
export function findMaker(patterns: readonly MakerPattern[], id: string): MadeModel {
  for (const { pattern, maker, name } of patterns) {
    const match = pattern.exec(id)
    if (match !== null) return { maker, bareName: name.replace('*', () => match[1] ?? '') || id }
  }
  return { maker: '', bareName: id }
}
