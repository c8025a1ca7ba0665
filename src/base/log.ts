// The log: one JSON line for each event. A Secret prints as [secret]. Control characters are escaped, and credentials
// and query strings of URLs are removed, because fields may contain text of callers and upstreams.

import { escapeControls, redactSecrets } from './text/safe-text.ts'

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

/** Fields that cannot be written as JSON are left out: logging must not make a call fail. */
function lineOf(head: Record<string, string>, fields: Record<string, unknown>): string {
  try {
    return escapeControls(redactSecrets(JSON.stringify({ ...head, ...fields }, loggable)))
  } catch {
    return escapeControls(redactSecrets(JSON.stringify({ ...head, fields: 'unreadable' })))
  }
}

function loggable(_name: string, value: unknown): unknown {
  if (value instanceof Error) return describeFault(value)
  return typeof value === 'bigint' ? String(value) : value
}

const CAUSES_MAX = 3

/** A thrown value as text for the log: its class and message and those of its causes, never its other fields. */
export function describeFault(fault: unknown, causes = CAUSES_MAX): string {
  if (!(fault instanceof Error)) return typeof fault
  const cause = fault.cause === undefined || causes === 0 ? '' : ` (${describeFault(fault.cause, causes - 1)})`
  return redactSecrets(`${fault.name}: ${fault.message}${cause}`)
}
