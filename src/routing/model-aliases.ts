// What the names stand for that an operator has given to models: an alias, all names of a pattern, or a group with
// others to fall back to. Rows may name other rows; what is asked for is flattened to real models.
//
// Rows that make no sense are refused when they are laid down (checkRoutes). Should some come all the same, what cannot
// be followed any further is left out: a name never leads into a circle.

import { bounds } from '../base/bounds.ts'
import type { MemberRow, PolicyName, RouteRow } from '../store/rules/rules.ts'
import { policyNames } from '../store/rules/rules.ts'

export interface Resolved {
  readonly policy: PolicyName
  /** Each a real model, `<provider>/<model>`, and each once. */
  readonly members: readonly MemberRow[]
}

export interface Names {
  /** Undefined for a name that no operator gave. */
  resolve(asked: string): Resolved | undefined
}

export function compileRoutes(rows: readonly RouteRow[]): Names {
  const table = new RouteTable(rows)
  const exact = new Map<string, Resolved>()
  for (const { name } of rows) if (!name.includes('*')) exact.set(name, table.resolve(name)!)
  return { resolve: asked => exact.get(asked) ?? (table.hasPatterns ? table.resolve(asked) : undefined) }
}

/** Throws an Error whose message is a sentence for the operator. */
export function checkRoutes(rows: readonly RouteRow[]): void {
  const seen = new Set<string>()
  for (const row of rows) {
    checkRow(row)
    if (seen.has(row.name)) throw new Error(`The name ${row.name} is given twice.`)
    seen.add(row.name)
  }
  const table = new RouteTable(rows)
  for (const asked of namesToTry(rows)) {
    const { faults, members } = table.follow(asked)
    if (faults.length > 0) throw new Error(faults[0])
    if (members.length > bounds.routeMembersMax) {
      throw new Error(`The name ${asked} stands for ${members.length} models, at most ${bounds.routeMembersMax}.`)
    }
  }
}

/** Every name itself; and of a pattern whatever would lead it to another row. */
function namesToTry(rows: readonly RouteRow[]): ReadonlySet<string> {
  const asked = new Set(rows.map(({ name }) => name))
  for (const { name, members } of rows.filter(row => row.name.includes('*'))) {
    for (const { model } of members) {
      for (const other of rows) {
        const star = starIn(model, other.name)
        if (star !== undefined) asked.add(name.replace('*', () => star))
      }
    }
  }
  return asked
}

const VISIBLE = /^[\x21-\x7e]+$/

function checkRow({ name, policy, members }: RouteRow): void {
  checkText('name', name)
  if (starsIn(name) > 1) throw new Error(`The name ${name} may hold one * only.`)
  if (!policyNames.includes(policy)) {
    throw new Error(`The policy of ${name} must be one of ${policyNames.join(', ')}.`)
  }
  if (!Array.isArray(members) || members.length === 0) throw new Error(`The name ${name} stands for no model.`)
  const sums = new Map<number, number>()
  for (const { model, priority, weight } of members as readonly MemberRow[]) {
    checkText(`model of ${name}`, model)
    if (starsIn(model) > 1) throw new Error(`The model ${model} of ${name} may hold one * only.`)
    if (starsIn(model) > starsIn(name)) throw new Error(`The model ${model} of ${name} holds a *, the name has none.`)
    if (!Number.isSafeInteger(priority)) throw new Error(`The priority of ${model} in ${name} must be a whole number.`)
    if (!(weight >= 0 && weight < Infinity)) throw new Error(`The weight of ${model} in ${name} must be 0 or more.`)
    sums.set(priority, (sums.get(priority) ?? 0) + weight)
  }
  for (const [priority, sum] of sums) {
    if (!(sum > 0)) throw new Error(`The weights of ${name} in priority ${priority} come to nothing.`)
    if (sum === Infinity) throw new Error(`The weights of ${name} in priority ${priority} are too large.`)
  }
}

const starsIn = (text: string): number => text.split('*').length - 1

function checkText(what: string, text: string): void {
  if (typeof text === 'string' && text.length <= bounds.modelNameCharsMax && VISIBLE.test(text)) return
  throw new Error(`A ${what} must have 1 to ${bounds.modelNameCharsMax} visible characters, and no space.`)
}

