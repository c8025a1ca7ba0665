// One JSON line an event, whatever is in it. Fields are our own words and numbers; a Secret prints as [secret], and of
// what others said no line keeps an address's query or whoever logs in there.

import { harmless, withoutSecrets } from './text/safe-text.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

const RANK: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3, silent: 4 }

export interface Log {
  debug(event: string, fields?: Record<string, unknown>): void
  info(event: string, fields?: Record<string, unknown>): void
  warn(event: string, fields?: Record<string, unknown>): void
  error(event: string, fields?: Record<string, unknown>): void
}

export function isLogLevel(text: string): text is LogLevel {
  return Object.hasOwn(RANK, text)
}

export function buildLog(level: LogLevel, write: (line: string) => void): Log {
  const at = (name: LogLevel) =>
    RANK[name] < RANK[level]
      ? () => {}
      : (event: string, fields: Record<string, unknown> = {}) =>
          write(`${lineOf({ time: new Date().toISOString(), level: name, event }, fields)}\n`)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** What cannot be written down is left out: a log must not be why a call fails. */
function lineOf(head: Record<string, string>, fields: Record<string, unknown>): string {
  try {
    return harmless(withoutSecrets(JSON.stringify({ ...head, ...fields }, told)))
  } catch {
    return harmless(withoutSecrets(JSON.stringify({ ...head, fields: 'unreadable' })))
  }
}

function told(_name: string, value: unknown): unknown {
  if (value instanceof Error) return describeFault(value)
  return typeof value === 'bigint' ? String(value) : value
}

const CAUSES_MAX = 3

/** What may be said of a thrown value in the log: its class and text, and those of what caused it, never its fields. */
export function describeFault(fault: unknown, causes = CAUSES_MAX): string {
  if (!(fault instanceof Error)) return typeof fault
  const because = fault.cause === undefined || causes === 0 ? '' : ` (${describeFault(fault.cause, causes - 1)})`
  return withoutSecrets(`${fault.name}: ${fault.message}${because}`)
}
