// The rules of limits: to which calls a limit applies, who shares it, and how fast it refills.

import type { Rate } from '../base/collections/gcra.ts'
import { rateOf, spansMs } from '../base/collections/gcra.ts'
import type { RuleNames } from '../base/text/rule-names.ts'
import { isRuleAbout, normalizeName } from '../base/text/rule-names.ts'
import type { LimitRow } from '../store/rules/rules.ts'
import type { LimitedCaller } from './limited-call.ts'

/** Who shares one limit: the calls of one key, of one account, or all calls. */
export type LimitSharing = 'key' | 'account' | 'all'

/** A limit of concurrency: time refills nothing. */
const concurrencyRate = (amount: number): Rate => ({ amount, tickMs: 1, unitsEach: 1, burstUnits: amount })

export class LimitRule implements Rate {
  readonly row: LimitRow
  /** The amount of this process: all of it, or its share if each process counts for itself. */
  readonly amount: number
  readonly tickMs: number
  readonly unitsEach: number
  readonly burstUnits: number
  /** The rate of all processes together. */
  readonly whole: Rate
  /** Among how many processes the rate is divided. */
  readonly processes: number
  readonly countsTokens: boolean
  readonly countsConcurrency: boolean
  readonly isOfDay: boolean
  readonly sharing: LimitSharing
  /** Each model is counted on its own. */
  readonly perModel: boolean
  /** Whom the limit applies to, as text for a caller. */
  readonly ownerText: string
  /** The rule is about another key: it applies to calls that share the limits of the keys of an account. */
  readonly isInherited: boolean
  /** The name or pattern of the models that the rule is about. */
  readonly #model: string | undefined

  constructor(row: LimitRow, processes = 1, isInherited = false) {
    const { resource, span, amount, per } = row
    const rateFor = (of: number): Rate => (span === null ? concurrencyRate(of) : rateOf(of, spansMs[span]))
    const rate = rateFor(Math.max(1, Math.floor(amount / processes)))
    this.row = row
    this.isInherited = isInherited
    this.processes = processes
    this.whole = processes === 1 ? rate : rateFor(amount)
    this.#model = row.model === null ? undefined : normalizeName(row.model)
    this.amount = rate.amount
    this.tickMs = rate.tickMs
    this.unitsEach = rate.unitsEach
    this.burstUnits = rate.burstUnits
    this.countsTokens = resource === 'tokens'
    this.countsConcurrency = resource === 'concurrency'
    this.isOfDay = span === 'day'
    const isOfKey = row.keyId !== null || per.includes('key')
    const isOfAccount = row.accountId !== null || per.includes('account')
    this.sharing = isOfKey ? 'key' : isOfAccount ? 'account' : 'all'
    this.perModel = per.includes('model')
    this.ownerText = ownerTexts[this.sharing][this.perModel ? 1 : row.model === null ? 0 : 2]
  }

  get dependsOnModel(): boolean {
    return this.perModel || this.row.model !== null
  }

  /** Whether the rule applies to a call of this tier for a model with these names. Key and account are not checked. */
  appliesTo(
    { tier, hasOwnLimit = false, sharesLimits = false }: Pick<LimitedCaller, 'tier' | 'hasOwnLimit' | 'sharesLimits'>,
    names: RuleNames | undefined,
  ): boolean {
    const { row } = this
    if (this.isInherited && !sharesLimits) return false
    if (row.tier !== null && row.tier !== tier) return false
    if (row.isDefault === true && hasOwnLimit) return false
    return this.#model === undefined || (names !== undefined && isRuleAbout(this.#model, names))
  }

  /** Whether both are versions of the same rule, so that the use of one is the use of the other. */
  isSameRule({ row }: LimitRule): boolean {
    return row.id === this.row.id && row.resource === this.row.resource && row.span === this.row.span
  }

  /** How much one call takes. A call with more tokens than the whole limit takes the whole limit. */
  countOf(tokens: number): number {
    return this.countsTokens ? Math.min(tokens, this.amount) : 1
  }
}

/** Texts for a caller: a limit for all models, for each model, or for some models. They name no other caller. */
const ownerTexts = {
  key: ['this key', 'this key for this model', 'this key for these models'],
  account: ['this account', 'this account for this model', 'this account for these models'],
  all: ['all callers', 'all callers for this model', 'all callers for these models'],
} as const

/** The rule for a key's calls a minute, which has no row. */
const ownRule = (qpm: number, processes: number): LimitRule => {
  const row = { resource: 'requests', span: 'minute', amount: qpm, per: ['key'] } as const
  return new LimitRule({ id: 0, ...row, keyId: null, accountId: null, tier: null, model: null }, processes)
}

