// The members of a route as values.

import type { RouteMember } from '../api/types.ts'

export type Member = RouteMember

/** The members in the order in which they are used. */
export const sortedMembers = (members: readonly Member[]): readonly Member[] =>
  members.toSorted((a, b) => a.priority - b.priority)

/** The members of each step. */
export function stepsOf(members: readonly Member[]): readonly (readonly Member[])[] {
  const steps = new Map<number, Member[]>()
  for (const member of sortedMembers(members)) {
    const step = steps.get(member.priority)
    if (step === undefined) steps.set(member.priority, [member])
    else step.push(member)
  }
  return [...steps.values()]
}

/** What the weights give a member among those of its step, from 0 to 1. Without any weight, all have the same. */
export function shareOf(members: readonly Member[], at: number): number {
  const member = members[at]!
  const step = members.filter(({ priority }) => priority === member.priority)
  const sum = step.reduce((total, { weight }) => total + weight, 0)
  return sum === 0 ? 1 / step.length : member.weight / sum
}
