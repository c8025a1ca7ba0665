// Brings what the other commands need: the locked packages; for benchmarks nginx, and for tests PostgreSQL and Redis, from
// Debian's packages, when they are missing and we are root. It is plain Node, because nothing else is there yet, and it is
// quick when nothing is missing.

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
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

const PROGRAMS = '/usr/lib/postgresql'
const hasPostgres = () =>
  existsSync(PROGRAMS) && readdirSync(PROGRAMS).some(version => existsSync(join(PROGRAMS, version, 'bin', 'postgres')))

// Without these servers, the tests that need one are skipped and say so; a benchmark without nginx has no result.
const debian = {
  '--bench': [{ name: 'nginx', isThere: () => existsSync('/usr/sbin/nginx'), isNeeded: true }],
  '--test': [
    { name: 'postgresql', isThere: hasPostgres, isNeeded: false },
    { name: 'redis-server', isThere: () => existsSync('/usr/bin/redis-server'), isNeeded: false },
  ],
}[wanted]
const missing = (debian ?? []).filter(({ isThere }) => !isThere())
if (missing.length > 0 && process.getuid?.() === 0) {
  const names = missing.map(({ name }) => name)
  console.error(`weir: installing ${names.join(', ')} …`)
  // The packages must not start servers of their own.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const options = { env, stdio: ['ignore', 2, 2] }
  spawnSync('apt-get', ['update', '-qq'], options)
  // One after the other: a package that cannot be installed must not hinder the others.
  for (const name of names) spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', name], options)
}
for (const { name, isThere, isNeeded } of missing) {
  if (isThere()) continue
  console.error(`weir: ${name} is not installed. To install it: sudo apt-get install ${name}`)
  if (isNeeded) process.exit(1)
}
