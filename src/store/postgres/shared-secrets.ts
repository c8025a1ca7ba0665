// The secrets of a gateway whose data is in PostgreSQL. All processes need the same ones, in environment variables or in
// the files of their data folders. The database has the marks of the secrets, so a process that has other secrets is
// refused at its start: it would know no API key of the others and could decrypt nothing.
//
// Only the first process of a new database creates secrets. When two of them do that at the same time, each finds the
// marks of the other one and is refused; the one that is started again first wins.

import { join } from 'node:path'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import type { AuditActor } from '../audit-log/audited-operations.ts'
import type { GatewaySecrets } from '../engine/folder.ts'
import { FolderError } from '../engine/folder-error.ts'
import type { Reader } from '../engine/reader.ts'
import type { SecretScanner, StoreWriter } from '../engine/store-engine.ts'
import { missingSecretText } from '../secrets/secret-check.ts'
import type { EnvironmentVariables } from '../secrets/secret-files.ts'
import { openSecrets, secretSources } from '../secrets/secret-files.ts'
import type { SecretKind } from '../secrets/secret-kinds.ts'
import { secretKinds } from '../secrets/secret-kinds.ts'
import type { SecretMark } from '../secrets/secret-marks.ts'

export interface SharedSecretsParts {
  readonly reader: Pick<Reader, 'secretMarks'>
  readonly writer: Pick<StoreWriter, 'run'>
  readonly scan: SecretScanner
  /** The path of the data folder. */
  readonly folder: string
  readonly env: EnvironmentVariables
  readonly by: AuditActor
  /** Opens the data although some of it was made with secrets that are lost. */
  readonly ignoresLost?: boolean
}

type NotedMarks = Readonly<Record<SecretKind, readonly SecretMark[]>>

/** Returns the secrets, and the kinds whose newest secret has changed since the last start. */
export async function openSharedSecrets(parts: SharedSecretsParts) {
  const { reader, writer, folder, env, by } = parts
  const before = await readMarks(reader)
  const opened = openSecrets({ folder, env, refuseMissing: (kind, file) => refuseMissing(before, kind, file) })
  await refuseWrong(parts, before, opened.secrets, [])
  const rotated: SecretKind[] = []
  for (const kind of secretKinds.filter(each => !isNoted(before[each], opened.secrets[each].fingerprints))) {
    const { done } = await writer.run('noteSecrets', { kind, marks: opened.secrets[kind].fingerprints }, by)
    if (done === 'rotated') rotated.push(kind)
  }
  try {
    const newKinds = secretKinds.filter(kind => before[kind].length === 0)
    await refuseWrong(parts, await readMarks(reader), opened.secrets, newKinds)
  } catch (fault) {
    await dropOwn(parts, before, opened.secrets)
    throw fault
  }
  return { ...opened, rotated }
}

async function readMarks(reader: Pick<Reader, 'secretMarks'>): Promise<NotedMarks> {
  const [pepper, jwt, encryption] = await Promise.all([
    reader.secretMarks('pepper'),
    reader.secretMarks('jwt'),
    reader.secretMarks('encryption'),
  ])
  return { pepper, jwt, encryption }
}

function refuseMissing(noted: NotedMarks, kind: SecretKind, file: string): void {
  if (noted[kind].length > 0) throw new FolderError(missingText(kind, file))
}

function missingText(kind: SecretKind, file: string): string {
  const { name, variable, file: ofOther } = secretSources[kind]
  return (
    `${name[0]!.toUpperCase()}${name.slice(1)} is missing: the database was made with one, and all gateways need the ` +
    `same. Set ${variable}, or copy the file ${ofOther} from the data folder of another gateway to ${file}.`
  )
}

/** Why a start with these secrets would be refused, without creating or noting any. */
export async function findSecretProblems(
  { reader, scan, folder }: Pick<SharedSecretsParts, 'reader' | 'scan' | 'folder'>,
  rings: Readonly<Record<SecretKind, SecretRing | undefined>>,
): Promise<readonly string[]> {
  const noted = await readMarks(reader)
  const problems: string[] = []
  for (const kind of secretKinds.filter(each => noted[each].length > 0)) {
    const ring = rings[kind]
    if (ring === undefined) problems.push(missingText(kind, join(folder, secretSources[kind].file)))
    else problems.push(...(await wrongTexts({ scan, folder }, { kind, ring, noted: noted[kind], isNew: false })))
  }
  return problems
}

/** Throws when a secret is missing that the others use now, or that data needs; of `newKinds`, when any is missing. */
async function refuseWrong(
  { scan, folder, ignoresLost }: SharedSecretsParts,
  noted: NotedMarks,
  secrets: GatewaySecrets,
  newKinds: readonly SecretKind[],
): Promise<void> {
  if (ignoresLost) return
  for (const kind of secretKinds) {
    const wrong = { kind, ring: secrets[kind], noted: noted[kind], isNew: newKinds.includes(kind) }
    const [text] = await wrongTexts({ scan, folder }, wrong)
    if (text !== undefined) throw new FolderError(text)
  }
}

interface NotedKind {
  readonly kind: SecretKind
  readonly ring: SecretRing
  readonly noted: readonly SecretMark[]
  /** Then no noted mark may be missing. */
  readonly isNew: boolean
}

async function wrongTexts(
  { scan, folder }: Pick<SharedSecretsParts, 'scan' | 'folder'>,
  { kind, ring, noted, isNew }: NotedKind,
): Promise<readonly string[]> {
  const texts: string[] = []
  for (const mark of noted.filter(row => ring.find(row.mark) === undefined)) {
    const isUsed = isNew || mark.replacedMs === null || (await hasUses(scan, kind, mark))
    if (isUsed) texts.push(missingSecretText({ kind, mark: mark.mark, needed: true }, folder))
  }
  return texts
}

function hasUses(scan: SecretScanner, kind: SecretKind, { mark, isFirst }: SecretMark): Promise<boolean> {
  return scan.during(async () => {
    if (kind === 'jwt') return false
    const uses =
      kind === 'encryption'
        ? await scan.run('countSealed', { bodies: '' })
        : // Digests without a mark belong to the first pepper.
          await scan.run('countPeppered', { first: isFirst ? mark : '' })
    return Object.values(uses[mark] ?? {}).some(count => count > 0)
  })
}

const isNoted = (noted: readonly SecretMark[], marks: readonly string[]): boolean =>
  noted.find(({ replacedMs }) => replacedMs === null)?.mark === marks[0] &&
  marks.every(mark => noted.some(row => row.mark === mark))

/** Another process has noted its secrets at the same time: ours were never used. */
async function dropOwn({ writer, by }: SharedSecretsParts, before: NotedMarks, secrets: GatewaySecrets): Promise<void> {
  for (const kind of secretKinds) {
    const marks = secrets[kind].fingerprints.filter(mark => !before[kind].some(row => row.mark === mark))
    if (marks.length > 0) await writer.run('dropSecrets', { kind, marks }, by)
  }
}
