// The output of the proofs, and their exit codes.

import type { Fleet } from '../../test/shared/fleet.ts'

export const print = (line: string): void => void process.stdout.write(`${line}\n`)

/** Stops all gateways. Returns the lines of their logs that must not occur, whatever else fails. */
export async function faultLinesOf({ members }: Pick<Fleet, 'members'>): Promise<readonly string[]> {
  await Promise.all(members.map(member => member.child.kill()))
  const logs = await Promise.all(members.map(member => member.logged()))
  const lines = logs.join('').split('\n')
  return lines.filter(line => /unhandled rejection|request failed|gateway_fault/.test(line))
}

export interface ProofResult {
  readonly violations: readonly string[]
  /** Findings of the audit. */
  readonly findings: readonly unknown[]
  readonly faultLines?: readonly string[]
}

/** Prints the result of a proof and ends the process, with 1 if anything was found. */
export function exitWith({ violations, findings, faultLines = [] }: ProofResult): never {
  for (const violation of violations.slice(0, 40)) print(`VIOLATION  ${violation}`)
  for (const finding of findings) print(`FINDING  ${JSON.stringify(finding)}`)
  for (const line of faultLines.slice(0, 20)) print(`LOG  ${line}`)
  const counts = `${violations.length} violations, ${findings.length} findings, ${faultLines.length} log lines`
  const hasPassed = violations.length + findings.length + faultLines.length === 0
  print(hasPassed ? 'no violation' : counts)
  process.exit(hasPassed ? 0 : 1)
}
