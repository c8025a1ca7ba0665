// The vault stores what outlives a call: responses, reasoning state, tasks, files, references and token count factors.
// Stored content belongs to an account, is encrypted, limited in size and deleted after a time. The vault knows no HTTP,
// no dialect and no money.

import { bounds } from '../base/bounds.ts'
import type { KeptId } from '../store/vault/kept.ts'
import type { FileRow, FilesSum } from '../store/vault/kept-reader.ts'
import type { VaultParts } from './envelope.ts'
import { isId } from './envelope.ts'
import type { Factors } from './factors.ts'
import { openFactors } from './factors.ts'
import type { Reasoning } from './reasoning.ts'
import { openReasoning } from './reasoning.ts'
import type { Responses, ResponsesParts } from './responses.ts'
import { openResponses } from './responses.ts'
import type { Tasks } from './tasks.ts'
import { openTasks } from './tasks.ts'

/** Files that callers have uploaded to an upstream. A file can be used only on the channel that it was uploaded to. */
export interface Files {
  own(owner: KeptId, at: { readonly channel: string; readonly bytes: number }): Promise<'kept' | 'too_large'>
  /** The number and the total size of an account's files. */
  sum(accountId: number): FilesSum
  /** The channel of a file; undefined when it does not belong to this account. */
  owns(owner: KeptId): string | undefined
  /** The newest files first. */
  list(accountId: number): readonly FileRow[]
  /** Returns whether the file belonged to this account. */
  disown(owner: KeptId): Promise<boolean>
}

/** Ids from answers of upstreams, for instance of containers. An id can be used only on the channel that it came from. */
export interface References {
  /** Each id begins with its kind and a colon. */
  own(accountId: number, ids: readonly string[], channel: string): Promise<void>
  /** The channel of each of these ids that belongs to the account, including uploaded files. */
  owned(accountId: number, ids: readonly string[]): ReadonlyMap<string, string>
}

export interface Vault {
  readonly responses: Responses
  readonly reasoning: Reasoning
  readonly tasks: Tasks
  readonly files: Files
  readonly references: References
  readonly factors: Factors
  /** Stores unsaved data. To be called before the writer is closed. */
  close(): Promise<void>
}

export function openVault(parts: ResponsesParts): Vault {
  const factors = openFactors(parts)
  return {
    responses: openResponses(parts),
    reasoning: openReasoning(parts),
    tasks: openTasks(parts),
    files: openFiles(parts),
    references: openReferences(parts),
    factors,
    close: () => factors.flush(),
  }
}

function openFiles({ writer, reader, dateMs }: VaultParts): Files {
  return {
    async own({ accountId, id }, { channel, bytes }) {
      if (!isId(id)) return 'too_large'
      const expiresMs = dateMs() + bounds.keptFileMsMax
      return (await writer.run('keepFile', { accountId, id, channel, bytes, expiresMs })).done
    },
    owns: owner => (isId(owner.id) ? reader.kept.file(owner, dateMs()) : undefined),
    sum: accountId => reader.kept.filesSum(accountId, dateMs()),
    list: accountId => reader.kept.files(accountId, dateMs(), bounds.keptFilesListedMax),
    async disown({ accountId, id }) {
      return isId(id) && (await writer.run('dropFile', { accountId, id })).done === 'dropped'
    },
  }
}

const FILE_PREFIX = 'file:'

function openReferences({ writer, reader, dateMs }: VaultParts): References {
  return {
    async own(accountId, ids, channel) {
      const storable = ids.filter(isId).slice(0, bounds.referencesOfAnswerMax)
      if (storable.length === 0) return
      const expiresMs = dateMs() + bounds.keptReferenceMsMax
      await writer.run('keepReferences', { accountId, ids: storable, channel, expiresMs })
    },
    owned(accountId, ids) {
      const nowMs = dateMs()
      const found = new Map(reader.kept.references(accountId, nowMs, ids.filter(isId)))
      for (const id of ids) {
        if (!id.startsWith(FILE_PREFIX) || found.has(id)) continue
        const channel = isId(id) ? reader.kept.file({ accountId, id: id.slice(FILE_PREFIX.length) }, nowMs) : undefined
        if (channel !== undefined) found.set(id, channel)
      }
      return found
    },
  }
}
