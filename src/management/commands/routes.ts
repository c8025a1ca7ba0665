// Names for models: an alias has one member, a group several. In force from the next call on.

import { checkRoutes, compileRoutes } from '../../routing/names.ts'
import type { PolicyName, RouteRow } from '../../store/rules.ts'
import type { Answer, Commands, Input, OperatorParts } from '../command.ts'
import { author, by, OperatorError } from '../command.ts'
import { memberProblem, providersOf, rulesNow } from '../rule-check.ts'
import { membersOf, memberText, routeNameOf } from '../rule-input.ts'

export function routeCommands(parts: OperatorParts): Commands {
  return {
    'routes-list': async () => ({ routes: rulesNow(parts).routes.map(showRoute) }),
    'routes-set': input => setRoute(parts, input),
    'routes-remove': input => removeRoute(parts, input),
  }
}

async function setRoute(parts: OperatorParts, input: Input): Promise<Answer> {
  const { routes } = rulesNow(parts)
  const name = routeNameOf(input.name)
  const before = routes.find(row => row.name === name)
  const policy = String(input.policy ?? before?.policy ?? 'balanced') as PolicyName
  const row: RouteRow = { name, policy, members: membersOf(input.members) }
  const warning = checkRoute(parts, row, routes.filter(other => other.name !== name))
  const { done } = await parts.writer.run('setRoute', { ...row, author }, by)
  if (done === 'too_many') throw new OperatorError('There are too many names for models. Remove some first.')
  parts.rules.renew()
  return { ...showRoute(row), ...(warning !== undefined && { warning }) }
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
  if ([...providers].some(id => catalogue.channelsOf(id).length > 0)) return undefined
  const disabled = catalogue.all().filter(({ providerId }) => providers.has(providerId)).map(({ id }) => id)
  if (disabled.length === 0) return 'There is no channel to any of them yet: until there is, its calls get 503.'
  throw new OperatorError(`Nothing could answer: these channels are disabled: ${disabled.join(', ')}.`)
}

async function removeRoute(parts: OperatorParts, input: Input): Promise<Answer> {
  const name = String(input.name ?? '')
  const { routes } = parts.rules.current
  const user = routes.find(row => row.name !== name && row.members.some(({ model }) => model === name))
  const { done } = await parts.writer.run('removeRoute', { name }, by)
  if (done === 'unknown') throw new OperatorError('There is no such name. See: weir routes list.')
  parts.rules.renew()
  const warning = user && `It is a member of "${user.name}", which now does without it.`
  return { name, state: 'removed', ...(warning && { warning }) }
}

const showRoute = ({ name, policy, members }: RouteRow): Answer => ({ name, policy, members: memberText(members) })
