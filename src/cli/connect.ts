// Asks the running gateway, or opens the data folder when none runs.

import { resolve } from 'node:path'
import type { Config } from '../config.ts'
import { readConfig } from '../config.ts'
import { askControl } from '../http/server/control-socket.ts'
import { hasData, socketIn } from '../store/engine/folder.ts'

export type Fields = Record<string, unknown>

/** A problem that the operator can mend, told in a sentence and without a stack. */
export class Problem extends Error {}

/** The command is not written as it must be. */
export class UsageProblem extends Problem {}

/** Only this may make a data folder, and only where it was told to. */
const FIRST = 'keys-create'

/** With the wrong folder a command would else make data of its own, and say that its books agree. */
function dataConfig(command: string): Config {
  const config = readConfig(process.env)
  if (!hasData(config.dataFolder) && (command !== FIRST || process.env.WEIR_DATA === undefined)) {
    throw new Problem(`There is no data of Weir in ${config.dataFolder}. Start it once, or say where with WEIR_DATA.`)
  }
  return config
}

export async function ask(command: string, input: Fields): Promise<Fields> {
  const config = dataConfig(command)
  const answer = (await askControl(socketIn(config.dataFolder), command, input)) as Fields | undefined
  if (answer !== undefined) {
    if (typeof answer.problem === 'string') throw new Problem(answer.problem)
    return answer
  }
  const { openStore } = await import('../boot/open-store.ts')
  const givesUp = command === 'rotate' && input.finish === true && input.force === true
  const store = await openStore(briefly(config), { writeLog: () => {} }, { givesUp })
  try {
    return await store.operator[command]!(input)
  } finally {
    await store.close()
  }
}

/** For a store that is closed again at once: a file of ballast would not even be whole by then. */
export const briefly = (config: Config): Config => ({ ...config, ballastBytes: 0 })

/** As the gateway, which has another working directory, must be told it. */
export function folderOf(given: unknown, usage: string): string {
  if (typeof given !== 'string' || given === '') throw new UsageProblem(`Say which folder: weir ${usage}`)
  return resolve(given)
}
