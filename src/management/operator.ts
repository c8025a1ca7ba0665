// What an operator can do from the command line, on a running gateway or on its data folder alone.

import type { Commands, OperatorParts } from './command.ts'
import { accountCommands } from './commands/accounts.ts'
import { bookCommands } from './commands/books.ts'
import { keyCommands } from './commands/keys.ts'
import { postingCommands } from './commands/postings.ts'
import { priceCommands } from './commands/prices.ts'
import { recordCommands } from './commands/records.ts'

export function buildOperator(parts: OperatorParts): Commands {
  return {
    ...keyCommands(parts),
    ...accountCommands(parts),
    ...postingCommands(parts),
    ...recordCommands(parts),
    ...priceCommands(parts),
    ...bookCommands(parts),
  }
}
