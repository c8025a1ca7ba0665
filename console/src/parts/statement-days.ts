// Recomputes the hashes of the closed days of a statement: SHA-256 of the hash of the day before and of a text, which has a
// line for the account and the day, and one for each line of the statement in the order of the ledger.

import type { DailyHash, StatementLine } from '../api/types.ts'

export interface DayProofs {
  /** Closed days whose lines are all shown and have the hash of the day. */
  readonly agree: readonly string[]
  readonly differ: readonly string[]
}

interface ShownStatement {
  readonly account: string
  /** Newest first, as the gateway lists them. */
  readonly lines: readonly StatementLine[]
  /** There are no older lines. */
  readonly isWhole: boolean
  /** Newest first, without gaps. */
  readonly days: readonly DailyHash[]
}

const bytesOf = (hex: string): Uint8Array =>
  Uint8Array.from({ length: hex.length / 2 }, (_, index) => Number.parseInt(hex.slice(index * 2, index * 2 + 2), 16))

const hexOf = (bytes: ArrayBuffer): string =>
  Array.from(new Uint8Array(bytes), byte => byte.toString(16).padStart(2, '0')).join('')

/** The text of a day after the hash of the day before. `lines`: oldest first. */
export const textOfDay = (account: string, day: string, lines: readonly StatementLine[]): string =>
  [
    [account, day],
    ...lines.map(line => [
      ...[line.made, line.kind, line.amount, line.balance, line.with],
      ...[line.ref, line.reference, line.author],
    ]),
  ]
    .map(values => `${JSON.stringify(values)}\n`)
    .join('')

async function hashOf(previous: string, text: string): Promise<string> {
  const [before, after] = [bytesOf(previous), new TextEncoder().encode(text)]
  const whole = new Uint8Array(before.length + after.length)
  whole.set(before)
  whole.set(after, before.length)
  return hexOf(await crypto.subtle.digest('SHA-256', whole))
}

export async function proveDays({ account, lines, isWhole, days }: ShownStatement): Promise<DayProofs> {
  const proofs = { agree: [] as string[], differ: [] as string[] }
  const places = new Map(lines.map(({ kind, ref }, place) => [`${kind} ${ref}`, place]))
  const placeOf = (day: DailyHash | undefined): number | undefined =>
    day && places.get(`${day.lastKind} ${day.lastRef}`)
  // The statement may have been read before the end of a day, or only up to some time.
  const newestDay = lines[0]?.made.slice(0, 10) ?? ''
  for (const [index, day] of days.entries()) {
    const [newest, before] = [placeOf(day), placeOf(days[index + 1])]
    const end = (newest ?? lines.length) + day.transfers
    // Lines that are not shown prove nothing. But a line between others that are shown must be there.
    if (end > lines.length && before === undefined && !isWhole) continue
    if (newest === undefined && !(newestDay > day.day)) continue
    const isComplete = newest !== undefined && end <= lines.length && (before === undefined || before === end)
    const shown = isComplete ? lines.slice(newest, end).toReversed() : []
    const isSame = isComplete && (await hashOf(day.previousHash, textOfDay(account, day.day, shown))) === day.hash
    proofs[isSame ? 'agree' : 'differ'].push(day.day)
  }
  return proofs
}
