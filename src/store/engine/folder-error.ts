// Errors about the data folder that its owner can do something about.

/** Its message is a sentence that is shown as it is. */
export class FolderError extends Error {}

const DAMAGE = /^SQLITE_(CORRUPT|NOTADB)/
const FULL = /^(SQLITE_FULL|ENOSPC|EDQUOT)$/
const UNWRITABLE = /^(SQLITE_(READONLY|CANTOPEN|PERM)|EROFS$)/

/** What the owner of the data can do about an error of SQLite or of the file system; undefined for all other errors. */
export function storageMessage(fault: Error): string | undefined {
  const { code = '', message } = fault as { readonly code?: string; readonly message: string }
  if (DAMAGE.test(code)) return `The database is damaged: ${message}. Restore a backup: weir restore <folder>`
  if (FULL.test(code))
    return `The disk or the database is full: ${message}. Make room on the disk, or raise WEIR_DATABASE_MB.`
  if (UNWRITABLE.test(code)) {
    return `The data cannot be written: ${message}. Let the user that runs Weir write to the data folder, or set WEIR_DATA.`
  }
  if (!code.startsWith('SQLITE_IOERR')) return undefined
  return `The database cannot be used: ${message}. Look whether its disk is full, and at the log of the system.`
}
