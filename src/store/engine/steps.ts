// Statements as data. An operation is a generator that yields statements and gets their results. So its code does not
// depend on the database: SQLite runs the statements synchronously (sqlite-steps.ts), PostgreSQL runs them one after
// another in a transaction (postgres/pools.ts). Between them an operation can wait for nothing else.
//
// SQL is written in the subset that both databases understand, with `?1`, `?2` … as parameters:
// - `ON CONFLICT (columns)`; columns of the present row with the name of their table
// - `IS NOT DISTINCT FROM` instead of `IS ?1`; `CASE` instead of `iif`, and of `max` and `min` of several values
// - `CAST(… AS BIGINT)` around sums, around counts and lengths whose value is used, and around parameters that may be
//   null where no column gives them a type
// - a name for each subquery, `NULLS FIRST` or `NULLS LAST` where a sort column may be null, no `LIMIT -1`
// Where this is not possible, a query has two texts. A test prepares all of them on both databases.

export type SqlValue = bigint | number | string | Uint8Array | null

/** The text of a statement for each database. */
export interface SqlText {
  readonly sqlite: string
  readonly postgres: string
}

/** SQL, or a part of it, with two texts where the databases need different ones. */
export type SqlPiece = string | SqlText

export interface Statement {
  readonly text: SqlText
  readonly values: readonly SqlValue[]
  /** What the statement returns: its first row or undefined, all rows, or the number of changed rows. */
  readonly want: 'row' | 'rows' | 'changes'
  /** The text was made for one request. A connection need not keep it prepared. */
  readonly isUnique?: true
}

export type Steps<T> = Generator<Statement, T, unknown>

export interface Query<Row> {
  get(...values: SqlValue[]): Steps<Row | undefined>
  all(...values: SqlValue[]): Steps<Row[]>
  /** Returns the number of changed rows. */
  run(...values: SqlValue[]): Steps<number>
}

const registry = new Map<string, SqlText>()

/** All texts that were registered so far. Only tests use this. */
export const registeredTexts = (): readonly SqlText[] => [...registry.values()]

/** Registers a text. It must be called when a module is loaded, and not per operation: connections cache statements. */
function register(sql: SqlPiece): SqlText {
  const text = joinTexts([sql])
  const known = registry.get(text.sqlite)
  if (known !== undefined) return known
  registry.set(text.sqlite, text)
  return text
}

/** Joins pieces to the text for each database. */
function joinTexts(pieces: readonly SqlPiece[]): SqlText {
  const textFor = (database: keyof SqlText): string =>
    pieces.map(piece => (typeof piece === 'string' ? piece : piece[database])).join(' ')
  return { sqlite: textFor('sqlite'), postgres: textFor('postgres').replace(/\?(\d+)/g, '$$$1') }
}

/** The number of a LIMIT that limits nothing: an OFFSET needs a LIMIT on SQLite, and no negative one on PostgreSQL. */
export const ALL_ROWS = '9223372036854775807'

/** Parameters are written `?1`, `?2` … also where the databases need different texts. */
export const query = <Row = unknown>(sql: SqlPiece): Query<Row> => queryOf(register(sql))

/** A query of one database only. Its text is not registered. */
export const postgresQuery = <Row = unknown>(sql: string): Query<Row> => queryOf({ sqlite: '', postgres: sql })

function queryOf<Row>(text: SqlText): Query<Row> {
  return {
    *get(...values) {
      return (yield { text, values, want: 'row' }) as Row | undefined
    },
    *all(...values) {
      return (yield { text, values, want: 'rows' }) as Row[]
    },
    *run(...values) {
      return (yield { text, values, want: 'changes' }) as number
    },
  }
}

/** A query whose text depends on a request. All of its SQL comes from constants; the values of the request are bound. */
export class RequestQuery {
  readonly #values: SqlValue[] = []

  /** Returns the parameter for a value. The text must contain it. */
  bind(value: SqlValue): string {
    return `?${this.#values.push(value)}`
  }

  /** The pieces are joined with spaces. */
  *all<Row>(...pieces: readonly SqlPiece[]): Steps<Row[]> {
    return (yield { text: joinTexts(pieces), values: this.#values, want: 'rows', isUnique: true }) as Row[]
  }
}
