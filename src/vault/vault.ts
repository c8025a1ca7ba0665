// What must outlive a call, each kind with its own part: responses, reasoning state, tasks, files, count factors. All
// of it is an account's, sealed, bounded and kept for a while. Knows no HTTP, no dialect and no money.

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

/** Files that callers have put at an upstream. They mean nothing on another channel. */
export interface Files {
  own(owner: KeptId, at: { readonly channel: string; readonly bytes: number }): Promise<'kept' | 'too_large'>
  /** How many an account has, and how large they are together. */
  sum(accountId: number): FilesSum
  /** The channel that it lies at; undefined when it is not this account's. */
  owns(owner: KeptId): string | undefined
  /** The newest first. */
  list(accountId: number): readonly FileRow[]
  /** Whether it was this account's. */
  disown(owner: KeptId): Promise<boolean>
}

/** Ids that upstreams gave in answers, such as those of containers. They mean nothing on another channel. */
export interface References {
  /** Each id begins with its kind and a colon. */
  own(accountId: number, ids: readonly string[], channel: string): Promise<void>
  /** The channel of each of these ids that is the account's, of uploaded files as well. */
  owned(accountId: number, ids: readonly string[]): ReadonlyMap<string, string>
}

export interface Vault {
  readonly responses: Responses
  readonly reasoning: Reasoning
  readonly tasks: Tasks
  readonly files: Files
  readonly references: References
  readonly factors: Factors
  /** Before the writer is closed. */
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

const FILE = 'file:'

function openReferences({ writer, reader, dateMs }: VaultParts): References {
  return {
    async own(accountId, ids, channel) {
      const kept = ids.filter(isId).slice(0, bounds.referencesOfAnswerMax)
      if (kept.length === 0) return
      const expiresMs = dateMs() + bounds.keptReferenceMsMax
      await writer.run('keepReferences', { accountId, ids: kept, channel, expiresMs })
    },
    owned(accountId, ids) {
      const nowMs = dateMs()
      const found = new Map(reader.kept.references(accountId, nowMs, ids.filter(isId)))
      for (const id of ids) {
        if (!id.startsWith(FILE) || found.has(id)) continue
        const channel = isId(id) ? reader.kept.file({ accountId, id: id.slice(FILE.length) }, nowMs) : undefined
        if (channel !== undefined) found.set(id, channel)
      }
      return found
    },
  }
}
