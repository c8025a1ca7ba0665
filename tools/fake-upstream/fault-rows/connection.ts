// F7 to F10: faults of a connection.

import { buildFramesTo, buildReplyTo, filterFrames, frameSteps, streamHead } from '../answers.ts'
import type { Script, Step } from '../script.ts'
import { bytes, close, head, reset, script, scripted, startAt, stopReading, toBytes, wait } from '../script.ts'
import type { FaultKit, FaultRow } from './fault.ts'

/** Half an answer, whole or as a stream, as the request asks for, and then these steps. */
export function halfAnswer({ dialect }: FaultKit, ...then: readonly Step[]): Script {
  return scripted(function* half(request) {
    if (dialect.read(request).stream) {
      yield streamHead
      yield* frameSteps(filterFrames(['open', 'piece'], buildFramesTo(request, ['Hel', 'lo'], { dialect })))
    } else {
      const body = toBytes(dialect.plain(buildReplyTo(request, ['Hello'], { dialect })))
      yield head(200, { 'content-type': 'application/json', 'content-length': String(body.length) })
      yield bytes(body.subarray(0, Math.floor(body.length / 2)))
    }
    yield* then
  })
}

export function connectionFaults(kit: FaultKit): readonly FaultRow[] {
  return [
    ['F7', 'RST after accept', 'either', startAt('accept', script(reset))],
    ['F8', 'RST at the request head', 'either', startAt('head', script(reset))],
    ['F8', 'RST after the request', 'either', script(reset)],
    ['F8', 'RST after half an answer', 'either', halfAnswer(kit, wait(5), reset)],
    ['F9', 'request body never read', 'either', startAt('head', script(stopReading))],
    ['F10', 'FIN instead of an answer', 'either', script(close)],
    ['F10', 'FIN at the request head', 'either', startAt('head', script(close))],
    ['F10', 'FIN after half an answer', 'either', halfAnswer(kit, close)],
    ['F10', 'FIN after half a head', 'either', script(bytes('HTTP/1.1 200 OK\r\ncontent-ty'), close)],
  ]
}
