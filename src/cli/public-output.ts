// Keys are not printed into a log that other users of the machine can read. A terminal, a pipe and the journal are fine.

import { fstatSync } from 'node:fs'
import type { ShownOnce } from '../management/config-file/apply.ts'
import { harmlessLines } from './print.ts'

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

export const NOT_PRINTED = 'not printed, because others can read the file that the output goes to'

/** What is said instead of a secret that cannot be shown later. */
export function withheldText({ id, name }: Pick<ShownOnce, 'id' | 'name'>): string {
  const remedy = id.startsWith('key')
    ? `Get a new one in a terminal: weir keys rotate ${id}`
    : `Get a new one: weir webhooks remove ${id}, then apply the file in a terminal`
  return `Created: ${harmlessLines(name)}. Its secret is ${NOT_PRINTED}. ${remedy}`
}
