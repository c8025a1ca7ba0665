// Whether rules can be used: each by itself, all of them together, and with the providers and channels that there are.
//
// What nobody can understand stops a start, because a limit or a name that is passed over lets calls go where they
// must not. What speaks of something that is not there any more (a provider file, a model, a key that was renewed)
// is only told: calls that need it are refused, and no others.

import { matchesGlob } from '../../base/text/glob.ts'
import { checkLimit } from '../../limits/validate.ts'
import type { Names } from '../../routing/model-aliases.ts'
import { checkRoutes, compileRoutes } from '../../routing/model-aliases.ts'
import type { RouteRow, Rules } from '../../store/rules/rules.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { OperatorParts } from '../command.ts'
import { OperatorError } from '../operator-error.ts'

/** The rules as they are written. Throws where they cannot be understood. */
export function rulesNow({ rules }: Pick<OperatorParts, 'rules'>): Rules {
  rules.renew()
  if (rules.problem !== undefined) throw new OperatorError(rules.problem)
  return rules.current
}

export interface RulesChecked {
  /** Why they cannot be used, and what to do. */
  readonly problem?: string
  /** What is in them that is not there. */
  readonly notes: readonly string[]
}

export function checkRules({ limits, routes, channels }: Rules, catalogue: Catalogue): RulesChecked {
  for (const limit of limits) {
    const fault = faultOf(() => checkLimit(limit))
    if (fault) return { problem: `Limit ${limit.id} cannot be used. ${fault} See: weir limits.`, notes: [] }
  }
  const fault = faultOf(() => checkRoutes(routes))
  if (fault) return { problem: `The names for models cannot be used. ${fault} See: weir routes.`, notes: [] }
  const names = compileRoutes(routes)
  const missing = routes.flatMap(row => {
    const problem = memberProblem(row, names, catalogue)
    return problem === undefined ? [] : [`route ${row.name}: ${problem}`]
  })
  const there = new Set(catalogue.all().map(({ id }) => id))
  const isGone = (id: string): boolean => !there.has(id) && !catalogue.problems.has(id)
  const gone = channels.filter(({ channel }) => isGone(channel)).map(({ channel }) => `channel ${channel}`)
  return { notes: [...missing, ...gone] }
}

function faultOf(check: () => void): string | undefined {
  try {
    check()
    return undefined
  } catch (fault) {
    return (fault as Error).message
  }
}

/** Why a member of a route stands for nothing: it is neither another name nor a model of a provider. */
export function memberProblem({ name, members }: RouteRow, names: Names, { providers }: Catalogue): string | undefined {
  for (const { model: member } of members) {
    if (member !== name && names.resolve(member) !== undefined) continue
    const slash = member.indexOf('/')
    const provider = providers.get(member.slice(0, Math.max(0, slash)))
    if (provider === undefined) return `${member}: there is no such provider, and no such route.`
    const model = member.slice(slash + 1)
    const isThere = model.includes('*') || provider.openModels || provider.models.has(model)
    if (!isThere || model === '') return `${member}: ${provider.name} has no such model.`
  }
  return undefined
}

type Known = Pick<OperatorParts, 'rules' | 'catalogue'>

/** A name that is misspelt limits and denies nothing. */
export function nameWarning(patterns: readonly string[], known: Known): { readonly warning?: string } {
  const strange = patterns.filter(pattern => !namesSomething(pattern, known))
  return strange.length === 0 ? {} : { warning: `No model has such a name at the moment: ${strange.join(', ')}.` }
}

/** The same of a limit, which may also be of uploads: they count as calls to `<provider>/files`. */
export function limitWarning(model: string | null, known: Known): { readonly warning?: string } {
  if (model === null) return {}
  const takers = [...known.catalogue().providers.values()].filter(({ speaks }) => 'ark-files' in speaks)
  return takers.some(({ id }) => matchesGlob(model, `${id}/files`)) ? {} : nameWarning([model], known)
}

/** A tag that no channel has keeps a key from every model. */
export function tagWarning(tags: readonly string[], { catalogue }: Known): { readonly warning?: string } {
  const channels = catalogue().all()
  const strange = tags.filter(tag => !channels.some(({ id }) => catalogue().ruleOf(id).tags.includes(tag)))
  return strange.length === 0 ? {} : { warning: `No channel has such a tag at the moment: ${strange.join(', ')}.` }
}

interface Rights {
  readonly patterns: readonly string[]
  readonly tags?: readonly string[]
}

/** What is allowed in rights, and perhaps not meant: names and tags that nothing has today. */
export function oddities({ patterns, tags = [] }: Rights, known: Known): readonly string[] {
  return [nameWarning(patterns, known), tagWarning(tags, known)].flatMap(({ warning }) => warning ?? [])
}

/** Whether a pattern fits the name of any model, or could fit one that is not listed. */
function namesSomething(pattern: string, { rules, catalogue }: Known): boolean {
  const head = pattern.split('*')[0]!
  return (
    rules.current.routes.some(({ name }) => matchesGlob(pattern, name) || matchesGlob(name, pattern)) ||
    [...catalogue().providers.values()].some(({ id, models, openModels }) => {
      const isOpen = openModels && (head.startsWith(`${id}/`) || (pattern !== head && `${id}/`.startsWith(head)))
      return isOpen || [...models.keys()].some(model => matchesGlob(pattern, `${id}/${model}`))
    })
  )
}

/** The providers that a name comes to in the end. */
export const providersOf = (name: string, names: Names): ReadonlySet<string> =>
  new Set(names.resolve(name)!.members.map(({ model }) => model.slice(0, Math.max(0, model.indexOf('/')))))

/** The names for which nothing can answer: all channels of all that they stand for are disabled. */
export function deadRoutes(routes: readonly RouteRow[], catalogue: Catalogue): readonly string[] {
  const names = compileRoutes(routes)
  const isDead = (name: string): boolean =>
    [...providersOf(name, names)].every(id => catalogue.channelsOf(id).length === 0)
  return routes.map(({ name }) => name).filter(isDead)
}
