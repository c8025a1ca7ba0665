// weir check: what a start would stumble over, all of it at once, without starting. Nothing is made or changed;
// base URLs that are set are asked for their models.

import { askControl } from '../http/control-socket.ts'
import { socketIn } from '../store/folder.ts'
import { checkAddresses } from './check-addresses.ts'
import { checkFolder, secretVariables } from './check-folder.ts'
import { checkMachine } from './check-machine.ts'
import { checkProviders } from './check-providers.ts'
import type { Environment } from './check-settings.ts'
import { checkNames, checkSettings } from './check-settings.ts'
import { jsonText } from './printing.ts'
import type { Trouble, Wanted } from './trouble.ts'
import { inOrder, isBad, troubleLines } from './trouble.ts'

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
