// Starts PostgreSQL and Redis from Debian's packages. They use the core of the load generator, so that the gateway has its
// own core.

import { spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../test/support/free-port.ts'
import type { Child, Workbench } from '../system/workbench.ts'
import { LOAD_CORE, read, untilListening } from '../system/workbench.ts'

const VERSIONS = '/usr/lib/postgresql'

export interface Server {
  readonly child: Child
  readonly url: string
}

function findPrograms(): string | undefined {
  const [newest] = existsSync(VERSIONS) ? readdirSync(VERSIONS).sort((a, b) => Number(b) - Number(a)) : []
  return newest && join(VERSIONS, newest, 'bin')
}

/** The reason why the servers cannot be started; undefined if they can. */
export function missingServers(): string | undefined {
  if (findPrograms() === undefined) return 'PostgreSQL is not installed (apt-get install postgresql)'
  return existsSync('/usr/bin/redis-server') ? undefined : 'Redis is not installed (apt-get install redis-server)'
}

/** Uses the default settings: each commit waits for the disk. */
export async function startPostgres(bench: Workbench): Promise<Server> {
  const programs = findPrograms()!
  const folder = join(bench.folder, 'postgres')
  mkdirSync(folder)
  // The server refuses to run as root, so root starts it as the user of the package.
  const isRoot = userInfo().uid === 0
  const idOf = (option: string): number => Number(spawnSync('id', [option, 'postgres'], { encoding: 'utf8' }).stdout)
  const as = isRoot ? ['setpriv', `--reuid=${idOf('-u')}`, `--regid=${idOf('-g')}`, '--clear-groups', '--'] : []
  if (isRoot) {
    chownSync(folder, idOf('-u'), idOf('-g'))
    spawnSync('chmod', ['a+x', bench.folder])
  }
  const data = join(folder, 'data')
  read([...as, join(programs, 'initdb'), '-D', data, '-U', 'weir', '-A', 'trust', '--no-locale', '-E', 'UTF8'])
  const port = freePort()
  const settings = [
    `port=${port}`,
    `unix_socket_directories=${folder}`,
    'listen_addresses=127.0.0.1',
    'max_connections=200',
  ]
  const command = [...as, join(programs, 'postgres'), '-D', data, ...settings.flatMap(setting => ['-c', setting])]
  const child = bench.start({ name: 'postgres', core: LOAD_CORE, command, env: {} })
  await untilListening(port, child)
  return { child, url: `postgres://weir@127.0.0.1:${port}/postgres` }
}

export async function startRedis(bench: Workbench): Promise<Server> {
  const port = freePort()
  const command = ['/usr/bin/redis-server', '--port', String(port), '--bind', '127.0.0.1', '--save', '']
  const child = bench.start({ name: 'redis', core: LOAD_CORE, command, env: {} })
  await untilListening(port, child)
  return { child, url: `redis://127.0.0.1:${port}` }
}
