// Runs an operator command: in the running gateway, or on the data folder if no gateway runs.

import { resolve } from 'node:path'
import type { Config } from '../config.ts'
import { readConfig } from '../config.ts'
import { sendControlCommand } from '../http/server/control-socket.ts'
import { controlSocketOf, hasData } from '../store/engine/folder.ts'

export type CommandFields = Record<string, unknown>

/** An error that the user can fix. It is printed as one sentence, without a stack. */
export class Problem extends Error {}

/** The arguments of the command are wrong. */
export class UsageProblem extends Problem {}

/** The only command that may create a data folder, and only if WEIR_DATA says where. */
const CREATING_COMMAND = 'keys-create'

/** Refuses a folder without data. Otherwise a wrong folder would get new, empty data, and its audit would pass. */
function dataConfig(command: string): Config {
  const config = readConfig(process.env)
  if (!hasData(config.dataFolder) && (command !== CREATING_COMMAND || process.env.WEIR_DATA === undefined)) {
    throw new Problem(
      `There is no data of Weir in ${config.dataFolder}. Start Weir once, or set WEIR_DATA to its data folder.`,
    )
  }
  return config
}

export async function sendCommand(command: string, input: CommandFields): Promise<CommandFields> {
  const config = dataConfig(command)
  const answer = (await sendControlCommand(controlSocketOf(config.dataFolder), command, input)) as
    | CommandFields
    | undefined
  if (answer !== undefined) {
    if (typeof answer.problem === 'string') throw new Problem(answer.problem)
    return answer
  }
  const { openStore } = await import('../boot/open-store.ts')
  const givesUp = command === 'rotate' && input.finish === true && input.force === true
  const store = await openStore(withoutBallast(config), { writeLog: () => {} }, { ignoresLostSecrets: givesUp })
  try {
    return await store.operator[command]!(input)
  } finally {
    await store.close()
  }
}

/** For a store that is closed again at once: there is no time to write the ballast file. */
export const withoutBallast = (config: Config): Config => ({ ...config, ballastBytes: 0 })

/** Returns an absolute path, because the gateway has another working directory. */
export function resolveFolder(path: unknown, usage: string): string {
  if (typeof path !== 'string' || path === '') throw new UsageProblem(`The folder is missing. Usage: weir ${usage}`)
  return resolve(path)
}
