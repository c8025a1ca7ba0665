// Sets and removes model names, for the web and for the command line.

import { checkRoutes, compileRoutes } from '../../routing/model-aliases.ts'
import type { By, Seen } from '../../store/audit-log/audited.ts'
import type { RouteRow } from '../../store/rules/rules.ts'
import type { OperatorParts } from '../command.ts'
import { OperatorError } from '../operator-error.ts'
import { Outdated, Unfit } from './channels.ts'
import { memberProblem, nameWarning, providersOf, rulesNow } from './rule-check.ts'
import { routeNameOf } from './rule-input.ts'

type Author = By & Partial<Seen>

/** There is no such model name. */
export class NoRoute extends OperatorError {}

/** Returns a warning if the name is allowed but may be a mistake. */
export async function setRoute(parts: OperatorParts, by: Author, row: RouteRow): Promise<string | undefined> {
  const { routes } = rulesNow(parts)
  routeNameOf(row.name)
  const duplicate = row.members.find(({ model }, at) => row.members.findIndex(other => other.model === model) < at)
  if (duplicate !== undefined) throw new OperatorError(`${duplicate.model} is listed twice.`)
  const warning = checkRoute(
    parts,
    row,
    routes.filter(other => other.name !== row.name),
  )
  const result = await parts.writer.run('setRoute', { ...row, author: by.actor }, by)
  const done: string = result.done
  if (done === 'stale') throw new Outdated('The model name has been changed since you read it. Read it again.')
  if (done === 'too_many') throw new Unfit('There are too many model names. Remove some first.')
  parts.rules.renew()
  return warning
}

/** Throws if the name is invalid. Returns a warning if it may be a mistake. */
function checkRoute(parts: OperatorParts, row: RouteRow, others: readonly RouteRow[]): string | undefined {
  const catalogue = parts.catalogue()
  const all = [row, ...others]
  try {
    checkRoutes(all)
  } catch (fault) {
    throw new OperatorError((fault as Error).message)
  }
  const names = compileRoutes(all)
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
  if (done === 'stale') throw new Outdated('The model name has been changed since you read it. Read it again.')
  if (done === 'unknown') throw new NoRoute('Unknown model name. See: weir routes list.')
  parts.rules.renew()
  return user && `"${user.name}" still lists this name and now ignores it.`
}
