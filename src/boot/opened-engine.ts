// What the database of the configuration is opened with, and what that returns.

import { bounds } from '../base/bounds.ts'
import type { Log } from '../base/log.ts'
import { ConfigError } from '../config.ts'
import type { DataFolder } from '../store/engine/folder.ts'
import type { FolderLock } from '../store/engine/lock.ts'
import { lockFolder } from '../store/engine/lock.ts'
import type { StoreEngine } from '../store/engine/store-engine.ts'
import type { Runtime } from './runtime.ts'

/** The auditor skips records that are younger than this and checks them in a later pass. */
export const AUDIT_LAG_MS = 2 * bounds.bodyMsMax

export interface OpenedEngine {
  readonly engine: StoreEngine
  readonly folder: DataFolder
  readonly lock: FolderLock
}

export interface OpenEngineParts {
  readonly world: Runtime
  readonly log: Log
  /** Opens the database even if data was encrypted with secrets that are lost. */
  readonly ignoresLostSecrets: boolean
  /** Ends all calls that are active now. It resolves when they are over. */
  endCalls(): Promise<void>
}

export function lockOrFail(path: string): FolderLock {
  const lock = lockFolder(path)
  if (lock === undefined) throw new ConfigError(`Another Weir is using the data folder ${path}.`)
  return lock
}
