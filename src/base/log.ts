// One JSON line an event. Fields are our own words and numbers; a Secret prints as [secret].

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
          write(`${JSON.stringify({ time: new Date().toISOString(), level: name, event, ...fields })}\n`)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** What may be said of a thrown value in the log: its class and text, never its fields. */
export function describeFault(fault: unknown): string {
  return fault instanceof Error ? `${fault.name}: ${fault.message}` : typeof fault
}
