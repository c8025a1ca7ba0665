// Reads which build of the console this gateway serves.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE = join(import.meta.dir, '../../dist/console/build.json')

/** A short hash of the built console, by which an open page notices an upgrade; null: it was not built. */
export function consoleBuild(): string | null {
  try {
    const { build } = JSON.parse(readFileSync(FILE, 'utf8')) as { build?: unknown }
    return typeof build === 'string' && /^[\w.-]{1,64}$/.test(build) ? build : null
  } catch {
    return null
  }
}
