// A limit as calls are held against it: whom it is for, who shares it, and how fast it refills.

import type { Rate } from '../base/collections/gcra.ts'
import { rateOf, spansMs } from '../base/collections/gcra.ts'
import { matchesGlob } from '../base/text/glob.ts'
import type { LimitRow } from '../store/rules/rules.ts'
import type { Who } from './subject.ts'

/** Who has it to themselves. A row for one key alone is that key's, and one for an account that account's. */
export type Sharing = 'key' | 'account' | 'all'

/** Of calls at the same time: no time gives any of it back. */
const placesOf = (amount: number): Rate => ({ amount, tickMs: 1, each: 1, burst: amount })

export class Rule implements Rate {
  readonly row: LimitRow
  readonly amount: number
  readonly tickMs: number
  readonly each: number
  readonly burst: number
  readonly countsTokens: boolean
  readonly countsPlaces: boolean
  readonly isOfDay: boolean
  readonly sharing: Sharing
  /** Each model has one of its own. */
  readonly perModel: boolean
  /** In words for a caller. */
  readonly whose: string

  constructor(row: LimitRow) {
    const { resource, span, amount, per } = row
    const rate = span === null ? placesOf(amount) : rateOf(amount, spansMs[span])
    this.row = row
    this.amount = amount
    this.tickMs = rate.tickMs
    this.each = rate.each
    this.burst = rate.burst
    this.countsTokens = resource === 'tokens'
    this.countsPlaces = resource === 'concurrency'
    this.isOfDay = span === 'day'
    const isKeys = row.keyId !== null || per.includes('key')
    const isAccounts = row.accountId !== null || per.includes('account')
    this.sharing = isKeys ? 'key' : isAccounts ? 'account' : 'all'
    this.perModel = per.includes('model')
    this.whose = words[this.sharing][this.perModel ? 1 : row.model === null ? 0 : 2]
  }

  /** Whether it asks for the model at all. */
  get looksAtModel(): boolean {
    return this.perModel || this.row.model !== null
  }

  /** Whether it is for a call of this tier, and of a model of one of these names, by the one whose it is. */
  fits({ tier, hasOwnLimit = false }: Pick<Who, 'tier' | 'hasOwnLimit'>, names: readonly string[]): boolean {
    const { row } = this
    if (row.tier !== null && row.tier !== tier) return false
    if (row.isDefault === true && hasOwnLimit) return false
    return row.model === null || names.some(name => matchesGlob(row.model!, name))
  }

  /** What is owed under one of them is owed under the other. */
  isLike({ row }: Rule): boolean {
    return row.id === this.row.id && row.resource === this.row.resource && row.span === this.row.span
  }

  /** How much of it one call takes. A call of more than all of it takes all of it. */
  countOf(tokens: number): number {
    return this.countsTokens ? Math.min(tokens, this.amount) : 1
  }
}

/** In words for a caller, who is told of itself and of nobody else: all models, each, or some. */
const words = {
  key: ['this key', 'this key for this model', 'this key for these models'],
  account: ['this account', 'this account for this model', 'this account for these models'],
  all: ['all callers', 'all callers for this model', 'all callers for these models'],
} as const

/** The key's own calls a minute, which need no row. */
const ownRule = (qpm: number): Rule =>
  new Rule({
    ...{ id: 0, resource: 'requests', span: 'minute', amount: qpm },
    ...{ keyId: null, accountId: null, tier: null, model: null, per: ['key'] },
  })

/** Rules of one kind of owner. */
export interface Kind {
  readonly sharing: Sharing
  readonly perModel: boolean
}

export const kinds: readonly Kind[] = (['key', 'account', 'all'] as const).flatMap(sharing => [
  { sharing, perModel: false },
  { sharing, perModel: true },
])

const noRules: readonly Rule[] = []

/** All rows of one time, by whom they are for and by who shares them. */
export class LimitBook {
  readonly #general: ReadonlyMap<Kind, readonly Rule[]>
  readonly #ofAccount = new Map<number, Rule[]>()
  readonly #ofKey = new Map<number, Rule[]>()
  /** By calls a minute: the rules of a key that no row names, of which the first is its own. */
  readonly #ofKeys = new Map<number, readonly Rule[]>()

  constructor(rows: readonly LimitRow[]) {
    const general: Rule[] = []
    for (const row of rows) {
      const rule = new Rule(row)
      if (row.keyId !== null) put(this.#ofKey, row.keyId, rule)
      else if (row.accountId !== null) put(this.#ofAccount, row.accountId, rule)
      else general.push(rule)
    }
    this.#general = new Map(kinds.map(kind => [kind, general.filter(rule => isOf(kind, rule))]))
  }

  /** What such an owner has limits by, whichever of its calls they are for. */
  rulesOf(kind: Kind, { keyId, accountId, qpm }: Who): readonly Rule[] {
    const general = this.#general.get(kind)!
    const isKey = kind.sharing === 'key'
    const plain = isKey && !kind.perModel ? this.#ofAnyKey(qpm, general) : general
    const ofAccount = this.#ofAccount.get(accountId) ?? noRules
    const ofKey = isKey ? (this.#ofKey.get(keyId) ?? noRules) : noRules
    const named = [...ofAccount, ...ofKey].filter(rule => {
      return isOf(kind, rule) && (rule.row.accountId === null || rule.row.accountId === accountId)
    })
    return named.length === 0 ? plain : [...plain, ...named]
  }

  #ofAnyKey(qpm: number, general: readonly Rule[]): readonly Rule[] {
    let rules = this.#ofKeys.get(qpm)
    if (rules === undefined) {
      rules = [ownRule(qpm), ...general]
      this.#ofKeys.set(qpm, rules)
    }
    return rules
  }
}

const isOf = ({ sharing, perModel }: Kind, rule: Rule): boolean =>
  rule.sharing === sharing && rule.perModel === perModel

function put(rules: Map<number, Rule[]>, id: number, rule: Rule): void {
  const some = rules.get(id)
  if (some === undefined) rules.set(id, [rule])
  else some.push(rule)
}
