// The data folder as a start would find it, without making or changing anything in it.

import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Seal } from '../base/seal.ts'
import { Secret } from '../base/secret.ts'
import type { Config } from '../config.ts'
import { checkRules } from '../management/rule-check.ts'
import { openReader, readMigrations } from '../store/database.ts'
import { asideNoteIn, isSecret } from '../store/folder.ts'
import { RuleBook } from '../store/rules-book.ts'
import { RulesReader } from '../store/rules-reader.ts'
import { schemaVersion } from '../store/schema-check.ts'
import type { Catalogue } from '../upstreams/catalogue.ts'
import type { Trouble } from './trouble.ts'
import { note, problem } from './trouble.ts'

const SECRETS = { 'pepper': 'WEIR_PEPPER', 'jwt-secret': 'WEIR_JWT_SECRET', 'encryption-key': 'WEIR_ENCRYPTION_KEY' }

/** Read by the folder, and by nobody else. */
export const secretVariables: readonly string[] = Object.values(SECRETS)

const OTHERS = 0o077

export function checkFolder(config: Config, catalogue: Catalogue): readonly Trouble[] {
  const folder = resolve(config.dataFolder)
  const secrets = Object.entries(SECRETS).flatMap(([file, variable]) =>
    checkSecret(join(folder, file), variable, config.env[variable]),
  )
  if (!existsSync(folder)) return [...checkParent(folder), ...secrets]
  if (existsSync(asideNoteIn(folder))) {
    return [problem('WEIR_DATA', `A restore to ${folder} was cut off.`, 'Run it again: weir restore <backup folder>')]
  }
  return [...checkWritable(folder), ...checkFolderMode(folder), ...secrets, ...checkDatabase(folder, config, catalogue)]
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

function checkSecret(file: string, variable: string, given: string | undefined): readonly Trouble[] {
  if (given !== undefined && given !== '') {
    const remedy = 'Set 32 characters or more; what was made with another secret needs that one.'
    return isSecret(given) ? [] : [problem(variable, 'It is shorter than 32 characters.', remedy)]
  }
  if (!existsSync(file)) return []
  const remedy = 'Restore it from a backup: what was made with it needs it.'
  const damaged = isSecret(readOr(file, '').trim()) ? [] : [problem(file, 'The secret in it is damaged.', remedy)]
  return [...checkMode(file, '600'), ...damaged]
}

function readOr(file: string, otherwise: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return otherwise
  }
}

function checkDatabase(folder: string, config: Config, catalogue: Catalogue): readonly Trouble[] {
  const path = join(folder, 'weir.db')
  if (!existsSync(path) || statSync(path).size === 0) return []
  try {
    const db = openReader(path)
    try {
      const [schema, known] = [schemaVersion(db), readMigrations().length]
      if (schema > known) {
        const says = `It was written by a later version of Weir (schema ${schema}, this one knows ${known}).`
        return [problem(path, says, 'Start that version, or restore a backup made before it.')]
      }
      if (schema < known) return [note(path, `The next start brings it from schema ${schema} to ${known}.`, '')]
      const given = config.env.WEIR_ENCRYPTION_KEY || readOr(join(folder, 'encryption-key'), '').trim()
      return checkLaidRules(new RulesReader(db), new Seal(new Secret(given)), catalogue)
    } finally {
      db.close()
    }
  } catch (fault) {
    const remedy = 'Bring back a backup: weir restore <backup folder>'
    return [problem(path, `The database cannot be read: ${(fault as Error).message}.`, remedy)]
  }
}

function checkLaidRules(reader: RulesReader, seal: Seal, catalogue: Catalogue): readonly Trouble[] {
  const troubles: Trouble[] = []
  const remedy = 'Set it again: weir channels set <channel> --proxy <url>'
  const onTrouble = (detail: string): void => void troubles.push(problem('rules', detail, remedy))
  const rules = new RuleBook({ reader, seal, onTrouble })
  rules.renew()
  const { problem: unusable = rules.problem, notes } = checkRules(rules.current, catalogue)
  if (unusable !== undefined) troubles.push(problem('rules', unusable, ''))
  return [...troubles, ...notes.map(text => note('rules', `A rule is for what is not there: ${text}`, ''))]
}
