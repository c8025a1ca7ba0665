// The vault stores what outlives a call: responses, reasoning state, tasks, files, references and token count factors.
// Stored content belongs to an account, is encrypted, limited in size and deleted after a time. The vault knows no HTTP,
// no dialect and no money.

import { bounds } from '../base/bounds.ts'
import type { FileRow, FilesSum } from '../store/vault/vault-reader.ts'
import type { VaultId } from '../store/vault/vault-types.ts'
import type { CountFactors } from './count-factors.ts'
import { openCountFactors } from './count-factors.ts'
import type { VaultParts } from './envelope.ts'
import { isStorableId } from './envelope.ts'
import type { ReasoningStore } from './reasoning.ts'
import { openReasoning } from './reasoning.ts'
import type { ResponseStore, ResponsesParts } from './responses.ts'
import { openResponses } from './responses.ts'
import type { TaskStore } from './tasks.ts'
import { openTasks } from './tasks.ts'

/** Files that callers have uploaded to an upstream. A file can be used only on the channel that it was uploaded to. */
export interface FileRegistry {
  add(owner: VaultId, at: { readonly channel: string; readonly bytes: number }): Promise<'kept' | 'too_large'>
  /** The number and the total size of an account's files. */
  sum(accountId: number): Promise<FilesSum>
  /** The channel of a file; undefined when it does not belong to this account. */
  channelOf(owner: VaultId): Promise<string | undefined>
  /** The newest files first. */
  list(accountId: number): Promise<readonly FileRow[]>
  /** Returns whether the file belonged to this account. */
  remove(owner: VaultId): Promise<boolean>
}

/** Ids from answers of upstreams, for instance of containers. An id can be used only on the channel that it came from. */
export interface ReferenceRegistry {
  /** Each id begins with its kind and a colon. */
  add(accountId: number, ids: readonly string[], channel: string): Promise<void>
  /** The channel of each of these ids that belongs to the account, including uploaded files. */
  channelsOf(accountId: number, ids: readonly string[]): Promise<ReadonlyMap<string, string>>
}

export interface Vault {
  readonly responses: ResponseStore
  readonly reasoning: ReasoningStore
  readonly tasks: TaskStore
  readonly files: FileRegistry
  readonly references: ReferenceRegistry
  readonly factors: CountFactors
  /** Stores unsaved data. To be called before the writer is closed. */
  close(): Promise<void>
}

export async function openVault(parts: ResponsesParts): Promise<Vault> {
  const factors = await openCountFactors(parts)
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

function openFiles({ writer, reader, dateMs }: VaultParts): FileRegistry {
  return {
    async add({ accountId, id }, { channel, bytes }) {
      if (!isStorableId(id)) return 'too_large'
      const expiresMs = dateMs() + bounds.storedFileMsMax
      return (await writer.run('keepFile', { accountId, id, channel, bytes, expiresMs })).done
    },
    channelOf: async owner => (isStorableId(owner.id) ? await reader.vault.file(owner, dateMs()) : undefined),
    sum: async accountId => await reader.vault.filesSum(accountId, dateMs()),
    list: async accountId => await reader.vault.files(accountId, dateMs(), bounds.filesListedMax),
    async remove({ accountId, id }) {
      return isStorableId(id) && (await writer.run('dropFile', { accountId, id })).done === 'dropped'
    },
  }
}

const FILE_PREFIX = 'file:'

function openReferences({ writer, reader, dateMs }: VaultParts): ReferenceRegistry {
  return {
    async add(accountId, ids, channel) {
      const storable = ids.filter(isStorableId).slice(0, bounds.referencesOfAnswerMax)
      if (storable.length === 0) return
      const expiresMs = dateMs() + bounds.storedReferenceMsMax
      await writer.run('keepReferences', { accountId, ids: storable, channel, expiresMs })
    },
    async channelsOf(accountId, ids) {
      const nowMs = dateMs()
      const found = new Map(await reader.vault.references(accountId, nowMs, ids.filter(isStorableId)))
      for (const id of ids) {
        if (!id.startsWith(FILE_PREFIX) || found.has(id)) continue
        const channel = isStorableId(id)
          ? await reader.vault.file({ accountId, id: id.slice(FILE_PREFIX.length) }, nowMs)
          : undefined
        if (channel !== undefined) found.set(id, channel)
      }
      return found
    },
  }
}
