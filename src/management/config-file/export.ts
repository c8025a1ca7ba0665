// Writes what a gateway has as a configuration file. Applied to an empty gateway, the file makes an equal one, without what
// the notes say is left out; secrets and the texts of keys are not in it.

import { isDeepStrictEqual } from 'node:util'
import { stringify } from 'yaml'
import { siteFields } from '../resources/settings.ts'
import type { ListName } from './file-schema.ts'
import { entrySchemas, fileSchema } from './file-schema.ts'
import { isDefault } from './plan.ts'
import { optionalFields } from './read-file.ts'
import type { Fields, ManagementClient } from './requests.ts'
import { listAll } from './requests.ts'
import type { Current, Subject } from './subject.ts'
import { pickFields } from './subject.ts'
import { hasExpired, subjects } from './subjects.ts'

export interface ExportedConfig {
  readonly text: string
  /** What the reader of the file must know: references that were made up, and what was left out. */
  readonly notes: readonly string[]
}

/** The parts that can be exported alone. */
export const exportParts: readonly string[] = ['settings', ...subjects.map(({ list }) => list)]

export async function exportConfig(
  client: ManagementClient,
  only: readonly string[] = exportParts,
): Promise<ExportedConfig> {
  const notes: string[] = []
  const names = new PlaceholderNames()
  const lists: Record<string, unknown> = {}
  if (only.includes('settings'))
    lists.settings = pickFields(await client.get('/api/web/settings'), Object.keys(siteFields))
  for (const subject of subjects.filter(({ list }) => only.includes(list))) {
    const { found, kinds } = await readAll(subject, client)
    notes.push(...leftOutNotes(kinds), ...found.flatMap(current => current.notes ?? []))
    if (subject.list === 'keys') notes.push(...(await lostBoundNotes(client, found)))
    if (found.length === 0) continue
    lists[subject.list] = found.toSorted(byId).map(current => entryOf(subject, current, { names, notes }))
  }
  const ordered = Object.keys(fileSchema.shape).flatMap(list =>
    lists[list] === undefined ? [] : [[list, lists[list]]],
  )
  return { text: stringify(Object.fromEntries(ordered), { lineWidth: 0 }), notes }
}

/** What the file describes, and the kind of each thing that it leaves out. */
async function readAll(subject: Subject, client: ManagementClient) {
  const found: Current[] = []
  const kinds: string[] = []
  for (const current of await subject.read(client)) {
    const kind = await current.leftOut?.()
    if (kind !== undefined) kinds.push(kind)
    else if (!isDefault(subject, current)) found.push(current)
  }
  return { found, kinds }
}

/** One note for each kind. */
function leftOutNotes(kinds: readonly string[]): readonly string[] {
  return [...new Set(kinds)].map(kind => {
    const count = kinds.filter(other => other === kind).length
    return `The file leaves out ${kind} (${count}), because a new gateway would refuse them.`
  })
}

/**
 * A key that a member has made has the bounds of the other keys of its account, also of those that have expired or are
 * revoked. The file leaves those out, so it cannot carry over their bounds.
 */
async function lostBoundNotes(client: ManagementClient, exportedKeys: readonly Current[]): Promise<readonly string[]> {
  const madeByMembers = exportedKeys.filter(({ fields }) => fields.madeByMember === true)
  if (madeByMembers.length === 0) return []
  const limited = new Set((await listAll(client, '/api/web/limits')).map(({ key }) => key))
  const leftOut = (await listAll(client, '/api/web/keys')).filter(row => row.state === 'revoked' || hasExpired(row))
  const bounding = leftOut.filter(({ id, qpm, requires }) => qpm !== null || requires !== null || limited.has(id))
  const losing = new Set(bounding.map(({ account }) => account))
  const accounts = new Map(madeByMembers.map(({ fields, names }) => [fields.account, names?.account]))
  return [...accounts]
    .filter(([id]) => losing.has(id))
    .map(
      ([id, name]) =>
        `Keys that members of ${String(name)} (${String(id)}) have made lose the calls per minute, required tags and ` +
        'limits of its expired and revoked keys, which are not in the file: set these on the keys of the members.',
    )
}

const byId = (one: Current, other: Current): number => (one.id < other.id ? -1 : one.id > other.id ? 1 : 0)

interface ExportNotes {
  readonly names: PlaceholderNames
  readonly notes: string[]
}

/** The entry of a file, without fields that have their defaults. */
function entryOf(subject: Subject, current: Current, parts: ExportNotes): Fields {
  if (subject.list === 'providers') return current.fields
  const fields = { ...current.fields, ...secretField(subject, current, parts) }
  const required = Object.fromEntries(
    Object.entries(fields).filter(([name]) => !optionalFields(subject.list).includes(name)),
  )
  const defaults = defaultsOf(subject, required)
  const written = Object.keys(entrySchemas[subject.list].shape).filter(
    name => fields[name] !== undefined && !isDeepStrictEqual(fields[name], defaults[name]),
  )
  return Object.fromEntries(written.map(name => [name, shorten(subject.list, name, fields[name])]))
}

/** The values of the fields that an entry leaves out. A field that is required has no default. */
function defaultsOf(subject: Subject, required: Fields): Fields {
  const complete = subject.complete(required)
  return Object.fromEntries(Object.entries(complete).filter(([name]) => !(name in required)))
}

/** A member that is only a model is written as its name. */
function shorten(list: ListName, name: string, value: unknown): unknown {
  if (list !== 'modelNames' || name !== 'members') return value
  return (value as readonly Fields[]).map(member =>
    member.priority === 0 && member.weight === 1 ? member.model : member,
  )
}

/** The reference that a file has given; else the name of a variable that somebody must set. */
function secretField({ secret, noun }: Subject, { fields, label }: Current, { names, notes }: ExportNotes): Fields {
  if (secret === undefined) return {}
  if (fields[secret.field] === null) return { [secret.field]: undefined }
  const [, kind, value] = /^(env|file):(.*)$/s.exec(String(fields[secret.from] ?? '')) ?? []
  if (kind !== undefined) return { [secret.field]: { [kind]: value } }
  const env = names.make(`${label} ${secret.field}`)
  notes.push(
    `The ${secret.field} of the ${noun} ${label} was not set by a file: set ${env} before you apply this file elsewhere.`,
  )
  return { [secret.field]: { env } }
}

/** Names of environment variables for secrets, each once. */
class PlaceholderNames {
  readonly #taken = new Set<string>()

  make(text: string): string {
    const base = text
      .toUpperCase()
      .replaceAll(/[^A-Z0-9]+/g, '_')
      .replace(/^_|_$/g, '')
      .replace(/^(?=\d)/, '_')
      .slice(0, 150)
    let name = base
    for (let number = 2; this.#taken.has(name); number++) name = `${base}_${number}`
    this.#taken.add(name)
    return name
  }
}