/** What the `*` of the pattern stands for in a name. Undefined where the name is none of the pattern's. */
function starIn(pattern: string, name: string): string | undefined {
  const at = pattern.indexOf('*')
  if (at < 0) return pattern === name ? '' : undefined
  const [before, after] = [pattern.slice(0, at), pattern.slice(at + 1)]
  const fits = name.length >= before.length + after.length && name.startsWith(before) && name.endsWith(after)
  return fits ? name.slice(at, name.length - after.length) : undefined
}

/** More rows than these are not followed for one name. */
const STEPS_MAX = 1_000

interface Followed {
  readonly members: readonly MemberRow[]
  readonly faults: readonly string[]
}

/** A row as far as it is followed: the names on the way to it. */
interface Step {
  readonly row: RouteRow
  readonly star: string
  readonly asked: string
  readonly path: readonly string[]
  readonly found: Findings
}

interface Findings {
  readonly faults: string[]
  steps: number
}

class RouteTable {
  readonly #exact: ReadonlyMap<string, RouteRow>
  /** The most telling first. */
  readonly #patterns: readonly RouteRow[]

  constructor(rows: readonly RouteRow[]) {
    this.#exact = new Map(rows.filter(({ name }) => !name.includes('*')).map(row => [row.name, row]))
    this.#patterns = rows
      .filter(({ name }) => name.includes('*'))
      .toSorted((one, other) => other.name.length - one.name.length || (one.name < other.name ? -1 : 1))
  }

  get hasPatterns(): boolean {
    return this.#patterns.length > 0
  }

  resolve(asked: string): Resolved | undefined {
    const found = this.#find(asked)
    if (found === undefined) return undefined
    return { policy: found.row.policy, members: this.follow(asked).members.slice(0, bounds.routeMembersMax) }
  }

  follow(asked: string): Followed {
    const found: Findings = { faults: [], steps: 0 }
    const first = this.#find(asked)
    const members = first === undefined ? [] : this.#flatten({ ...first, asked, path: [asked], found })
    return { members, faults: found.faults }
  }

  #find(asked: string): Pick<Step, 'row' | 'star'> | undefined {
    const row = this.#exact.get(asked)
    if (row !== undefined) return { row, star: '' }
    for (const pattern of this.#patterns) {
      const star = starIn(pattern.name, asked)
      if (star !== undefined) return { row: pattern, star }
    }
    return undefined
  }

  #flatten({ row, star, asked, path, found }: Step): readonly MemberRow[] {
    const ranked: Ranked[] = []
    for (const { model, priority, weight } of row.members) {
      const name = model.replace('*', () => star)
      const next = name === asked ? undefined : this.#find(name)
      if (next === undefined) ranked.push({ model: name, priority, inner: 0, weight })
      else if (isFollowed(name, path, found)) {
        const inner = this.#flatten({ ...next, asked: name, path: [...path, name], found })
        for (const nested of shared(inner)) {
          ranked.push({ ...nested, priority, inner: nested.priority, weight: weight * nested.weight })
        }
      }
    }
    return renumbered(ranked)
  }
}

function isFollowed(name: string, path: readonly string[], found: Findings): boolean {
  const { faults } = found
  if (path.includes(name)) {
    faults.push(`The names go round in a circle: ${[...path.slice(path.indexOf(name)), name].join(' → ')}.`)
  } else if (path.length >= bounds.routeDepthMax) {
    faults.push(`The name ${path[0]} leads through more than ${bounds.routeDepthMax} other names.`)
  } else if (++found.steps > STEPS_MAX) {
    faults.push(`The name ${path[0]} leads to too many other names.`)
  } else return true
  return false
}

/** A member by the priorities of two rows: its own, and inside it. */
interface Ranked extends MemberRow {
  readonly inner: number
}

/** With weights as parts of what their priority gets. */
function shared(members: readonly MemberRow[]): readonly MemberRow[] {
  const sums = new Map<number, number>()
  for (const { priority, weight } of members) sums.set(priority, (sums.get(priority) ?? 0) + weight)
  return members.map(member => ({ ...member, weight: member.weight / (sums.get(member.priority)! || 1) }))
}

/** In order, priorities counted from 0. What comes twice counts where it comes first. */
function renumbered(ranked: readonly Ranked[]): readonly MemberRow[] {
  const sorted = ranked.toSorted((one, other) => one.priority - other.priority || one.inner - other.inner)
  const members = new Map<string, MemberRow>()
  let priority = -1
  let last: Ranked | undefined
  for (const member of sorted) {
    const { model, weight } = member
    const isSameRank = last?.priority === member.priority && last.inner === member.inner
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
