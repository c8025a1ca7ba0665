// The command that returns the state of a running gateway.

import type { Commands, OperatorParts } from '../command.ts'

export function doctorCommands({ state }: Pick<OperatorParts, 'state'>): Commands {
  return { doctor: async () => ({ state: state() ?? null }) }
}