/** A kind of owner. Each owner has the rules of its kind. */
export interface LimitOwnerKind {
  readonly sharing: LimitSharing
  readonly perModel: boolean
}

export const limitOwnerKinds: readonly LimitOwnerKind[] = (['key', 'account', 'all'] as const).flatMap(sharing => [
  { sharing, perModel: false },
  { sharing, perModel: true },
])

const noRules: readonly LimitRule[] = []

/** All rules at one time, by key, account and kind of owner. */
export class LimitRuleSet {
  /** Rules that name no key and no account. */
  readonly #general: ReadonlyMap<LimitOwnerKind, readonly LimitRule[]>
  readonly #byAccount = new Map<number, LimitRule[]>()
  readonly #byKey = new Map<number, LimitRule[]>()
  /** By account: the strictest rules of its keys. */
  readonly #strictest: ReadonlyMap<number, readonly LimitRule[]>
  /** By calls a minute: the rules of a key that no row names. The first is the rule for its calls a minute. */
  readonly #byQpm = new Map<number, readonly LimitRule[]>()
  readonly #processes: number

  /** `processes`: among how many the limits are divided. */
  constructor(rows: readonly LimitRow[], processes = 1) {
    this.#processes = processes
    const general: LimitRule[] = []
    for (const row of rows) {
      const rule = new LimitRule(row, processes)
      if (row.keyId !== null) addRule(this.#byKey, row.keyId, rule)
      else if (row.accountId !== null) addRule(this.#byAccount, row.accountId, rule)
      else general.push(rule)
    }
    this.#strictest = strictestRules(rows, processes)
    this.#general = new Map(limitOwnerKinds.map(kind => [kind, general.filter(rule => isOf(kind, rule))]))
  }

  /** All rules of an owner of this kind. Some may apply only to some of its calls. */
  rulesOf(kind: LimitOwnerKind, { keyId, accountId, qpm }: LimitedCaller): readonly LimitRule[] {
    const general = this.#general.get(kind)!
    const isOfKey = kind.sharing === 'key'
    const common = isOfKey && !kind.perModel ? this.#withOwnRule(qpm, general) : general
    const ofAccount = this.#byAccount.get(accountId) ?? noRules
    const ofKey = isOfKey ? (this.#byKey.get(keyId) ?? noRules) : noRules
    // The same list for all callers that this owner counts: a rule that is left out would lose its count.
    const inherited = isOfKey ? (this.#strictest.get(accountId) ?? noRules) : noRules
    const others = inherited.filter(({ row }) => row.keyId !== keyId)
    const named = [...ofAccount, ...ofKey, ...others].filter(rule => {
      return isOf(kind, rule) && (rule.row.accountId === null || rule.row.accountId === accountId)
    })
    return named.length === 0 ? common : [...common, ...named]
  }

  #withOwnRule(qpm: number, general: readonly LimitRule[]): readonly LimitRule[] {
    let rules = this.#byQpm.get(qpm)
    if (rules === undefined) {
      rules = [ownRule(qpm, this.#processes), ...general]
      this.#byQpm.set(qpm, rules)
    }
    return rules
  }
}

const isOf = ({ sharing, perModel }: LimitOwnerKind, rule: LimitRule): boolean =>
  rule.sharing === sharing && rule.perModel === perModel

/**
 * The rules about single keys, by the account of the key. Of those that count the same, only the one with the smallest
 * amount: an account may have thousands of keys.
 */
function strictestRules(rows: readonly LimitRow[], processes: number): ReadonlyMap<number, readonly LimitRule[]> {
  const strictest = new Map<string, LimitRow>()
  for (const row of rows) {
    const { keyAccountId: accountId, keyId, resource, span, model, tier, per } = row
    if (keyId === null || accountId === null || accountId === undefined) continue
    const name = JSON.stringify([accountId, resource, span, model, tier, per])
    const known = strictest.get(name)
    if (known === undefined || row.amount < known.amount) strictest.set(name, row)
  }
  const byAccount = new Map<number, LimitRule[]>()
  for (const row of strictest.values()) addRule(byAccount, row.keyAccountId!, new LimitRule(row, processes, true))
  return byAccount
}

function addRule(rules: Map<number, LimitRule[]>, id: number, rule: LimitRule): void {
  const rulesOfId = rules.get(id)
  if (rulesOfId === undefined) rules.set(id, [rule])
  else rulesOfId.push(rule)
}
