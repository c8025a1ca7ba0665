// Checks the data folder as a start would read it, without creating or changing anything in it.

import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Seal } from '../../base/secrets/seal.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import type { Config } from '../../config.ts'
import type { CheckFinding } from '../../management/doctor/finding.ts'
import { controlSocketOf, databaseOf, FolderError, restoreNoteOf } from '../../store/engine/folder.ts'
import { hasDatabase, inspectFolder } from '../../store/engine/folder-inspection.ts'
import { refuseMovedData } from '../../store/engine/moved-folder.ts'
import { missingSecretText } from '../../store/secrets/secret-check.ts'
import { readSecretFile, readSecretVariable, secretSources } from '../../store/secrets/secret-files.ts'
import type { SecretKind } from '../../store/secrets/secret-kinds.ts'
import { secretKinds } from '../../store/secrets/secret-kinds.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import { note, problem } from './findings.ts'
import type { SecretRings } from './shared.ts'
import { checkPostgres } from './shared.ts'
import { checkStoredRules } from './stored-rules.ts'

const GROUP_AND_OTHERS = 0o077

export async function checkFolder(config: Config, catalogue: Catalogue): Promise<readonly CheckFinding[]> {
  const folder = resolve(config.dataFolder)
  const [pathTroubles] = catchFolderError('WEIR_DATA', () => void controlSocketOf(folder))
  const troubles: CheckFinding[] = [...pathTroubles]
  const existing = existingFolder(folder)
  if (!statSync(existing).isDirectory()) {
    return [problem('WEIR_DATA', `${existing} is a file, not a folder.`, 'Set WEIR_DATA to another folder.')]
  }
  const { databaseUrl } = config
  if (databaseUrl !== undefined) {
    const rings = checkSecrets(folder, config.env, troubles)
    const inFolder = existsSync(folder) ? [...checkWritable(folder), ...checkFolderMode(folder)] : checkParent(folder)
    return [...troubles, ...inFolder, ...(await checkPostgres({ databaseUrl, folder, rings, catalogue }))]
  }
  if (existsSync(restoreNoteOf(folder))) {
    return [
      problem('WEIR_DATA', `A restore to ${folder} was interrupted.`, 'Run it again: weir restore <backup folder>'),
    ]
  }
  troubles.push(...catchFolderError('WEIR_DATA', () => refuseMovedData(folder))[0])
  const rings = checkSecrets(folder, config.env, troubles)
  if (!existsSync(folder)) return [...troubles, ...checkParent(folder)]
  troubles.push(...checkWritable(folder), ...checkFolderMode(folder))
  return hasDatabase(folder) ? [...troubles, ...(await checkDatabase(folder, rings, catalogue))] : troubles
}

/** Runs a check and returns its result. A FolderError becomes a finding. */
function catchFolderError<T>(about: string, run: () => T): [readonly CheckFinding[], T | undefined] {
  try {
    return [[], run()]
  } catch (fault) {
    if (!(fault instanceof FolderError)) throw fault
    return [[problem(about, fault.message, '')], undefined]
  }
}

/** The first start creates a missing data folder, so the nearest existing folder above it must be writable. */
const checkParent = (folder: string): readonly CheckFinding[] => checkWritable(existingFolder(dirname(folder)))

function existingFolder(folder: string): string {
  let above = folder
  while (!existsSync(above)) above = dirname(above)
  return above
}

function checkWritable(folder: string): readonly CheckFinding[] {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return []
  } catch (fault) {
    const message = `This user cannot write to ${folder}: ${(fault as Error).message}.`
    return [problem('WEIR_DATA', message, `Give the folder to the user that runs Weir (chown), or set another folder.`)]
  }
}

/** The mode of the folder protects every file in it. */
export const checkFolderMode = (folder: string): readonly CheckFinding[] => checkMode(folder, '700')

function checkMode(path: string, wanted: string): readonly CheckFinding[] {
  const mode = statSync(path).mode & 0o777
  if ((mode & GROUP_AND_OTHERS) === 0) return []
  const message = `Users other than its owner may access it (mode ${mode.toString(8)}).`
  return [problem(path, message, `chmod ${wanted} ${path}`)]
}

/** Returns the secrets that exist and can be read; adds what is wrong with the others to `troubles`. */
function checkSecrets(folder: string, env: Config['env'], troubles: CheckFinding[]): SecretRings {
  const read = (kind: SecretKind): SecretRing | undefined => {
    const { variable, file: name } = secretSources[kind]
    const [fromEnvironment, ring] = catchFolderError(variable, () => readSecretVariable(kind, env))
    troubles.push(...fromEnvironment)
    const file = join(folder, name)
    if (ring !== undefined || fromEnvironment.length > 0 || !existsSync(file)) return ring
    const [fromFile, ringInFile] = catchFolderError(file, () => readSecretFile(file))
    troubles.push(...checkMode(file, '600'), ...fromFile)
    return ringInFile
  }
  return Object.fromEntries(secretKinds.map(kind => [kind, read(kind)])) as SecretRings
}

async function checkDatabase(
  folder: string,
  rings: SecretRings,
  catalogue: Catalogue,
): Promise<readonly CheckFinding[]> {
  const path = databaseOf(folder)
  try {
    const inspection = inspectFolder(folder)
    try {
      const { schema, schemaKnown: known } = inspection
      if (schema > known) {
        const message = `A later version of Weir wrote it (schema ${schema}; this version knows ${known}).`
        return [problem(path, message, 'Start that version, or restore a backup made before it.')]
      }
      if (schema < known) return [note(path, `The next start migrates it from schema ${schema} to ${known}.`, '')]
      const { pepper, jwt, encryption } = rings
      if (pepper === undefined || jwt === undefined || encryption === undefined) return missingSecrets(folder, rings)
      const absent = inspection.findMissingSecrets({ pepper, jwt, encryption })
      return [
        ...absent.filter(({ needed }) => needed).map(secret => problem(folder, missingSecretText(secret, folder), '')),
        ...(await checkStoredRules(inspection.openRules(), new Seal(encryption), catalogue)),
      ]
    } finally {
      inspection.close()
    }
  } catch (fault) {
    const remedy =
      'If its disk is full, make room. If the file is damaged, restore a backup: weir restore <backup folder>'
    return [problem(path, `The database cannot be read: ${(fault as Error).message}.`, remedy)]
  }
}

/** A secret file that exists but cannot be read is reported by checkSecrets. */
const missingSecrets = (folder: string, rings: SecretRings): readonly CheckFinding[] =>
  secretKinds
    .map(kind => ({ ring: rings[kind], ...secretSources[kind] }))
    .filter(({ ring, file }) => ring === undefined && !existsSync(join(folder, file)))
    .map(({ file, variable, name }) =>
      problem(
        join(folder, file),
        `The database exists, but ${name} is missing.`,
        `Restore the file, or set ${variable}.`,
      ),
    )
