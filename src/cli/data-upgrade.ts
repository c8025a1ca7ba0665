// Shows the progress of the migration of data that an earlier version of Weir has written.

import { existsSync } from 'node:fs'
import { readMigrations } from '../store/engine/database.ts'
import { databaseOf } from '../store/engine/folder.ts'
import { schemaOf } from '../store/engine/schema-check.ts'
import { openProgress } from './progress.ts'

/** Opens the data, and shows the progress of its migration if an earlier version of Weir has written it. */
export async function duringMigration<T>(
  dataFolder: string,
  open: () => Promise<T>,
  during = openProgress(false),
): Promise<T> {
  const [current, newest] = [dataSchema(dataFolder), readMigrations().length]
  if (current === 0 || current >= newest) return await open()
  const detail = (): string => `schema ${dataSchema(dataFolder) || current} of ${newest}`
  return await during({ label: 'upgrading the data', detail }, open)
}

/** The schema of the data; 0: there is none, or it cannot be read, which the start reports. */
function dataSchema(dataFolder: string): number {
  try {
    return existsSync(databaseOf(dataFolder)) ? schemaOf(databaseOf(dataFolder)) : 0
  } catch {
    return 0
  }
}
