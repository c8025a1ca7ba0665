// What an audit has to say: which check failed, on whose account, in a sentence.

export type Check =
  | 'balance' // is not the sum of its transfers
  | 'sum' // of all balances is not zero
  | 'held' // is not the sum of the open holds
  | 'budget'
  | 'call' // charge, shortfall, refund, record and hold of one call
  | 'code'
  | 'parties' // a transfer between accounts that its kind does not connect
  | 'transfers' // are missing
  | 'schema' // a trigger, index or check that keeps the books is not there
  | 'file'

export interface Finding {
  readonly check: Check
  /** Null where it is nobody's alone. */
  readonly accountId: number | null
  /** The same each time that the same thing is found, so that it is acted upon once. */
  readonly key: string
  readonly text: string
}

export interface AuditReport {
  readonly findings: readonly Finding[]
  /** Read so far, and when the last look was. */
  readonly transfers: number
  readonly records: number
  readonly accounts: number
  readonly holds: number
  readonly atMs: number
  readonly tookMs: number
}

export interface Found extends Pick<Finding, 'check' | 'key' | 'text'> {
  /** The account as it stands in a row. */
  readonly owner?: bigint | undefined
}

export function finding({ check, key, text, owner }: Found): Finding {
  return { check, accountId: owner === undefined ? null : Number(owner), key: `${check}:${owner ?? ''}:${key}`, text }
}
