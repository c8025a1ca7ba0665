// Shortens the requests of a program for a recording. The shape of every request and of its parts stays; long texts are
// shortened; of the tools, only those that were called and one more stay.

import type { Trial } from './rows.ts'
import type { Sent } from './tap.ts'

export interface Recording {
  readonly program: string
  readonly version: string
  readonly requests: readonly RecordedRequest[]
}

export interface RecordedRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

const TEXT_MAX = 120
/** Headers of the connection itself, and the credential, which the test sets. */
const LEFT_OUT =
  /^(host|connection|content-length|transfer-encoding|accept-encoding|authorization|x-api-key|x-goog-api-key)$/

/** Names of tools that any request calls, in every dialect. */
function calledIn(value: unknown, found: Set<string>): Set<string> {
  if (Array.isArray(value)) for (const one of value) calledIn(one, found)
  else if (typeof value === 'object' && value !== null) {
    const fields = value as Record<string, unknown>
    const isCall =
      /tool_use|function_call$|tool_call/.test(String(fields.type)) || 'arguments' in fields || 'args' in fields
    if (isCall && typeof fields.name === 'string') found.add(fields.name)
    for (const [name, one] of Object.entries(fields)) if (name !== 'tools') calledIn(one, found)
  }
  return found
}

function shorten(value: unknown, called: ReadonlySet<string>, name = ''): unknown {
  // State that a provider has signed must stay whole.
  const isSealed = /signature|encrypted|arguments|^id$|_id$|Signature/.test(name)
  if (typeof value === 'string') return isSealed || value.length <= TEXT_MAX ? value : `${value.slice(0, TEXT_MAX)}…`
  if (Array.isArray(value)) {
    const list = name === 'tools' || name === 'functionDeclarations' ? fewTools(value, called) : value
    return list.map(one => shorten(one, called))
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([field, one]) => [field, shorten(one, called, field)]))
}

function fewTools(tools: readonly unknown[], called: ReadonlySet<string>): readonly unknown[] {
  const nameOf = (tool: unknown): unknown => {
    const { name, function: inner } = tool as { name?: unknown; function?: { name?: unknown } }
    return name ?? inner?.name
  }
  const isFunction = (tool: unknown): boolean => typeof nameOf(tool) === 'string'
  const firstOther = tools.find(tool => isFunction(tool) && !called.has(String(nameOf(tool))))
  return tools.filter(tool => !isFunction(tool) || called.has(String(nameOf(tool))) || tool === firstOther)
}

export const nameOfRecording = ({ program, code }: Trial): string =>
  `${program}${code === undefined ? '' : `-${code}`}.json`

/** The text of a recording. Folders of the run get the names of an ordinary machine. */
export function recordingOf(trial: Trial, sent: readonly Sent[], folders: Readonly<Record<string, string>>): string {
  const rename = (text: string): string =>
    Object.entries(folders).reduce((sofar, [folder, shown]) => sofar.replaceAll(folder, shown), text)
  const bodies = sent.map(({ body }) => (body === '' ? undefined : (JSON.parse(rename(body)) as unknown)))
  const called = calledIn(bodies, new Set())
  const requests = sent.map(({ method, path, headers }, at) => ({
    method,
    path,
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !LEFT_OUT.test(name))),
    body: shorten(bodies[at], called),
  }))
  // The last request has the whole conversation, the first one is often a question on the side.
  const kept = requests.filter((_, at) => at === 0 || at === requests.length - 1)
  const recording: Recording = { program: trial.program, version: trial.version, requests: kept }
  return `${JSON.stringify(recording, null, 1)}\n`
}
