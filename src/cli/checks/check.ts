// weir check: reports everything that would stop the gateway from starting, all at once, without starting it. It
// creates and changes nothing. It requests the list of models from the base URLs that are set.

import { askControl } from '../../http/server/control-socket.ts'
import { socketIn } from '../../store/engine/folder.ts'
import { jsonText } from '../print.ts'
import { checkAddresses } from './addresses.ts'
import { checkFolder, secretVariables } from './data-folder.ts'
import { checkMachine } from './machine.ts'
import type { Trouble, Wanted } from './problem.ts'
import { inOrder, isBad, troubleLines } from './problem.ts'
import { checkProviders } from './providers.ts'
import type { Environment } from './settings.ts'
import { checkNames, checkSettings } from './settings.ts'

/** A command that no gateway knows. Any reply to it proves that a gateway is running. */
const UNKNOWN_COMMAND = 'nothing'

export async function findTroubles(env: Environment): Promise<readonly Trouble[]> {
  const settings = checkSettings(env)
  const { config, known } = settings
  const providers = checkProviders(config, known)
  for (const name of secretVariables) known.add(name)
  const isRunning = await isGatewayRunning(config.dataFolder)
  return [
    ...settings.troubles,
    ...checkNames(env, known),
    ...providers.troubles,
    ...(await checkAddresses(config, providers.catalogue)),
    ...checkFolder(config, providers.catalogue),
    ...checkMachine(config, env, isRunning),
  ]
}

/** A running gateway occupies its own ports; that is no problem. */
async function isGatewayRunning(folder: string): Promise<boolean> {
  try {
    return (await askControl(socketIn(folder), UNKNOWN_COMMAND, {})) !== undefined
  } catch {
    return false
  }
}

export async function check({ json }: Wanted, say: (line: string) => void): Promise<void> {
  const troubles = await findTroubles(process.env)
  const hasNoProblem = !isBad(troubles)
  if (json) say(jsonText({ well: hasNoProblem, troubles: inOrder(troubles) }))
  else for (const line of troubleLines(troubles)) say(line)
  if (!json && hasNoProblem) say('Weir can start with these settings.')
  if (!hasNoProblem) process.exitCode = 1
}
