// weir check: what a start would stumble over, all of it at once, without starting. Nothing is made or changed;
// base URLs that are set are asked for their models.

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

/** Asked of a gateway only to learn whether one is there; it knows no such command. */
const NOTHING = 'nothing'

export async function findTroubles(env: Environment): Promise<readonly Trouble[]> {
  const settings = checkSettings(env)
  const { config, known } = settings
  const providers = checkProviders(config, known)
  for (const name of secretVariables) known.add(name)
  const isRunning = await runsOn(config.dataFolder)
  return [
    ...settings.troubles,
    ...checkNames(env, known),
    ...providers.troubles,
    ...(await checkAddresses(config, providers.catalogue)),
    ...checkFolder(config, providers.catalogue),
    ...checkMachine(config, env, isRunning),
  ]
}

/** Its ports are taken by itself then. */
async function runsOn(folder: string): Promise<boolean> {
  try {
    return (await askControl(socketIn(folder), NOTHING, {})) !== undefined
  } catch {
    return false
  }
}

export async function check({ json }: Wanted, say: (line: string) => void): Promise<void> {
  const troubles = await findTroubles(process.env)
  const isWell = !isBad(troubles)
  if (json) say(jsonText({ well: isWell, troubles: inOrder(troubles) }))
  else for (const line of troubleLines(troubles)) say(line)
  if (!json && isWell) say('Weir can start with these settings.')
  if (!isWell) process.exitCode = 1
}
