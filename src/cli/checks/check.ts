// weir check: reports everything that would stop the gateway from starting, and other faults in its settings and data, all
// at once, without starting it. It creates and changes nothing. It requests the list of models from the base URLs that are set.

import type { CheckFinding } from '../../management/doctor/finding.ts'
import { askState } from '../gateway-state.ts'
import { jsonText } from '../print.ts'
import { checkAddresses } from './addresses.ts'
import { checkConfigFile } from './config-file.ts'
import { checkFolder } from './data-folder.ts'
import type { OutputOptions } from './findings.ts'
import { findingFields, findingLines, hasProblem } from './findings.ts'
import { checkMachine } from './machine.ts'
import { checkProviders } from './providers.ts'
import type { ProcessEnvironment } from './settings.ts'
import { checkIgnoredVariables, checkSettings } from './settings.ts'
import { checkRedisServer } from './shared.ts'

export async function runChecks(env: ProcessEnvironment): Promise<readonly CheckFinding[]> {
  const settings = checkSettings(env)
  const { config, known } = settings
  const providers = checkProviders(config, known)
  const configFile = await checkConfigFile(config, known)
  const isRunning = await isGatewayRunning(config.dataFolder)
  return [
    ...settings.findings,
    ...configFile,
    ...checkIgnoredVariables(env, known),
    ...providers.findings,
    ...(await checkAddresses(config, providers.catalogue)),
    ...(await checkFolder(config, providers.catalogue)),
    ...(await checkRedisServer(config)),
    ...checkMachine(config, env, isRunning),
  ]
}

/** A running gateway occupies its own ports; that is no problem, also if it does not answer. */
async function isGatewayRunning(folder: string): Promise<boolean> {
  try {
    return (await askState(folder)) !== undefined
  } catch {
    return false
  }
}

export async function check({ json }: OutputOptions, say: (line: string) => void): Promise<void> {
  const troubles = await runChecks(process.env)
  const hasNoProblem = !hasProblem(troubles)
  if (json) say(jsonText({ well: hasNoProblem, troubles: findingFields(troubles) }))
  else for (const line of findingLines(troubles)) say(line)
  if (!json && hasNoProblem) say('Weir can start with these settings.')
  if (!hasNoProblem) process.exitCode = 1
}
