// Runs steps on a SQLite connection, synchronously. Each text is prepared once for the connection.

import type { Database, Statement as PreparedStatement } from 'bun:sqlite'
import type { SqlText, SqlValue, Statement, Steps } from './steps.ts'

export type RunSteps = <T>(steps: Steps<T>) => T

type Prepared = PreparedStatement<unknown, SqlValue[]>

export function sqliteSteps(db: Database): RunSteps {
  const statements = new Map<SqlText, Prepared>()

  function prepare(text: SqlText): Prepared {
    const known = statements.get(text)
    if (known !== undefined) return known
    // `close` finalizes what `query` has prepared. A statement of `prepare` would keep the file open.
    const prepared: Prepared = db.query(text.sqlite)
    statements.set(text, prepared)
    return prepared
  }

  function execute(statement: Statement): unknown {
    if (!statement.isUnique) return resultOf(prepare(statement.text), statement)
    const prepared: Prepared = db.prepare(statement.text.sqlite)
    try {
      return resultOf(prepared, statement)
    } finally {
      prepared.finalize()
    }
  }

  return steps => {
    let step = steps.next()
    while (!step.done) step = steps.next(execute(step.value))
    return step.value
  }
}

/** Runs steps in a transaction, so that all their statements see the same state of the database. */
export function sqliteSnapshots(db: Database, runSteps = sqliteSteps(db)): RunSteps {
  const transaction = db.transaction((steps: Steps<unknown>) => runSteps(steps))
  return <T>(steps: Steps<T>) => transaction(steps) as T
}

function resultOf(prepared: Prepared, { values, want }: Statement): unknown {
  if (want === 'row') return prepared.get(...values) ?? undefined
  return want === 'rows' ? prepared.all(...values) : prepared.run(...values).changes
}
