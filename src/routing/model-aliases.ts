// Resolves the model names that an operator has configured: an alias, a pattern with `*`, or a group with fallbacks.
// Rows may refer to other rows; a requested name is flattened to a list of real models.
//
// checkAliases refuses invalid rows when an operator saves them. If invalid rows are loaded all the same, references
// that cannot be followed (circles, too deep) are left out.

import { bounds } from '../base/bounds.ts'
import type { Hint } from '../base/hints.ts'
import { HintedError, hintOf } from '../base/hints.ts'
import type { MemberRow, PolicyName, RouteRow } from '../store/rules/rules.ts'
import { policyNames } from '../store/rules/rules.ts'

export interface ResolvedModel {
  readonly policy: PolicyName
  /** Real models, `<provider>/<model>`, each at most once. */
  readonly members: readonly MemberRow[]
}

export interface ModelAliases {
  /** Undefined for a name that no operator has configured. */
  resolve(name: string): ResolvedModel | undefined
  /** False for a name that only a pattern matches. */
  isExact(name: string): boolean
}

export function compileAliases(rows: readonly RouteRow[]): ModelAliases {
  const table = new RouteTable(rows)
  const exact = new Map<string, ResolvedModel>()
  for (const { name } of rows) if (!name.includes('*')) exact.set(name, table.resolve(name)!)
  return {
    resolve: name => exact.get(name) ?? (table.hasPatterns ? table.resolve(name) : undefined),
    isExact: name => exact.has(name),
  }
}

/** Checks rows before they are saved. Throws an Error whose message is shown to the operator. */
export function checkAliases(rows: readonly RouteRow[]): void {
  const seen = new Set<string>()
  for (const row of rows) {
    checkRow(row)
    if (seen.has(row.name)) throw new HintedError(hintOf('route_twice', { name: row.name }), 'name')
    seen.add(row.name)
  }
  const table = new RouteTable(rows)
  for (const name of namesToCheck(rows)) {
    const { problems, members } = table.expand(name)
    if (problems.length > 0) throw new HintedError(problems[0]!)
    if (members.length > bounds.routeMembersMax) {
      throw new HintedError(
        hintOf('route_members_max', { name, count: members.length, max: bounds.routeMembersMax }),
        'members',
      )
    }
  }
}

/** Every configured name; and for each pattern, example names that lead from it to another row. */
function namesToCheck(rows: readonly RouteRow[]): ReadonlySet<string> {
  const names = new Set(rows.map(({ name }) => name))
  for (const { name, members } of rows.filter(row => row.name.includes('*'))) {
    for (const { model } of members) {
      for (const other of rows) {
        const star = matchPattern(model, other.name)
        if (star !== undefined) names.add(name.replace('*', () => star))
      }
    }
  }
  return names
}

const VISIBLE = /^[\x21-\x7e]+$/

function checkRow({ name, policy, members }: RouteRow): void {
  checkText(name, 'route_name_text')
  if (starsIn(name) > 1) throw new HintedError(hintOf('route_name_stars', { name }), 'name')
  if (!policyNames.includes(policy)) {
    throw new HintedError(hintOf('route_policy', { name, policies: policyNames.join(', ') }), 'policy')
  }
  if (!Array.isArray(members) || members.length === 0) throw new HintedError(hintOf('route_empty', { name }), 'members')
  const sums = new Map<number, number>()
  for (const { model, priority, weight } of members as readonly MemberRow[]) {
    checkText(model, 'route_model_text', name)
    if (starsIn(model) > 1) throw new HintedError(hintOf('route_model_stars', { model, name }), 'members')
    if (starsIn(model) > starsIn(name)) throw new HintedError(hintOf('route_model_star', { model, name }), 'members')
    if (!Number.isSafeInteger(priority)) throw new HintedError(hintOf('route_priority', { model, name }), 'members')
    if (!(weight >= 0 && weight < Infinity)) throw new HintedError(hintOf('route_weight', { model, name }), 'members')
    sums.set(priority, (sums.get(priority) ?? 0) + weight)
  }
  for (const [priority, sum] of sums) {
    if (!(sum > 0)) throw new HintedError(hintOf('route_weights_zero', { name, priority }), 'members')
    if (sum === Infinity) throw new HintedError(hintOf('route_weights_large', { name, priority }), 'members')
  }
}

const starsIn = (text: string): number => text.split('*').length - 1

function checkText(text: string, code: 'route_name_text' | 'route_model_text', name = ''): void {
  if (typeof text === 'string' && text.length <= bounds.modelNameCharsMax && VISIBLE.test(text)) return
  const field = code === 'route_name_text' ? 'name' : 'members'
  throw new HintedError(hintOf(code, { name, max: bounds.modelNameCharsMax }), field)
}

