// Installs what the other commands need: the locked packages of the gateway and of its console; as root, if they are
// missing, also Debian's packages of nginx for benchmarks, and of PostgreSQL, Redis and a browser for tests. It is
// plain Node, because nothing else is installed yet, and it is fast if nothing is missing.

import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const wanted = process.argv[2]
/** Commands that only run the gateway need no packages for tests. */
const isForTests = wanted !== undefined && wanted !== '--console'
const isForConsole = ['--console', '--test', '--tools'].includes(wanted)

/**
 * A copy of the lock file of the last install is beside the packages: if a pull changes the lock file, they are
 * installed again.
 */
const stampIn = folder => join(folder, 'node_modules', '.weir-lock')
const stampOf = folder => (existsSync(stampIn(folder)) ? readFileSync(stampIn(folder), 'utf8') : '')

/** Whether npm succeeded. */
async function install(folder, args, stamp) {
  const all = [...args, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const child = spawn('npm', all, { cwd: folder, stdio: ['ignore', 2, 2] })
  const problem = await new Promise(resolve => {
    child.on('error', ({ message }) => resolve(`: ${message}`))
    child.on('close', status => resolve(status === 0 ? undefined : ''))
  })
  if (problem === undefined) {
    rmSync(stampIn(folder), { force: true })
    writeFileSync(stampIn(folder), stamp)
    return true
  }
  console.error(`weir: "npm ${all.join(' ')}" failed in ${folder}${problem}.`)
  return false
}

/** The gateway needs a third of the packages; those for tests are installed before the first test run. */
async function installGateway() {
  const all = readFileSync(join(root, 'package-lock.json'), 'utf8')
  const withoutTests = `without tests\n${all}`
  const installed = stampOf(root)
  if (installed === all || (!isForTests && installed === withoutTests)) return true
  console.error('weir: installing the locked packages …')
  // `npm ci` removes all packages first, but a gateway may be running from this folder.
  const command = installed === withoutTests ? ['install', '--no-save'] : ['ci']
  const omitted = isForTests ? [] : ['--omit=dev']
  return await install(root, [...command, ...omitted], isForTests ? all : withoutTests)
}

/** The console has its own packages. */
async function installConsole() {
  const folder = join(root, 'console')
  const lock = readFileSync(join(folder, 'package-lock.json'), 'utf8')
  if (stampOf(folder) === lock) return true
  console.error('weir: installing the locked packages of the console …')
  return await install(folder, ['ci', '--include=dev'], lock)
}

const [hasGateway, hasConsole] = await Promise.all([installGateway(), isForConsole ? installConsole() : true])
// A gateway without its console still serves calls; tests need both.
if (!hasGateway || (!hasConsole && isForTests)) process.exit(1)

const PROGRAMS = '/usr/lib/postgresql'
const hasPostgres = () =>
  existsSync(PROGRAMS) && readdirSync(PROGRAMS).some(version => existsSync(join(PROGRAMS, version, 'bin', 'postgres')))

/** The first one is the browser without windows, a third faster in tests; not every release of Debian has it. */
const BROWSERS = ['chromium-headless-shell', 'chromium']
const hasBrowser = () => BROWSERS.some(name => existsSync(`/usr/bin/${name}`))

// Without these servers, tests that need one are skipped with a message; a benchmark without nginx has no result. Without
// the browser, the tests of the console fail. If a row has several packages, one of them is enough.
const debian = {
  '--bench': [{ packages: ['nginx'], isThere: () => existsSync('/usr/sbin/nginx'), isNeeded: true }],
  '--test': [
    { packages: ['postgresql'], isThere: hasPostgres, isNeeded: false },
    { packages: ['redis-server'], isThere: () => existsSync('/usr/bin/redis-server'), isNeeded: false },
    { packages: BROWSERS, isThere: hasBrowser, isNeeded: false },
    { packages: ['fonts-wqy-microhei'], isThere: () => existsSync('/usr/share/fonts/truetype/wqy'), isNeeded: false },
  ],
}[wanted]
const missing = (debian ?? []).filter(({ isThere }) => !isThere())
if (missing.length > 0 && process.getuid?.() === 0) {
  const names = missing.map(({ packages }) => packages[0])
  console.error(`weir: installing ${names.join(', ')} …`)
  // The packages must not start servers.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const options = { env, stdio: ['ignore', 2, 2] }
  spawnSync('apt-get', ['update', '-qq'], options)
  // One after the other, so that a package that cannot be installed does not stop the others.
  for (const { packages, isThere } of missing) {
    for (const name of packages) {
      if (!isThere()) spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', name], options)
    }
  }
}
for (const { packages, isThere, isNeeded } of missing) {
  if (isThere()) continue
  const [name] = packages
  console.error(`weir: ${name} is not installed. To install it: sudo apt-get install ${name}`)
  if (isNeeded) process.exit(1)
}
