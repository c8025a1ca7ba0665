// The types of operations. An operation takes plain data, returns plain data, and runs inside a transaction that its
// engine has open. The operations of calls (hold, settle …) are synchronous functions on SQLite, because every call pays
// for them; all others are steps that run on each database.

import type { Steps } from './steps.ts'

interface OperationShape {
  readonly input: unknown
  readonly result: unknown
}

type OperationGroup<Group> = { readonly [Name in keyof Group]: OperationShape }

/** One handler function for each operation of a group. */
export type HandlersOf<Group extends OperationGroup<Group>> = {
  readonly [Name in keyof Group]: (input: Group[Name]['input']) => Group[Name]['result']
}

/** The same, as steps. */
export type StepsOf<Group extends OperationGroup<Group>> = {
  readonly [Name in keyof Group]: (
    input: Group[Name]['input'],
    context: OperationContext,
  ) => Steps<Group[Name]['result']>
}

/** What the engine provides to operations. */
export interface OperationContext {
  /** The clock of the ledger. All decisions about money use this clock and no other. */
  nowMs(): number
  readonly operators: OperatorBalances
  readonly budgets: BudgetScopes
}

/** The balances of the operator's own accounts. They are not changed by SQL of operations, because all calls change them. */
export interface OperatorBalances {
  read(id: number): Steps<bigint>
  move(id: number, amount: bigint): Steps<void>
}

/** Where the engine keeps in memory which keys and accounts have a budget, it is told here of changes. */
export interface BudgetScopes {
  add(scopeId: number): void
  /** After a budget was removed, or after a change was rolled back. */
  reload(): void
}
