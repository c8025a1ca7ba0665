// Where the programs of PostgreSQL are, for tests that start a server.

import { existsSync, readdirSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'

const VERSIONS = '/usr/lib/postgresql'
const VERSION_MIN = 15

/** The folder with the programs of another version, such as one that is only unpacked. */
const CHOSEN = process.env.WEIR_TEST_POSTGRES

/** The folder with the programs of the newest installed version, unless another one is chosen. */
function findPrograms(): string | undefined {
  if (CHOSEN !== undefined) return existsSync(join(CHOSEN, 'postgres')) ? CHOSEN : undefined
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS).map(Number) : []
  const newest = Math.max(...versions.filter(version => version >= VERSION_MIN))
  const folder = join(VERSIONS, String(newest), 'bin')
  return existsSync(join(folder, 'postgres')) ? folder : undefined
}

/** The server refuses to run as root, so root starts it as the user of the package. */
const isRoot = userInfo().uid === 0

function idOf(option: '-u' | '-g'): number | undefined {
  const { exitCode, stdout } = Bun.spawnSync(['id', option, 'postgres'])
  return exitCode === 0 ? Number(stdout.toString()) : undefined
}

export const programs = findPrograms()
/** Undefined where the server runs as the present user. */
export const owner = isRoot ? { uid: idOf('-u'), gid: idOf('-g') } : undefined

/** Why no server can be started; undefined where one can. */
export const missing =
  programs === undefined
    ? `PostgreSQL ${VERSION_MIN} or later is not installed in ${CHOSEN ?? VERSIONS}`
    : owner !== undefined && owner.uid === undefined
      ? 'root cannot run PostgreSQL, and there is no user postgres'
      : undefined
