// Secrets that are shown once may go to a log that other users of the machine can read. The command prints them all the
// same, because nothing else shows them, and warns.

import { fstatSync } from 'node:fs'

const OTHERS = 0o077

/** Whether standard output goes to a file that others can read. */
export function isOutputPublic(): boolean {
  try {
    const stats = fstatSync(1)
    return stats.isFile() && (stats.mode & OTHERS) !== 0
  } catch {
    return false
  }
}

/** Called after a secret was printed. */
export function warnIfPublic(): void {
  if (!isOutputPublic()) return
  const remedy = 'Restrict the file with chmod 600, or replace a key with "weir keys rotate".'
  process.stderr.write(`weir: warning: the output holds secrets, and others can read the file it goes to. ${remedy}\n`)
}
