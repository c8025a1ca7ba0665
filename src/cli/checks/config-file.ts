// Checks the configuration file of WEIR_CONFIG as far as that is possible without the data: its form, and its secrets.

import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Config } from '../../config.ts'
import type { CheckFinding } from '../../management/doctor/finding.ts'
import { problem } from './findings.ts'

const NAME = 'WEIR_CONFIG'

/** Adds the variables that the file refers to to `known`. */
export async function checkConfigFile(
  { configFile, env }: Config,
  known: Set<string>,
): Promise<readonly CheckFinding[]> {
  if (configFile === undefined) return []
  let text: string
  try {
    text = readFileSync(configFile, 'utf8')
  } catch (fault) {
    return [problem(NAME, `The file cannot be read: ${(fault as Error).message}.`, `Correct ${NAME}, or remove it.`)]
  }
  const { readConfigFile, secretReferences } = await import('../../management/config-file/read-file.ts')
  const { readSecret } = await import('../../management/config-file/secret-source.ts')
  try {
    const file = readConfigFile(text, configFile)
    return secretReferences(file).flatMap(({ reference, path }) => {
      if (reference.env !== undefined) known.add(reference.env)
      if (readSecret(reference, { env, folder: dirname(resolve(configFile)) }) !== undefined) return []
      const missing = file.problemAt(path, 'this secret does not exist or is empty.')
      return [problem(NAME, missing, 'Set it, unless the gateway has the secret already.')]
    })
  } catch (fault) {
    return (fault as Error).message.split('\n').map(line => problem(NAME, line, 'Correct the file.'))
  }
}
