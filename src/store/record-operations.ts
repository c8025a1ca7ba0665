// The writer's part in looking after records: the log of what was written is let go once it has been summed up.

import type { Database } from 'bun:sqlite'
import type { Run } from './operations.ts'

/** So few that no call waits for it. */
const TRIMMED_AT_ONCE = 1_000

type RecordRun = Pick<Run, 'trimLog'>

export function recordOperations(db: Database): RecordRun {
  // The last row stays in any case: by it, the next one gets a number that was never used.
  const trim = db.query(
    `DELETE FROM record_log WHERE seq IN (SELECT seq FROM record_log
       WHERE seq < ?1 AND seq < (SELECT max(seq) FROM record_log) ORDER BY seq LIMIT ?2)`,
  )
  return {
    trimLog: ({ below }) => ({ done: 'trimmed', count: trim.run(below, TRIMMED_AT_ONCE).changes }),
  }
}