/** The text that `*` matches in the name. Undefined when the name does not match the pattern. */
function matchPattern(pattern: string, name: string): string | undefined {
  const at = pattern.indexOf('*')
  if (at < 0) return pattern === name ? '' : undefined
  const [before, after] = [pattern.slice(0, at), pattern.slice(at + 1)]
  const fits = name.length >= before.length + after.length && name.startsWith(before) && name.endsWith(after)
  return fits ? name.slice(at, name.length - after.length) : undefined
}

/** The most references that are followed for one name. */
const STEPS_MAX = 1_000

interface Expansion {
  readonly members: readonly MemberRow[]
  readonly problems: readonly Hint[]
}

/** A row and the text that its `*` matched. */
interface Match {
  readonly row: RouteRow
  readonly star: string
}

/** One row on the way from a requested name to real models. */
interface Step extends Match {
  readonly name: string
  /** The names from the requested one to this one. */
  readonly path: readonly string[]
  readonly progress: Progress
}

interface Progress {
  readonly problems: Hint[]
  steps: number
}

class RouteTable {
  readonly #exact: ReadonlyMap<string, RouteRow>
  /** The most specific (longest) first. */
  readonly #patterns: readonly RouteRow[]

  constructor(rows: readonly RouteRow[]) {
    this.#exact = new Map(rows.filter(({ name }) => !name.includes('*')).map(row => [row.name, row]))
    this.#patterns = rows
      .filter(({ name }) => name.includes('*'))
      .toSorted((a, b) => b.name.length - a.name.length || (a.name < b.name ? -1 : 1))
  }

  get hasPatterns(): boolean {
    return this.#patterns.length > 0
  }

  resolve(name: string): ResolvedModel | undefined {
    const match = this.#find(name)
    if (match === undefined) return undefined
    return { policy: match.row.policy, members: this.expand(name).members.slice(0, bounds.routeMembersMax) }
  }

  expand(name: string): Expansion {
    const progress: Progress = { problems: [], steps: 0 }
    const match = this.#find(name)
    const members = match === undefined ? [] : this.#flatten({ ...match, name, path: [name], progress })
    return { members, problems: progress.problems }
  }

  #find(name: string): Match | undefined {
    const row = this.#exact.get(name)
    if (row !== undefined) return { row, star: '' }
    for (const pattern of this.#patterns) {
      const star = matchPattern(pattern.name, name)
      if (star !== undefined) return { row: pattern, star }
    }
    return undefined
  }

  #flatten({ row, star, name, path, progress }: Step): readonly MemberRow[] {
    const ranked: RankedMember[] = []
    for (const { model, priority, weight } of row.members) {
      const target = model.replace('*', () => star)
      const next = target === name ? undefined : this.#find(target)
      if (next === undefined) ranked.push({ model: target, priority, innerPriority: 0, weight })
      else if (mayFollow(target, path, progress)) {
        const inner = this.#flatten({ ...next, name: target, path: [...path, target], progress })
        for (const nested of normalizeWeights(inner)) {
          ranked.push({ ...nested, priority, innerPriority: nested.priority, weight: weight * nested.weight })
        }
      }
    }
    return mergeRanks(ranked)
  }
}

function mayFollow(name: string, path: readonly string[], progress: Progress): boolean {
  const { problems } = progress
  if (path.includes(name)) {
    problems.push(hintOf('route_circle', { names: [...path.slice(path.indexOf(name)), name].join(' → ') }))
  } else if (path.length >= bounds.routeDepthMax) {
    problems.push(hintOf('route_depth', { name: path[0]!, max: bounds.routeDepthMax }))
  } else if (++progress.steps > STEPS_MAX) {
    problems.push(hintOf('route_steps', { name: path[0]!, max: STEPS_MAX }))
  } else return true
  return false
}

/** A member with two priorities: of the row that refers to it, and inside the nested row. */
interface RankedMember extends MemberRow {
  readonly innerPriority: number
}

/** Scales the weights of each priority so that their sum is 1. */
function normalizeWeights(members: readonly MemberRow[]): readonly MemberRow[] {
  const sums = new Map<number, number>()
  for (const { priority, weight } of members) sums.set(priority, (sums.get(priority) ?? 0) + weight)
  return members.map(member => ({ ...member, weight: member.weight / (sums.get(member.priority)! || 1) }))
}

/** Sorts members and numbers their priorities from 0. A repeated model counts at its first priority only. */
function mergeRanks(ranked: readonly RankedMember[]): readonly MemberRow[] {
  const sorted = ranked.toSorted((a, b) => a.priority - b.priority || a.innerPriority - b.innerPriority)
  const members = new Map<string, MemberRow>()
  let priority = -1
  let last: RankedMember | undefined
  for (const member of sorted) {
    const { model, weight } = member
    const isSameRank = last?.priority === member.priority && last.innerPriority === member.innerPriority
    const known = members.get(model)
    if (known === undefined) {
      members.set(model, { model, priority: isSameRank ? priority : ++priority, weight })
      last = member
    } else if (isSameRank && known.priority === priority) {
      members.set(model, { model, priority, weight: known.weight + weight })
    }
  }
  return [...members.values()]
}
