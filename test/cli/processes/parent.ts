// The parent of several processes, as `weir serve` runs it, but with the child of the test.

import { join } from 'node:path'
import { serveProcesses } from '../../../src/cli/serve-processes.ts'
import { readConfig } from '../../../src/config.ts'

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const command = [process.execPath, join(import.meta.dir, 'child.ts')]
serveProcesses(readConfig(process.env), { say, killMs: 60_000, command }).catch((fault: Error) => {
  process.stderr.write(`weir: ${fault.message}\n`)
  process.exit(1)
})
