// The command that returns the state of a running gateway.

import type { OperatorCommands, OperatorParts } from '../command.ts'

export function doctorCommands({ state }: Pick<OperatorParts, 'state'>): OperatorCommands {
  return { doctor: async () => ({ state: state() ?? null }) }
}
