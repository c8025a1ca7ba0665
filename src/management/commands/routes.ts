// Commands about model names: an alias has one member, a group has several. Changes apply from the next call on.

import type { PolicyName, RouteRow } from '../../store/rules/rules.ts'
import type { CommandAnswer, CommandInput, OperatorCommands, OperatorParts } from '../command.ts'
import { byOperator } from '../command.ts'
import { removeRoute, setRoute } from '../services/model-names.ts'
import { readRules } from '../services/rule-check.ts'
import { formatMembers, parseMembers, parseRouteName } from '../services/rule-input.ts'

export function routeCommands(parts: OperatorParts): OperatorCommands {
  return {
    'routes-list': async () => ({ routes: readRules(parts).routes.map(showRoute) }),
    'routes-set': input => set(parts, input),
    'routes-remove': input => remove(parts, input),
  }
}

async function set(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const { routes } = readRules(parts)
  const name = parseRouteName(input.name)
  const before = routes.find(row => row.name === name)
  const policy = String(input.policy ?? before?.policy ?? 'balanced') as PolicyName
  const row: RouteRow = { name, policy, members: parseMembers(input.members) }
  const warning = await setRoute(parts, byOperator, row)
  return { ...showRoute(row), ...(warning !== undefined && { warning }) }
}

async function remove(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const name = String(input.name ?? '')
  const warning = await removeRoute(parts, byOperator, name)
  return { name, state: 'removed', ...(warning && { warning }) }
}

const showRoute = ({ name, policy, members }: RouteRow): CommandAnswer => ({
  name,
  policy,
  members: formatMembers(members),
})
