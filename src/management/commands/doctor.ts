// What a running gateway knows of itself and nobody else can look up.

import type { Commands, OperatorParts } from '../command.ts'

export function doctorCommands({ state }: Pick<OperatorParts, 'state'>): Commands {
  return { doctor: async () => ({ state: state() ?? null }) }
}
