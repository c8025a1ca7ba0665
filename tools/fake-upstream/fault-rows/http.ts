// F16 to F22: HTTP that is broken, far too large, compressed without being asked, or surprising.

import {
  answer,
  buildBodyTo,
  buildFramesTo,
  buildReplyTo,
  filterFrames,
  frameSteps,
  jsonAnswer,
  streamHead,
} from '../answers.ts'
import { formatEvent } from '../dialect.ts'
import type { Script, Step } from '../script.ts'
import { bytes, chunk, close, end, head, script, scripted } from '../script.ts'
import { encodingFaults } from './encoding.ts'
import type { FaultKit, FaultRow } from './fault.ts'
import { fillTo, measureFilled, placeholder } from './filler.ts'

type Pairs = readonly (readonly [name: string, value: string])[]

/** A good answer with a wrong length in its head. */
function misframed({ dialect }: FaultKit, framing: (length: number) => Pairs, ...then: readonly Step[]): Script {
  return scripted(function* wrong(request) {
    const { contentType, body } = buildBodyTo(request, 'Hello', { dialect })
    const headers: Pairs = [['content-type', contentType], ...framing(body.length)]
    yield head(200, headers)
    yield headers.some(([name]) => name === 'transfer-encoding') ? chunk(body) : bytes(body)
    yield* then
  })
}

function lengthFaults(kit: FaultKit): readonly FaultRow[] {
  const says = (length: number | string) => ['content-length', String(length)] as const
  return [
    ['F16', 'Content-Length too short', 'either', misframed(kit, length => [says(length - 9)], end)],
    ['F16', 'Content-Length too long, then FIN', 'either', misframed(kit, length => [says(length + 9)], close)],
    ['F16', 'Content-Length too long, then silence', 'either', misframed(kit, length => [says(length + 9)])],
    ['F16', 'Content-Length is no number', 'either', misframed(kit, () => [says('many')], close)],
    ['F16', 'Content-Length is negative', 'either', misframed(kit, () => [says(-1)], close)],
    ['F16', 'two Content-Lengths that differ', 'either', misframed(kit, length => [says(length), says(7)], close)],
    [
      'F16',
      'Content-Length beside chunks',
      'either',
      misframed(kit, () => [says(7), ['transfer-encoding', 'chunked']], end),
    ],
  ]
}

/** A stream whose second half breaks the framing. */
function brokenChunks({ dialect }: FaultKit, ...then: readonly Step[]): Script {
  return scripted(function* broken(request) {
    yield streamHead
    yield* frameSteps(filterFrames(['open', 'piece'], buildFramesTo(request, ['Hello'], { dialect })))
    yield* then
  })
}

function chunkFaults(kit: FaultKit): readonly FaultRow[] {
  return [
    ['F17', 'chunk size is no number', 'either', brokenChunks(kit, bytes('zz\r\nhello\r\n'), close)],
    ['F17', 'chunk size is negative', 'either', brokenChunks(kit, bytes('-5\r\nhello\r\n'), close)],
    ['F17', 'chunk size beyond 64 bits', 'either', brokenChunks(kit, bytes('fffffffffffffffff\r\nhello\r\n'), close)],
    ['F17', 'chunk longer than its size', 'either', brokenChunks(kit, bytes('2\r\nhello\r\n0\r\n\r\n'), close)],
    ['F17', 'chunk shorter than its size', 'either', brokenChunks(kit, bytes('ff\r\nhello'), close)],
    ['F17', 'no terminating chunk', 'either', brokenChunks(kit, close)],
  ]
}

/** A valid whole answer of this size, generated while the gateway reads it. */
function hugeBody({ dialect, settings }: FaultKit, chunked: boolean): Script {
  return scripted(function* huge(request) {
    const text = dialect.plain(buildReplyTo(request, [placeholder], { dialect }))
    const framing: Readonly<Record<string, string>> = chunked
      ? { 'transfer-encoding': 'chunked' }
      : { 'content-length': String(measureFilled(settings.bodyBytes, text)) }
    yield head(200, { 'content-type': 'application/json', ...framing })
    for (const piece of fillTo(settings.bodyBytes, text)) yield chunked ? chunk(piece) : bytes(piece)
    yield end
  })
}

/** A very long stream: events of 64 KiB until the size is reached. */
function hugeStream({ dialect, settings }: FaultKit): Script {
  return scripted(function* huge(request) {
    const pieces = {
      *[Symbol.iterator]() {
        for (;;) yield 'x'.repeat(64 * 1024)
      },
    }
    let written = 0
    yield streamHead
    for (const frame of buildFramesTo(request, pieces, { dialect, usage: 'missing' })) {
      const event = formatEvent(frame)
      written += event.length
      if (written > settings.streamBytes) break
      yield chunk(event)
    }
    yield close
  })
}

/** A good answer with additional headers. */
function withHeaders({ dialect }: FaultKit, headers: Pairs): Script {
  const good = answer('Hello', { dialect })
  return scripted(function* headed(request) {
    for (const step of good.steps(request)) {
      yield step.kind === 'head' ? { ...step, headers: [...step.headers, ...headers] } : step
    }
  })
}

/** A good answer after other response heads. */
function after({ dialect }: FaultKit, ...first: readonly Step[]): Script {
  const good = answer('Hello', { dialect })
  return scripted(function* preceded(request) {
    yield* first
    yield* good.steps(request)
  })
}

const redirect = (status: number, location: string): Script => script(...jsonAnswer(status, '{}', { location }))

export function httpFaults(kit: FaultKit): readonly FaultRow[] {
  const { settings } = kit
  const many = Array.from({ length: settings.headerCount }, (_, index) => [`x-filler-${index}`, 'x'] as const)
  const hint = head(103, { link: '</style.css>; rel=preload' })
  const upgrade = head(101, { connection: 'upgrade', upgrade: 'websocket' })
  return [
    ...lengthFaults(kit),
    ...chunkFaults(kit),
    ['F18', 'a huge body with its length', 'either', hugeBody(kit, false)],
    ['F18', 'a huge body in chunks', 'either', hugeBody(kit, true)],
    ['F18', 'a huge stream', 'stream', hugeStream(kit)],
    ['F19', 'one huge header', 'either', withHeaders(kit, [['x-filler', 'x'.repeat(settings.headerBytes)]])],
    ['F19', 'ten thousand headers', 'either', withHeaders(kit, many)],
    ...encodingFaults(kit),
    ['F21', '302 to an internal address', 'either', redirect(302, settings.redirectTo)],
    ['F21', '307 to an internal address', 'either', redirect(307, settings.redirectTo)],
    ['F21', '308 to an internal address', 'either', redirect(308, settings.redirectTo)],
    ['F22', '100 before the answer', 'either', after(kit, head(100))],
    ['F22', '103 before the answer', 'either', after(kit, hint)],
    ['F22', 'a hundred times 103 before the answer', 'either', after(kit, ...Array.from({ length: 100 }, () => hint))],
    ['F22', '101 instead of an answer', 'either', script(upgrade)],
    ['F22', '204 instead of an answer', 'either', script(head(204), end)],
  ]
}
