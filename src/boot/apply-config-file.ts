// WEIR_CONFIG: applies the configuration file before the gateway listens. A file with a mistake stops the start.

import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Log } from '../base/log.ts'
import type { Config } from '../config.ts'
import { ConfigError } from '../config.ts'
import type { ShownOnce } from '../management/config-file/apply.ts'
import { buildOperator } from '../management/operator.ts'
import type { Store } from './open-store.ts'

/** In the audit log, and as the author of rules. */
const AUTHOR = 'file'

/** Returns the secrets of what the file has created, which are shown once. */
export async function applyConfigFile(
  { configFile, env }: Config,
  { answerWeb, management }: Pick<Store, 'answerWeb' | 'management'>,
  log: Log,
): Promise<readonly ShownOnce[]> {
  if (configFile === undefined) return []
  // Few gateways have such a file, so its parser is not loaded for the others.
  const { readConfigFile } = await import('../management/config-file/read-file.ts')
  const { buildPlan } = await import('../management/config-file/plan.ts')
  const { applyPlan } = await import('../management/config-file/apply.ts')
  const { buildClient } = await import('../management/config-file/requests.ts')
  const parts = {
    client: buildClient(buildOperator(answerWeb, {}, AUTHOR)),
    file: readConfigFile(readText(configFile), configFile),
    prune: false,
    secrets: { env, folder: dirname(resolve(configFile)) },
    nowMs: management.dateMs,
  }
  const plan = await buildPlan(parts)
  const { warnings, created } = await applyPlan(plan, parts.client)
  for (const { action, noun, label } of plan.changes)
    log.info('the configuration file was applied', { action, noun, label })
  for (const warning of warnings) log.warn('the configuration file', { warning })
  // What was created has its ids only now.
  const { described } = plan.changes.length === 0 ? plan : await buildPlan(parts)
  management.ownership.set(described)
  return created
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (fault) {
    throw new ConfigError(`WEIR_CONFIG: the file ${path} cannot be read: ${(fault as Error).message}.`)
  }
}
