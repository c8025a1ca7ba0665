// Checks whether the rules can be used: each rule, all rules together, and the rules with the providers and channels.
//
// An invalid rule stops the start, because ignoring a limit or a name could let calls through that must be refused. A
// rule that refers to something that no longer exists (a provider file, a model, a replaced key) is only reported:
// calls that need the missing thing are refused, other calls work.

import { refusal } from '../../base/errors.ts'
import type { Hint, HintedError } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { matchesGlob } from '../../base/text/glob.ts'
import { nearestName } from '../../base/text/nearest-name.ts'
import { isRuleAbout, normalizeName } from '../../base/text/rule-names.ts'
import { checkLimit } from '../../limits/limit-check.ts'
import type { ModelAliases } from '../../routing/model-aliases.ts'
import { checkAliases, compileAliases } from '../../routing/model-aliases.ts'
import type { RouteRow, Rules } from '../../store/rules/rules.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { ManagementParts } from '../management-parts.ts'

/** The rules as stored in the database. Throws if they are invalid. */
export async function readRules({ rules }: Pick<ManagementParts, 'rules'>): Promise<Rules> {
  await rules.reload()
  if (rules.problem !== undefined) throw refusal('field_invalid', rules.problem)
  return rules.current
}

export interface RulesCheckResult {
  /** Why the rules cannot be used, and what to do. */
  readonly problem?: Hint
  /** Rules that refer to something that does not exist. */
  readonly notes: readonly string[]
}

export function checkRules({ limits, routes, channels }: Rules, catalogue: Catalogue): RulesCheckResult {
  for (const limit of limits) {
    const fault = faultOf(() => checkLimit(limit))
    if (fault) return { problem: hintOf('limit_unusable', { id: limit.id, problem: fault }), notes: [] }
  }
  const fault = faultOf(() => checkAliases(routes))
  if (fault) return { problem: hintOf('route_unusable', { problem: fault }), notes: [] }
  const names = compileAliases(routes)
  const missing = routes.flatMap(row => {
    const problem = memberProblem(row, names, catalogue)
    return problem === undefined ? [] : [`route ${row.name}: ${problem.text}`]
  })
  const existing = new Set(catalogue.all().map(({ id }) => id))
  const isGone = (id: string): boolean => !existing.has(id) && !catalogue.problems.has(id)
  const gone = channels.filter(({ channel }) => isGone(channel)).map(({ channel }) => `channel ${channel}`)
  return { notes: [...missing, ...gone] }
}

function faultOf(check: () => void): Hint | undefined {
  try {
    check()
    return undefined
  } catch (fault) {
    return (fault as HintedError).hint
  }
}

/** The sentence for a provider that does not exist. */
export function unknownProvider(provider: string, { providers }: Pick<Catalogue, 'providers'>): Hint {
  const near = nearestName(provider, providers.keys())
  return near === undefined
    ? hintOf('provider_unknown', { provider })
    : hintOf('provider_unknown_near', { provider, near })
}

/** Explains why a member of a route is invalid: it is neither another model name nor a model of a provider. */
export function memberProblem(
  { name, members }: RouteRow,
  names: ModelAliases,
  { providers }: Pick<Catalogue, 'providers'>,
): Hint | undefined {
  for (const { model: member } of members) {
    if (member !== name && names.isExact(member)) continue
    if (isWithWeight(member, providers)) return hintOf('route_member_weight', { member })
    // A pattern matches misspelt names, too, so one of the models that it makes of the member must exist.
    const resolved = member === name ? undefined : names.resolve(member)
    const problems = (resolved?.members ?? [{ model: member }]).map(({ model }) => modelProblem(model, providers))
    if (problems.every(problem => problem !== undefined)) return problems[0]
  }
  return undefined
}

type Providers = Catalogue['providers']

/** True if the member ends in a weight that was not read as one, and is not the id of a model that looks like it. */
function isWithWeight(member: string, providers: Providers): boolean {
  const { provider, model } = splitMember(member, providers)
  return /=[^/]*$/.test(member) && !provider?.models.has(model)
}

