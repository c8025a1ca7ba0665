// Reads the secrets that a configuration file refers to: from the environment, or from files.

import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { bounds } from '../../base/bounds.ts'
import { Secret } from '../../base/secrets/secret.ts'
import type { SecretReference } from './file-schema.ts'

/** Why a reference leads to no secret. The message never contains the secret. */
export class SecretProblem extends Error {}

export interface SecretSource {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where relative paths begin: the folder of the configuration file. */
  readonly folder: string
}

/** Undefined if the variable is not set or the file does not exist. */
export function readSecret({ env: name, file }: SecretReference, { env, folder }: SecretSource): Secret | undefined {
  const text = name === undefined ? readSecretFile(resolve(folder, file!), file!) : env[name]?.trim()
  if (text === undefined || text === '') return undefined
  if (text.length > bounds.credentialCharsMax) {
    throw new SecretProblem(`the secret has more than ${bounds.credentialCharsMax} characters`)
  }
  return new Secret(text)
}

function readSecretFile(path: string, written: string): string | undefined {
  try {
    // A device or a pipe could be read without end.
    if (!statSync(path).isFile()) throw new SecretProblem(`${written} is not a file`)
    if (statSync(path).size > 4 * bounds.credentialCharsMax) throw new SecretProblem(`${written} is too large`)
    return readFileSync(path, 'utf8').trim()
  } catch (fault) {
    if (fault instanceof SecretProblem) throw fault
    if ((fault as { code?: unknown }).code === 'ENOENT') return undefined
    throw new SecretProblem(`${written} cannot be read: ${(fault as Error).message}`)
  }
}
