// The packages that a user of Weir gets: those of the lock file that are no development dependencies.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '..', '..')

export interface LockedPackage {
  readonly version: string
  readonly dev?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

export const lockedPackages = (): Readonly<Record<string, LockedPackage>> =>
  (JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as { packages: Record<string, LockedPackage> })
    .packages

/** Their folders (`node_modules/…`), as far as they are installed: of the packages with Bun, only one fits a machine. */
export function shippedPackages(): readonly string[] {
  const locked = lockedPackages()
  const shipped = Object.keys(locked).filter(path => path !== '' && !locked[path]!.dev)
  return shipped.filter(path => existsSync(join(ROOT, path)))
}
