// Wrong types everywhere: each field of a rich request of each dialect is replaced in turn by invalid values, for upstreams
// of all dialects. No request causes a 5xx, and every error is in the dialect of the caller.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { toolCall } from '../../tools/fake-upstream/answers.ts'
import { expectCheap } from '../support/cpu.ts'
import type { Harness } from '../support/gateway.ts'
import { pooled } from '../support/pooled.ts'
import type { Json } from './raw-callers.ts'
import { eventsOfBody, rawCallers } from './raw-callers.ts'
import { richRequest } from './rich-requests.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

let harness: Harness
let key: string
const unhandled: unknown[] = []
const note = (fault: unknown): void => void unhandled.push(fault)

beforeAll(async () => {
  process.on('unhandledRejection', note)
  harness = await startDialects()
  key = await harness.key({ qpm: 100_000, credit: '1000000' })
})
afterAll(async () => {
  await harness.stop()
  process.off('unhandledRejection', note)
})

function deep(levels: number): unknown {
  let value: unknown = 'x'
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? { a: value } : [value]
  return value
}

/** `undefined` removes the field. */
const wrong: readonly unknown[] = [
  ...[undefined, null, -7.5, 1e308, true, 'x', '', 'y'.repeat(50_000)],
  ...[[], [null], [[]], {}, { type: 'toString' }, deep(200), Array.from({ length: 2_000 }, () => ({}))],
  JSON.parse('{"__proto__":{"type":"text"},"constructor":5,"length":1e9}'),
]

type Path = readonly string[]

/** The paths of all values in a request, at any depth. */
function* pathsIn(value: unknown, path: Path = []): Iterable<Path> {
  if (path.length > 0) yield path
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value)) yield* pathsIn(inner, [...path, name])
}

function replaced(request: object, path: Path, value: unknown): object {
  const copy = structuredClone(request) as Record<string, unknown>
  let at = copy
  for (const name of path.slice(0, -1)) at = at[name] as Record<string, unknown>
  if (value === undefined) delete at[path.at(-1)!]
  else at[path.at(-1)!] = value
  return copy
}

interface Cell {
  readonly upstream: Dialect
  readonly name: string
  readonly stream: boolean
  readonly body: string
}

/** Each change goes to one upstream, plain or streamed, in turn, so that all upstreams together get all changes. */
function cellsOf(caller: Dialect): readonly Cell[] {
  const cells: Cell[] = []
  const paths = [...pathsIn(richRequest[caller](''))].filter(([top]) => top !== 'model' && top !== 'stream')
  for (const [number, path] of paths.entries()) {
    for (const [which, value] of wrong.entries()) {
      const turn = number * 7 + which
      if (turn % 2 === 1) continue
      const upstream = dialects[(turn / 2) % dialects.length]!
      const stream = turn % 3 === 0
      const request = replaced(richRequest[caller](modelOf(upstream)), path, value)
      const body = JSON.stringify('stream' in request ? { ...request, stream } : request)
      cells.push({ upstream, stream, body, name: `${path.join('.')} = ${JSON.stringify(value)?.slice(0, 40)}` })
    }
  }
  return cells
}

async function send(caller: Dialect, { upstream, stream, body }: Pick<Cell, 'upstream' | 'stream' | 'body'>) {
  const url = harness.url + rawCallers[caller].path({ model: modelOf(upstream), stream })
  const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
  const answer = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(100_000) })
  return { status: answer.status, text: await answer.text() }
}

/** Undefined if the answer is valid; else a description. */
async function verdict(caller: Dialect, cell: Cell): Promise<string | undefined> {
  const { status, text } = await send(caller, cell)
  const describe = (): string => `${cell.name} on ${cell.upstream}: ${status} ${text.slice(-300)}`
  if (status >= 500) return describe()
  try {
    if (status >= 400) rawCallers[caller].error(JSON.parse(text), status)
    else if (cell.stream) rawCallers[caller].completed(eventsOfBody(caller, text))
    else rawCallers[caller].whole(JSON.parse(text) as Json)
    return undefined
  } catch {
    return describe()
  }
}

describe.each(dialects)('a request of %s', caller => {
  test.each(dialects)('with many fields is served on %s', async upstream => {
    const body = JSON.stringify(richRequest[caller](modelOf(upstream)))
    const { status, text } = await send(caller, { upstream, body, stream: false })
    expect([status, text]).toEqual([200, text])
  })

  test('with any wrong value causes no 5xx', async () => {
    const found: string[] = []
    // Fewer than the calls that an account may always have at once, however slow the machine is.
    await pooled(cellsOf(caller), 4, async cell => {
      const fault = await verdict(caller, cell)
      if (fault !== undefined) found.push(fault)
    })
    expect(found).toEqual([])
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    expect(harness.logs.filter(line => line.includes('"level":"error"'))).toEqual([])
    expect(unhandled).toEqual([])
  })
})

const typedDialects = dialects.filter(dialect => dialect !== 'gemini')

test.each(typedDialects)('an invalid tool is refused as invalid, not as unpriced: %s', async caller => {
  for (const tool of ['x', null, 5, [], { type: 5 }]) {
    const body = JSON.stringify({ ...richRequest[caller](modelOf(caller)), tools: [tool] })
    const { status, text } = await send(caller, { upstream: caller, body, stream: false })
    expect([status, rawCallers[caller].error(JSON.parse(text), status).message]).toEqual([400, expect.any(String)])
    expect(text).toContain('tools[0]')
  }
})

describe('JSON in a string, nested more deeply than any stack, is handled fast', () => {
  const levels = 100_000
  const deepArguments = `{"city":${'['.repeat(levels)}${']'.repeat(levels)}}`

  /** Replaces the arguments of a call, in the dialects that have arguments as a string. */
  const callsOf: Partial<Record<Dialect, (request: string) => string>> = {
    'openai-chat': request => request.replace('"{\\"city\\":\\"Paris\\"}"', JSON.stringify(deepArguments)),
    'openai-responses': request => request.replace('"{\\"city\\":\\"Paris\\"}"', JSON.stringify(deepArguments)),
  }
  const requestPairs = Object.keys(callsOf).flatMap(caller =>
    dialects.map(upstream => [caller as Dialect, upstream] as const),
  )

  test.each(requestPairs)('in a request of %s for %s', async (caller, upstream) => {
    const body = callsOf[caller]!(JSON.stringify(richRequest[caller](modelOf(upstream))))
    expect(body.length).toBeGreaterThan(levels * 2)
    await expectCheap(1_500, async () => {
      expect((await send(caller, { upstream, body, stream: false })).status).toBe(200)
    })
  })

  const answerCells = dialects.flatMap(caller =>
    (['openai-chat', 'openai-responses'] as const).flatMap(upstream =>
      [false, true].map(stream => [caller, upstream, stream] as const),
    ),
  )

  test.each(answerCells)('in an answer for %s from %s, streamed: %p', async (caller, upstream, stream) => {
    const request = rawCallers[caller].body({ model: modelOf(upstream), stream })
    await expectCheap(1_500, async () => {
      harness.upstream.plan(toolCall({ name: 'map', arguments: deepArguments }))
      const { status, text } = await send(caller, { upstream, body: JSON.stringify(request), stream })
      expect(status).toBe(200)
      // In Gemini arguments are an object; arguments that are not one become a malformed call.
      if (caller === 'gemini') expect(text).toContain('MALFORMED_FUNCTION_CALL')
      else expect(text.length).toBeGreaterThan(levels * 2)
    })
  })
})
