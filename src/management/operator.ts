// Builds all operator commands of the command line. They run in a running gateway or on its data folder alone.

import { errorRows, Refusal } from '../base/errors.ts'
import type { OperatorCommand, OperatorCommands } from './command.ts'
import { accountCommands } from './commands/accounts.ts'
import { bookCommands } from './commands/books.ts'
import { channelAskCommands, channelCommands } from './commands/channels.ts'
import { codeCommands } from './commands/codes.ts'
import { doctorCommands } from './commands/doctor.ts'
import { keyCommands } from './commands/keys.ts'
import { limitCommands } from './commands/limits.ts'
import { peopleCommands } from './commands/people.ts'
import { postingCommands } from './commands/postings.ts'
import { priceCommands } from './commands/prices.ts'
import { recordFileCommands } from './commands/record-files.ts'
import { recordCommands } from './commands/records.ts'
import { rotateCommands } from './commands/rotate.ts'
import { routeCommands } from './commands/routes.ts'
import { webhookCommands } from './commands/webhooks.ts'
import type { ManagementParts } from './management-parts.ts'
import { OperatorError } from './operator-error.ts'

export function buildOperator(parts: ManagementParts): OperatorCommands {
  const commands = {
    ...keyCommands(parts),
    ...peopleCommands(parts),
    ...accountCommands(parts),
    ...postingCommands(parts),
    ...codeCommands(parts),
    ...webhookCommands(parts),
    ...recordCommands(parts),
    ...recordFileCommands(parts),
    ...priceCommands(parts),
    ...bookCommands(parts),
    ...doctorCommands(parts),
    ...oneAtATime(parts, { ...limitCommands(parts), ...routeCommands(parts), ...channelCommands(parts) }),
    ...channelAskCommands(parts),
    ...oneAtATime(parts, rotateCommands(parts)),
  }
  return Object.fromEntries(Object.entries(commands).map(([name, run]) => [name, withOperatorErrors(run)]))
}

/** Turns refusals of the ledger, whose codes are for callers, into sentences for the operator. */
const withOperatorErrors =
  (run: OperatorCommand): OperatorCommand =>
  async input => {
    try {
      return await run(input)
    } catch (fault) {
      if (!(fault instanceof Refusal)) throw fault
      throw new OperatorError(
        `${errorRows[fault.code].message} (${fault.message}) Check whether the change was made before you try again.`,
      )
    }
  }

/** Runs these commands one after the other: each checks its change against the current rules before it is written. */
function oneAtATime({ writeQueue: enqueue }: ManagementParts, commands: OperatorCommands): OperatorCommands {
  const queued =
    (run: OperatorCommand): OperatorCommand =>
    async input =>
      await enqueue(() => run(input))
  return Object.fromEntries(Object.entries(commands).map(([name, run]) => [name, queued(run)]))
}
