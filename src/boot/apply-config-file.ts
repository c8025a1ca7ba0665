// WEIR_CONFIG: applies the configuration file before the gateway answers any request. A file with a mistake stops the start.
// Everything else that can fail in a start has succeeded before: a start that fails then leaves no half of a file behind.

import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Log } from '../base/log.ts'
import type { Config } from '../config.ts'
import { ConfigError } from '../config.ts'
import { buildOperator } from '../management/operator.ts'
import type { Store } from './open-store.ts'
import type { Runtime } from './runtime.ts'

/** In the audit log, and as the author of rules. */
const AUTHOR = 'file'

export async function applyConfigFile(
  { configFile, env }: Config,
  { answerWeb, management }: Pick<Store, 'answerWeb' | 'management'>,
  { log, onCreatedByFile }: Pick<Runtime, 'onCreatedByFile'> & { readonly log: Log },
): Promise<void> {
  if (configFile === undefined) return
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
  const { warnings } = await applyPlan(plan, parts.client, onCreatedByFile)
  for (const { action, noun, label } of plan.changes)
    log.info('the configuration file was applied', { action, noun, label })
  for (const warning of warnings) log.warn('the configuration file', { warning })
  // What was created has its ids only now.
  const { described } = plan.changes.length === 0 ? plan : await buildPlan(parts)
  management.ownership.set(described)
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (fault) {
    throw new ConfigError(`WEIR_CONFIG: the file ${path} cannot be read: ${(fault as Error).message}.`)
  }
}
