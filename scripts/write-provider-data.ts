// Prints all provider files as one file that `weir providers update` can install, and its checksum on standard error.

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dir, '..', 'providers')

export function providerData(): string {
  const files = readdirSync(folder).sort()
  const providers = files.map(file => JSON.parse(readFileSync(join(folder, file), 'utf8')) as { builtIn?: boolean })
  return `${JSON.stringify({ format: 1, providers: providers.filter(({ builtIn }) => !builtIn) })}\n`
}

if (import.meta.main) {
  const text = providerData()
  process.stdout.write(text)
  process.stderr.write(`sha256: ${createHash('sha256').update(text).digest('hex')}\n`)
}
