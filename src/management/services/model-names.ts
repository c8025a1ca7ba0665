// Names for models, set and taken away: the same for whoever does it over the web and for the command line.

import { checkRoutes, compileRoutes } from '../../routing/model-aliases.ts'
import type { By, Seen } from '../../store/audit-log/audited.ts'
import type { RouteRow } from '../../store/rules/rules.ts'
import type { OperatorParts } from '../command.ts'
import { OperatorError } from '../operator-error.ts'
import { Outdated, Unfit } from './channels.ts'
import { memberProblem, nameWarning, providersOf, rulesNow } from './rule-check.ts'
import { routeNameOf } from './rule-input.ts'

type Asker = By & Partial<Seen>

/** There is no such name. */
export class NoRoute extends OperatorError {}

/** Gives what is only odd. */
export async function setRoute(parts: OperatorParts, by: Asker, row: RouteRow): Promise<string | undefined> {
  const { routes } = rulesNow(parts)
  routeNameOf(row.name)
  const twice = row.members.find(({ model }, at) => row.members.findIndex(other => other.model === model) < at)
  if (twice !== undefined) throw new OperatorError(`${twice.model} stands there twice.`)
  const warning = checkRoute(
    parts,
    row,
    routes.filter(other => other.name !== row.name),
  )
  const result = await parts.writer.run('setRoute', { ...row, author: by.actor }, by)
  const done: string = result.done
  if (done === 'stale') throw new Outdated('It has been changed since you have seen it. Look at it again.')
  if (done === 'too_many') throw new Unfit('There are too many names for models. Remove some first.')
  parts.rules.renew()
  return warning
}

/** Throws where it makes no sense, and says what is only odd. */
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
  const open = row.members.map(({ model }) => model).filter(model => model.includes('*'))
  if ([...providers].some(id => catalogue.channelsOf(id).length > 0)) return nameWarning(open, parts).warning
  const disabled = catalogue
    .all()
    .filter(({ providerId }) => providers.has(providerId))
    .map(({ id }) => id)
  if (disabled.length === 0) return 'There is no channel to any of them yet: until there is, its calls get 503.'
  throw new OperatorError(`Nothing could answer: these channels are disabled: ${disabled.join(', ')}.`)
}

export async function removeRoute(parts: OperatorParts, by: Asker, name: string): Promise<string | undefined> {
  const { routes } = parts.rules.current
  const user = routes.find(row => row.name !== name && row.members.some(({ model }) => model === name))
  const result = await parts.writer.run('removeRoute', { name }, by)
  const done: string = result.done
  if (done === 'stale') throw new Outdated('It has been changed since you have seen it. Look at it again.')
  if (done === 'unknown') throw new NoRoute('There is no such name. See: weir routes list.')
  parts.rules.renew()
  return user && `It is a member of "${user.name}", which now does without it.`
}
