// Brings what the other commands need: the locked packages, and for benchmarks nginx from Debian's packages when it
// is missing and we are root. Plain Node, because nothing else is there yet. Quick when nothing is missing.

import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const wanted = process.argv[2]

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] })
  if (error || status !== 0) {
    console.error(`weir: "${command} ${args.join(' ')}" failed${error ? `: ${error.message}` : ''}.`)
    process.exit(1)
  }
}

// The lock file of the last install is kept beside the packages: a pull that changes ours installs again. The gateway
// itself needs a third of the packages; what tests need is installed when they first run.
const lock = readFileSync(join(root, 'package-lock.json'), 'utf8')
const [all, withoutTests] = [lock, `without tests\n${lock}`]
const stamp = join(root, 'node_modules', '.weir-lock')
const installed = existsSync(stamp) ? readFileSync(stamp, 'utf8') : ''
if (installed !== all && (wanted !== undefined || installed !== withoutTests)) {
  // `npm ci` removes all packages first, and a gateway that runs from this folder needs those that it has.
  const command = installed === withoutTests ? ['install', '--no-save'] : ['ci']
  const omitted = wanted === undefined ? ['--omit=dev'] : []
  console.error('weir: installing the locked packages …')
  run('npm', [...command, ...omitted, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'])
  writeFileSync(stamp, wanted === undefined ? withoutTests : all)
}

const debian = { '--bench': [['nginx', '/usr/sbin/nginx']] }
const missing = (debian[wanted] ?? []).filter(([, file]) => !existsSync(file)).map(([name]) => name)
if (missing.length > 0) {
  if (process.getuid?.() !== 0) {
    console.error(`weir: please install these first: sudo apt-get install ${missing.join(' ')}`)
    process.exit(1)
  }
  console.error(`weir: installing ${missing.join(', ')} …`)
  run('apt-get', ['update', '-qq'])
  run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...missing])
}
