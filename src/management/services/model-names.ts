// Sets and removes model names, for the web and for the command line.

import { checkAliases, compileAliases } from '../../routing/model-aliases.ts'
import type { AuditActor, ExpectedVersion } from '../../store/audit-log/audited-operations.ts'
import type { RouteRow } from '../../store/rules/rules.ts'
import type { OperatorParts } from '../command.ts'
import { OperatorError } from '../operator-error.ts'
import { StateConflict, VersionOutdated } from './channels.ts'
import { memberProblem, nameWarning, providersOf, readRules } from './rule-check.ts'
import { parseRouteName } from './rule-input.ts'

type Author = AuditActor & Partial<ExpectedVersion>

/** There is no such model name. */
export class RouteUnknown extends OperatorError {}

/** Returns a warning if the name is allowed but may be a mistake. */
export async function setRoute(parts: OperatorParts, by: Author, row: RouteRow): Promise<string | undefined> {
  const { routes } = readRules(parts)
  parseRouteName(row.name)
  const duplicate = row.members.find(({ model }, at) => row.members.findIndex(other => other.model === model) < at)
  if (duplicate !== undefined) throw new OperatorError(`${duplicate.model} is listed twice.`)
  const warning = checkRoute(
    parts,
    row,
    routes.filter(other => other.name !== row.name),
  )
  const result = await parts.writer.run('setRoute', { ...row, author: by.actor }, by)
  const done: string = result.done
  if (done === 'stale') throw new VersionOutdated('The model name has been changed since you read it. Read it again.')
  if (done === 'too_many') throw new StateConflict('There are too many model names. Remove some first.')
  parts.rules.reload()
  return warning
}

/** Throws if the name is invalid. Returns a warning if it may be a mistake. */
function checkRoute(parts: OperatorParts, row: RouteRow, others: readonly RouteRow[]): string | undefined {
  const catalogue = parts.catalogue()
  const all = [row, ...others]
  try {
    checkAliases(all)
  } catch (fault) {
    throw new OperatorError((fault as Error).message)
  }
  const names = compileAliases(all)
  const problem = memberProblem(row, names, catalogue)
  if (problem !== undefined) throw new OperatorError(problem)
  const providers = providersOf(row.name, names)
  const patterns = row.members.map(({ model }) => model).filter(model => model.includes('*'))
  if ([...providers].some(id => catalogue.channelsOf(id).length > 0)) return nameWarning(patterns, parts).warning
  const disabled = catalogue
    .all()
    .filter(({ providerId }) => providers.has(providerId))
    .map(({ id }) => id)
  if (disabled.length === 0) return 'None of these models has a channel yet. Until one has, calls to this name get 503.'
  throw new OperatorError(`No channel can serve this name: these channels are disabled: ${disabled.join(', ')}.`)
}

export async function removeRoute(parts: OperatorParts, by: Author, name: string): Promise<string | undefined> {
  const { routes } = parts.rules.current
  const user = routes.find(row => row.name !== name && row.members.some(({ model }) => model === name))
  const result = await parts.writer.run('removeRoute', { name }, by)
  const done: string = result.done
  if (done === 'stale') throw new VersionOutdated('The model name has been changed since you read it. Read it again.')
  if (done === 'unknown') throw new RouteUnknown('Unknown model name. See: weir routes list.')
  parts.rules.reload()
  return user && `"${user.name}" still lists this name and now ignores it.`
}
