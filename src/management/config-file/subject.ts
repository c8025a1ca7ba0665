// What a list of a configuration file is about: how its entries are found on a gateway, compared with it and written.

import type { Secret } from '../../base/secrets/secret.ts'
import type { ListName, SecretReference } from './file-schema.ts'
import type { FileEntry } from './read-file.ts'
import type { Fields, ManagementClient } from './requests.ts'

/** Something that a gateway has, in the form in which a file describes it, with all of its fields. */
export interface Current {
  /** What the entry of a file is matched with. */
  readonly id: string
  /** Its name for people. */
  readonly label: string
  readonly fields: Fields
  /** Its path in the management interface. */
  readonly path: string
  /** The names of the account and the key that its fields have as ids. */
  readonly names?: { readonly account?: unknown; readonly key?: unknown }
  /** Why it cannot be removed, if nothing else changes. */
  readonly inUse?: string | undefined
  /** It can never be removed, so --prune leaves it. */
  readonly isPermanent?: boolean
  /**
   * Such as "expired keys": what a new gateway would refuse. An export leaves it out, and --prune leaves it as it is.
   * A function, because the answer may need requests, and a plan that removes nothing must not send them.
   */
  leftOut?(): Promise<string | undefined>
  /** What a file cannot say about it. */
  readonly notes?: readonly string[]
}

/** An entry of a file with all of its fields: those that it leaves out have their defaults. */
export interface Wanted {
  readonly entry: FileEntry
  readonly id: string
  readonly label: string
  readonly fields: Fields
}

export interface ApplyContext {
  readonly client: ManagementClient
  /** The id of an account or a key: of one that did not exist before, once it has been created. */
  idOf(token: unknown): unknown
  /** Notes the id of an account or a key that was created. */
  created(token: string, id: string): void
  /** Runs a step after all changes of the plan. Nothing that is new works before everything that restricts it is set. */
  atEnd(step: () => Promise<unknown>): void
  /** The text of a new key, and the generated secret of a webhook, are shown once. */
  showSecret(title: string, id: unknown, text: unknown): void | Promise<void>
}

/** What an entry changes: the old and the new value of each field. */
export type EntryChanges = Readonly<Record<string, readonly [before: unknown, after: unknown]>>

export interface Write {
  readonly wanted: Wanted
  readonly changes: EntryChanges
  /** The secret of the entry, where it must be sent. */
  readonly secret: Secret | undefined
}

/** The secret of an entry: the file has a reference to it, and the gateway shows a mark of it. */
export interface SecretField {
  readonly field: string
  /** The field of the interface that keeps the reference. */
  readonly from: string
  /** Fields whose change removes the secret, so that it must be sent again. */
  readonly boundTo: readonly string[]
  mark(fields: Fields, secret: Secret): string
  /** Why the secret cannot be used. */
  problemOf(secret: Secret): string | undefined
}

export interface Subject {
  readonly list: ListName
  readonly noun: string
  /** Fields that identify an entry, or that cannot change. */
  readonly fixed: readonly string[]
  readonly secret?: SecretField
  /** Adds defaults, and writes values in the form that the gateway shows. */
  complete(fields: Fields): Fields
  idOf(fields: Fields): string
  labelOf(fields: Fields): string
  /** Everything that the gateway has. */
  read(client: ManagementClient): Promise<readonly Current[]>
  /** One thing, where the gateway may have too many to read them all. */
  find?(client: ManagementClient, fields: Fields): Promise<Current | undefined>
  create(context: ApplyContext, write: Write): Promise<Fields>
  change(context: ApplyContext, current: Current, write: Write): Promise<Fields>
  /** Undefined: --prune leaves it. */
  remove?(client: ManagementClient, current: Current): Promise<Fields>
  /** What `remove` does, if it does not simply remove. */
  readonly removal?: string
}

export const referenceText = ({ env, file }: SecretReference): string =>
  env === undefined ? `file:${file}` : `env:${env}`

export const pickFields = (fields: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(names.flatMap(name => (fields[name] === undefined ? [] : [[name, fields[name]]])))

/** The new values of the changed fields. */
export const newValues = (changes: EntryChanges, without: readonly string[] = []): Fields =>
  Object.fromEntries(
    Object.entries(changes).flatMap(([name, [, after]]) => (without.includes(name) ? [] : [[name, after]])),
  )

export const mapValues = (fields: unknown, convert: (value: never) => unknown): Fields =>
  Object.fromEntries(
    Object.entries((fields ?? {}) as Fields).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, convert(value as never)]],
    ),
  )
