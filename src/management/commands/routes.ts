// Commands about model names: an alias has one member, a group has several. Changes apply from the next call on.

import type { PolicyName, RouteRow } from '../../store/rules/rules.ts'
import type { Answer, Commands, Input, OperatorParts } from '../command.ts'
import { by } from '../command.ts'
import { removeRoute, setRoute } from '../services/model-names.ts'
import { rulesNow } from '../services/rule-check.ts'
import { membersOf, memberText, routeNameOf } from '../services/rule-input.ts'

export function routeCommands(parts: OperatorParts): Commands {
  return {
    'routes-list': async () => ({ routes: rulesNow(parts).routes.map(showRoute) }),
    'routes-set': input => set(parts, input),
    'routes-remove': input => remove(parts, input),
  }
}

async function set(parts: OperatorParts, input: Input): Promise<Answer> {
  const { routes } = rulesNow(parts)
  const name = routeNameOf(input.name)
  const before = routes.find(row => row.name === name)
  const policy = String(input.policy ?? before?.policy ?? 'balanced') as PolicyName
  const row: RouteRow = { name, policy, members: membersOf(input.members) }
  const warning = await setRoute(parts, by, row)
  return { ...showRoute(row), ...(warning !== undefined && { warning }) }
}

async function remove(parts: OperatorParts, input: Input): Promise<Answer> {
  const name = String(input.name ?? '')
  const warning = await removeRoute(parts, by, name)
  return { name, state: 'removed', ...(warning && { warning }) }
}

const showRoute = ({ name, policy, members }: RouteRow): Answer => ({ name, policy, members: memberText(members) })
