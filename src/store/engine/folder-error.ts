// Errors about the data folder that its owner can do something about.

/** Its message is a sentence that is shown as it is. */
export class FolderError extends Error {}

/** Whether an error of the store says that its file is damaged. */
export const isDamageError = (fault: Error & { readonly code?: unknown }): boolean =>
  fault.code === 'SQLITE_CORRUPT' || fault.code === 'SQLITE_NOTADB'

export const damageMessage = ({ message }: Error): string =>
  `The database is damaged: ${message}. Restore a backup: weir restore <folder>`
