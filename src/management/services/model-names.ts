// Sets and removes model names.

import { refusal } from '../../base/errors.ts'
import type { Hint, HintedError } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { checkAliases, compileAliases } from '../../routing/model-aliases.ts'
import type { AuditActor, ExpectedVersion } from '../../store/audit-log/audited-operations.ts'
import type { RouteRow } from '../../store/rules/rules.ts'
import { textOfRoutes } from '../../store/rules/rules.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { ManagementParts } from '../management-parts.ts'
import { memberProblem, nameWarning, providersOf, readRules } from './rule-check.ts'

type Author = AuditActor & Partial<ExpectedVersion>

/** Other processes may change other names between the check of this one and its write. Then it is checked again. */
const TRIES_MAX = 3

type RouteParts = Pick<ManagementParts, 'rules' | 'catalogue' | 'writer'>

/** Returns a warning if the name is allowed but may be a mistake. */
export async function setRoute(parts: RouteParts, by: Author, row: RouteRow): Promise<Hint | undefined> {
  if (row.name.includes(',') || row.name === 'then' || /=\d+$/.test(row.name)) {
    // Otherwise the command line could not write the name as a member.
    throw refusal('field_invalid', hintOf('route_name'), 'name')
  }
  const duplicate = row.members.find(({ model }, at) => row.members.findIndex(other => other.model === model) < at)
  if (duplicate !== undefined)
    throw refusal('field_invalid', hintOf('route_member_twice', { model: duplicate.model }), 'members')
  for (let tries = 1; ; tries++) {
    const { routes } = await readRules(parts)
    const others = routes.filter(({ name }) => name !== row.name)
    const warning = checkRoute(parts, row, others)
    const input = { ...row, author: by.actor, others: textOfRoutes(others) }
    const result = await parts.writer.run('setRoute', input, by)
    const done: string = result.done
    if (done === 'raced' && tries < TRIES_MAX) continue
    if (done === 'stale' || done === 'raced') throw refusal('version_stale', hintOf('route_stale'))
    if (done === 'too_many') throw refusal('state_unfit', hintOf('routes_max'))
    await parts.rules.reload()
    return warning
  }
}

/** Throws if the name is invalid. Returns a warning if it may be a mistake. */
function checkRoute(parts: RouteParts, row: RouteRow, others: readonly RouteRow[]): Hint | undefined {
  const catalogue = parts.catalogue()
  const all = [row, ...others]
  try {
    checkAliases(all)
  } catch (fault) {
    const { hint, field } = fault as HintedError
    throw refusal('field_invalid', hint, field)
  }
  const names = compileAliases(all)
  const problem = memberProblem(row, names, catalogue)
  if (problem !== undefined) throw refusal('field_invalid', problem, 'members')
  const providers = providersOf(row.name, names)
  const patterns = row.members.map(({ model }) => model).filter(model => model.includes('*'))
  if ([...providers].some(id => catalogue.channelsOf(id).length > 0)) return nameWarning(patterns, parts).warning
  const disabled = catalogue
    .all()
    .filter(({ providerId }) => providers.has(providerId))
    .map(({ id }) => id)
  if (disabled.length === 0) return hintOf('warn_no_channel_yet')
  throw refusal('field_invalid', hintOf('route_disabled', { channels: disabled.join(', ') }), 'members')
}

export async function removeRoute(parts: ManagementParts, by: Author, name: string): Promise<Hint | undefined> {
  const { routes } = parts.rules.current
  const result = await parts.writer.run('removeRoute', { name }, by)
  const done: string = result.done
  if (done === 'stale') throw refusal('version_stale', hintOf('route_stale'))
  if (done === 'unknown') throw refusal('resource_unknown', hintOf('route_unknown'))
  await parts.rules.reload()
  const users = usersWithout(name, routes, parts.catalogue())
  return users.length === 0 ? undefined : hintOf('warn_still_listed', { names: users.join(', ') })
}

/** The other names of which a member is no model any more without this one. */
function usersWithout(name: string, routes: readonly RouteRow[], catalogue: Catalogue): readonly string[] {
  const others = routes.filter(row => row.name !== name)
  const [before, after] = [compileAliases(routes), compileAliases(others)]
  const losesAny = (row: RouteRow): boolean =>
    row.members.some(member => {
      const alone = { ...row, members: [member] }
      return !memberProblem(alone, before, catalogue) && memberProblem(alone, after, catalogue) !== undefined
    })
  return others.filter(losesAny).map(other => other.name)
}
