// Groups of reads: functions that return steps. Bound to a database, they are functions that return results.
//
// There are two kinds. A point read is one look-up, or several that need not fit together. The statements of a snapshot
// read see the same state of the database.

import type { RunSteps } from './sqlite-steps.ts'
import type { Steps } from './steps.ts'

type Reads = Readonly<Record<string, (...input: never[]) => Steps<unknown>>>

/** Reads that return their results at once, as on SQLite. */
export type BoundReads<Group> = {
  readonly [Name in keyof Group]: Group[Name] extends (...input: infer Input) => Steps<infer Result>
    ? (...input: Input) => Result
    : never
}

/** Reads of any database: PostgreSQL returns promises. Whoever uses this type awaits each result. */
export type AwaitedReads<Group> = {
  readonly [Name in keyof Group]: Group[Name] extends (...input: infer Input) => Steps<infer Result>
    ? (...input: Input) => Result | Promise<Result>
    : never
}

export function bindReads<Group extends Reads>(reads: Group, runSteps: RunSteps): BoundReads<Group>
export function bindReads<Group extends Reads>(
  reads: Group,
  runSteps: <T>(steps: Steps<T>) => Promise<T>,
): AwaitedReads<Group>
export function bindReads(reads: Reads, runSteps: (steps: Steps<unknown>) => unknown): unknown {
  return bind(reads, (read, input) => runSteps(read(...input)))
}

/** Like `bindReads`, for a database that may have to begin a read again. */
export function bindRepeatableReads<Group extends Reads>(
  reads: Group,
  runSteps: <T>(open: () => Steps<T>) => Promise<T>,
): AwaitedReads<Group>
export function bindRepeatableReads(reads: Reads, runSteps: (open: () => Steps<unknown>) => unknown): unknown {
  return bind(reads, (read, input) => runSteps(() => read(...input)))
}

function bind(reads: Reads, run: (read: Reads[string], input: never[]) => unknown): unknown {
  return Object.fromEntries(
    Object.entries(reads).map(([name, read]) => [name, (...input: never[]) => run(read, input)]),
  )
}
