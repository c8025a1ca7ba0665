// Reads who made a model and what its maker calls it. The same model has other ids at other providers: a provider file
// says by patterns how its ids become the maker's names, for instance "global.anthropic.*-v1:0" → "anthropic/*".

export interface MakerPattern {
  readonly pattern: RegExp
  /** Empty: the maker is not known. */
  readonly maker: string
  /**
   * The maker's name of the model; each `*` stands for what the same `*` of the pattern matches. A word and a dot before
   * the last `*` are a region ("us.*", "*.*"): the model is the same one, at another place.
   */
  readonly name: string
}

/** A model as its maker names it. */
export interface MadeModel {
  /** The id of the maker's own provider, or another word for a maker without one. Empty: the maker is not known. */
  readonly maker: string
  /** The name of the model without a provider in front. */
  readonly bareName: string
  /** The same without a region. */
  readonly globalName: string
}

const STARS_MAX = 2
/** The form of the maker's name that a pattern leads to. */
export const MAKER_TARGET = /^([a-z0-9][a-z0-9-]{0,39})?\/([\x21-\x7e]{1,200})$/

/** Throws an Error that says what is wrong with the pattern. */
export function readMakerPattern(pattern: string, target: unknown): MakerPattern {
  const stars = pattern.split('*').length - 1
  if (pattern === '' || stars > STARS_MAX) throw new Error(`"${pattern}" may contain at most ${STARS_MAX} *`)
  const [, maker = '', name] = MAKER_TARGET.exec(String(target)) ?? []
  if (typeof target !== 'string' || name === undefined) throw new Error(`"${pattern}" must be text such as "maker/*"`)
  if (name.split('*').length - 1 > stars) throw new Error(`"${pattern}" does not give a * for "${target}"`)
  const escaped = pattern.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '(.*)')
  // Some providers accept an id in any case.
  return { pattern: new RegExp(`^${escaped}$`, 'i'), maker, name }
}

const REGION = /^[a-z*-]+\.(?=\*$)/

/** The first pattern that matches decides. Without a match the model's maker is unknown, and its id is its name. */
export function findMaker(patterns: readonly MakerPattern[], id: string): MadeModel {
  for (const { pattern, maker, name } of patterns) {
    const match = pattern.exec(id)
    if (match === null) continue
    const [, ...parts] = match
    const texts = [...parts]
    const bareName = name.replaceAll('*', () => texts.shift() ?? '') || id
    const globalName = REGION.test(name) ? parts[name.split('*').length - 2]! : bareName
    return { maker, bareName, globalName }
  }
  return { maker: '', bareName: id, globalName: id }
}
