// The data folder as a start would find it, without making or changing anything in it.

import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Seal } from '../../base/secrets/seal.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import type { Config } from '../../config.ts'
import { checkRules } from '../../management/services/rule-check.ts'
import { openReader, readMigrations } from '../../store/engine/database.ts'
import { asideNoteIn, FolderError, socketIn } from '../../store/engine/folder.ts'
import { schemaVersion } from '../../store/engine/schema-check.ts'
import { RuleBook } from '../../store/rules/rules-book.ts'
import { RulesReader } from '../../store/rules/rules-reader.ts'
import { absentSentence, findAbsent } from '../../store/secrets/secret-check.ts'
import { readGivenSecrets, readSecretFile, secretHomes } from '../../store/secrets/secret-files.ts'
import type { SecretKind } from '../../store/secrets/secret-kinds.ts'
import { secretKinds } from '../../store/secrets/secret-kinds.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Trouble } from './problem.ts'
import { note, problem } from './problem.ts'

/** Read by the folder, and by nobody else. */
export const secretVariables: readonly string[] = Object.values(secretHomes).map(({ variable }) => variable)

const OTHERS = 0o077

type Rings = Readonly<Record<SecretKind, SecretRing | undefined>>

export function checkFolder(config: Config, catalogue: Catalogue): readonly Trouble[] {
  const folder = resolve(config.dataFolder)
  const [pathTroubles] = attempt('WEIR_DATA', () => void socketIn(folder))
  const troubles: Trouble[] = [...pathTroubles]
  if (existsSync(asideNoteIn(folder))) {
    return [problem('WEIR_DATA', `A restore to ${folder} was cut off.`, 'Run it again: weir restore <backup folder>')]
  }
  const rings = checkSecrets(folder, config.env, troubles)
  if (!existsSync(folder)) return [...troubles, ...checkParent(folder)]
  troubles.push(...checkWritable(folder), ...checkFolderMode(folder))
  const path = join(folder, 'weir.db')
  if (!existsSync(path) || statSync(path).size === 0) return troubles
  return [...troubles, ...checkDatabase(path, { folder, rings, catalogue })]
}

/** What it says when it cannot be done; and what came of it. */
function attempt<T>(about: string, run: () => T): [readonly Trouble[], T | undefined] {
  try {
    return [[], run()]
  } catch (fault) {
    if (!(fault instanceof FolderError)) throw fault
    return [[problem(about, fault.message, '')], undefined]
  }
}

/** It is made by the first start. */
function checkParent(folder: string): readonly Trouble[] {
  let above = dirname(folder)
  while (!existsSync(above)) above = dirname(above)
  return checkWritable(above)
}

function checkWritable(folder: string): readonly Trouble[] {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return []
  } catch (fault) {
    const says = `Nothing can be written to ${folder}: ${(fault as Error).message}.`
    return [problem('WEIR_DATA', says, `Give it to the user that runs Weir (chown), or name another folder.`)]
  }
}

/** Nobody comes to what is in it but through it. */
export const checkFolderMode = (folder: string): readonly Trouble[] => checkMode(folder, '700')

function checkMode(path: string, wanted: string): readonly Trouble[] {
  const mode = statSync(path).mode & 0o777
  if ((mode & OTHERS) === 0) return []
  const says = `Others than its owner may use it (mode ${mode.toString(8)}).`
  return [problem(path, says, `chmod ${wanted} ${path}`)]
}

/** Those that are there and well. */
function checkSecrets(folder: string, env: Config['env'], troubles: Trouble[]): Rings {
  const read = (kind: SecretKind): SecretRing | undefined => {
    const { variable, file: name } = secretHomes[kind]
    const [given, ring] = attempt(variable, () => readGivenSecrets(kind, env))
    troubles.push(...given)
    const file = join(folder, name)
    if (ring !== undefined || given.length > 0 || !existsSync(file)) return ring
    const [found, kept] = attempt(file, () => readSecretFile(file))
    troubles.push(...checkMode(file, '600'), ...found)
    return kept
  }
  return Object.fromEntries(secretKinds.map(kind => [kind, read(kind)])) as Rings
}

interface Beside {
  readonly folder: string
  readonly rings: Rings
  readonly catalogue: Catalogue
}

function checkDatabase(path: string, { folder, rings, catalogue }: Beside): readonly Trouble[] {
  try {
    const db = openReader(path)
    try {
      const [schema, known] = [schemaVersion(db), readMigrations().length]
      if (schema > known) {
        const says = `It was written by a later version of Weir (schema ${schema}, this one knows ${known}).`
        return [problem(path, says, 'Start that version, or restore a backup made before it.')]
      }
      if (schema < known) return [note(path, `The next start brings it from schema ${schema} to ${known}.`, '')]
      const { pepper, jwt, encryption } = rings
      if (pepper === undefined || jwt === undefined || encryption === undefined) return missingSecrets(folder, rings)
      const secrets = { pepper, jwt, encryption }
      const absent = findAbsent({ database: path, bodies: join(folder, 'bodies.db'), secrets })
      return [
        ...absent.filter(({ needed }) => needed).map(one => problem(folder, absentSentence(one, folder), '')),
        ...checkLaidRules(new RulesReader(db), new Seal(encryption), catalogue),
      ]
    } finally {
      db.close()
    }
  } catch (fault) {
    const remedy = 'Bring back a backup: weir restore <backup folder>'
    return [problem(path, `The database cannot be read: ${(fault as Error).message}.`, remedy)]
  }
}

/** One that cannot be read was told before. */
const missingSecrets = (folder: string, rings: Rings): readonly Trouble[] =>
  secretKinds
    .map(kind => ({ ring: rings[kind], ...secretHomes[kind] }))
    .filter(({ ring, file }) => ring === undefined && !existsSync(join(folder, file)))
    .map(({ file, variable, name }) =>
      problem(join(folder, file), `The data is there, and ${name} is not.`, `Bring it back, or set ${variable}.`),
    )

function checkLaidRules(reader: RulesReader, seal: Seal, catalogue: Catalogue): readonly Trouble[] {
  const troubles: Trouble[] = []
  const onTrouble = (detail: string): void => void troubles.push(problem('rules', detail, 'weir channels set'))
  const rules = new RuleBook({ reader, seal, onTrouble })
  rules.renew()
  catalogue.lay(rules.current)
  catalogue.setRules(rules.current.channels)
  const { problem: unusable = rules.problem, notes } = checkRules(rules.current, catalogue)
  if (unusable !== undefined) troubles.push(problem('rules', unusable, ''))
  return [
    ...troubles,
    ...Array.from(catalogue.problems, ([id, why]) => problem(id, `What was laid down cannot be used: ${why}`, '')),
    ...notes.map(text => note('rules', `A rule is for what is not there: ${text}`, '')),
  ]
}