function modelProblem(member: string, providers: Providers): Hint | undefined {
  const { provider, model } = splitMember(member, providers)
  if (provider === undefined) return noProvider(member, model, providers)
  const exists = model.includes('*') || provider.openModels || provider.models.has(model)
  if (exists && model !== '') return undefined
  const near = nearestName(model, provider.models.keys())
  const values = { member, provider: provider.name }
  return near === undefined
    ? hintOf('route_no_model', values)
    : hintOf('route_no_model_near', { ...values, near: `${provider.id}/${near}` })
}

function noProvider(member: string, model: string, providers: Providers): Hint {
  const near = member === model ? undefined : nearestName(member.slice(0, member.indexOf('/')), providers.keys())
  return near === undefined
    ? hintOf('route_no_provider', { member })
    : hintOf('route_no_provider_near', { member, near: `${near}/${model}` })
}

function splitMember(member: string, providers: Providers) {
  const slash = member.indexOf('/')
  return { provider: providers.get(member.slice(0, Math.max(0, slash))), model: member.slice(slash + 1) }
}

type RuleParts = Pick<ManagementParts, 'rules' | 'catalogue'>

/** Warns about patterns that match no model: a misspelt name would limit or deny nothing. */
export function nameWarning(patterns: readonly string[], known: RuleParts): { readonly warning?: Hint } {
  const unmatched = patterns.filter(pattern => !matchesSomething(pattern, known))
  return unmatched.length === 0 ? {} : { warning: hintOf('warn_no_model', { patterns: unmatched.join(', ') }) }
}

/** The same warning for a limit, which may also be for uploads: uploads count as calls to `<provider>/files`. */
export function limitWarning(model: string | null, known: RuleParts): { readonly warning?: Hint } {
  if (model === null) return {}
  const uploadProviders = [...known.catalogue().providers.values()].filter(({ speaks }) => 'ark-files' in speaks)
  return uploadProviders.some(({ id }) => matchesGlob(model, `${id}/files`)) ? {} : nameWarning([model], known)
}

/** Warns about tags that no channel has: a key that requires such a tag could use no model. */
function tagWarning(tags: readonly string[], { catalogue }: RuleParts): { readonly warning?: Hint } {
  const channels = catalogue().all()
  const unmatched = tags.filter(tag => !channels.some(({ id }) => catalogue().rulesOf(id).tags.includes(tag)))
  return unmatched.length === 0 ? {} : { warning: hintOf('warn_no_tag', { tags: unmatched.join(', ') }) }
}

interface Rights {
  readonly patterns: readonly string[]
  readonly tags?: readonly string[]
}

/** Warnings about model patterns and tags that match nothing today: they are allowed but may be a mistake. */
export function rightsWarnings({ patterns, tags = [] }: Rights, known: RuleParts): readonly Hint[] {
  return [nameWarning(patterns, known), tagWarning(tags, known)].flatMap(({ warning }) => warning ?? [])
}

/** True if the pattern matches a model, or may match a model that the provider has but does not list. */
function matchesSomething(pattern: string, { rules, catalogue }: RuleParts): boolean {
  const head = pattern.split('*')[0]!
  return (
    rules.current.routes.some(({ name }) => matchesGlob(pattern, name) || matchesGlob(name, pattern)) ||
    [...catalogue().providers.values()].some(provider => {
      const { id, models, openModels } = provider
      const isOpen = openModels && (head.startsWith(`${id}/`) || (pattern !== head && `${id}/`.startsWith(head)))
      const rule = normalizeName(pattern)
      return isOpen || [...models.keys()].some(model => isRuleAbout(rule, catalogue().index.namesOf(provider, model)))
    })
  )
}

/** The providers of all models behind a model name. */
export const providersOf = (name: string, names: ModelAliases): ReadonlySet<string> =>
  new Set(names.resolve(name)!.members.map(({ model }) => model.slice(0, Math.max(0, model.indexOf('/')))))

/** The model names that no channel can serve, because all channels of their models are disabled. */
export function deadRoutes(routes: readonly RouteRow[], catalogue: Catalogue): readonly string[] {
  const names = compileAliases(routes)
  const isDead = (name: string): boolean =>
    [...providersOf(name, names)].every(id => catalogue.channelsOf(id).length === 0)
  return routes.map(({ name }) => name).filter(isDead)
}
