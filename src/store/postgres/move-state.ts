// The row of PostgreSQL that says whether its data can be used (migrations/0010-moves.sql).

import { FolderError } from '../engine/folder-error.ts'
import type { Steps } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'

/** A move cannot be made or was not completed. Its message is shown as it is. */
export class MoveError extends FolderError {}

export type MoveState = 'copied' | 'ready' | 'leaving' | 'left'

export interface MoveStateRow {
  readonly id: string
  readonly state: MoveState
}

const find = postgresQuery<MoveStateRow>('SELECT id, state FROM move_state')
const write = postgresQuery(
  `INSERT INTO move_state VALUES (1, $1, $2, database_ms())
   ON CONFLICT (one) DO UPDATE SET id = excluded.id, state = excluded.state, changed_ms = excluded.changed_ms`,
)
const advance = postgresQuery(
  'UPDATE move_state SET state = $3, changed_ms = database_ms() WHERE id = $1 AND state = $2',
)
const findTables = postgresQuery<{ name: string }>(
  `SELECT n.nspname || '.' || c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
     AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
       AND d.deptype = 'e') ORDER BY 1`,
)
const findServer = postgresQuery<{ version: bigint; encoding: string; place: string }>(
  `SELECT CAST(current_setting('server_version_num') AS BIGINT) AS version, current_setting('server_encoding') AS encoding,
     current_database() || coalesce(' on ' || host(inet_server_addr()), '') AS place`,
)
// A process that starts reads this first, and says why it does not start.
const noteForStart = postgresQuery('UPDATE schema_info SET state = $1')
const infoState = (state: MoveState): string => (state === 'ready' ? 'ready' : 'moving')

const VERSION_MIN = 150_000n

export const findMoveState = (): Steps<MoveStateRow | undefined> => find.get()

export function* writeMoveState(id: string, state: MoveState): Steps<void> {
  yield* write.run(id, state)
  yield* noteForStart.run(infoState(state))
}

/** Returns false where the state is not `from`, or belongs to another move. */
export function* advanceMoveState(id: string, from: MoveState, to: MoveState): Steps<boolean> {
  if ((yield* advance.run(id, from, to)) === 0) return false
  yield* noteForStart.run(infoState(to))
  return true
}

export interface MoveTarget {
  /** The name of the database for people, without user and password. */
  readonly place: string
  readonly isEmpty: boolean
  /** Undefined where no data was ever moved here. */
  readonly move: MoveStateRow | undefined
}

/** What a database is for a move. Throws where it cannot be used at all. */
export function* inspectDatabase(): Steps<MoveTarget> {
  const { version, encoding, place } = (yield* findServer.get())!
  if (version < VERSION_MIN) throw new MoveError('Weir needs PostgreSQL 15 or later.')
  if (encoding !== 'UTF8') throw new MoveError(`The database must have the encoding UTF8; it has ${encoding}.`)
  const tables = (yield* findTables.all()).map(({ name }) => name)
  const move = tables.includes('public.move_state') ? yield* findMoveState() : undefined
  return { place: `the database ${place}`, isEmpty: tables.length === 0, move }
}
