// The table of machine commands: what the operator can only do on the machine of the gateway, and no person over HTTP.

import type { ManagementParts } from '../management-parts.ts'
import { bookCommands } from './books.ts'
import type { MachineCommands } from './command.ts'
import { peopleCommands } from './people.ts'
import { rotateCommand } from './rotate.ts'

export const buildMachineCommands = (parts: ManagementParts): MachineCommands => ({
  ...bookCommands(parts),
  ...peopleCommands(parts),
  rotate: rotateCommand(parts),
})
