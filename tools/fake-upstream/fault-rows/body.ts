// F23 to F27: a good HTTP answer whose body is not what it should be.

import { answer, buildFramesTo, buildReplyTo, frameSteps, jsonAnswer, plain, streamed, streamHead } from '../answers.ts'
import { formatEvent } from '../dialect.ts'
import type { Script } from '../script.ts'
import { bytes, chunk, end, head, script, scripted } from '../script.ts'
import { bodyBytes, chunkSizes } from '../script-changes.ts'
import type { FaultKit, FaultRow } from './fault.ts'

const html = '<!doctype html><html><head><title>502</title></head><body><h1>Bad gateway</h1></body></html>\n'

function htmlAs(contentType: string): Script {
  return script(head(200, { 'content-type': contentType, 'content-length': String(html.length) }), bytes(html), end)
}

function truncatedBody({ dialect }: FaultKit): Script {
  return scripted(request =>
    jsonAnswer(200, dialect.plain(buildReplyTo(request, ['Hello'], { dialect })).slice(0, -20)),
  )
}

/** Sends `wholeOnes` complete events, and then only truncated ones. */
function truncatedEvent({ dialect }: FaultKit, wholeOnes = 0): Script {
  return scripted(function* truncated(request) {
    let pieces = 0
    yield streamHead
    for (const frame of buildFramesTo(request, ['Hel', 'lo'], { dialect })) {
      const isCut = frame.kind === 'piece' && pieces++ >= wholeOnes
      yield chunk(formatEvent(isCut ? { ...frame, data: frame.data.slice(0, -9) } : frame))
    }
    yield end
  })
}

/** Replaces a two-byte character by two bytes that are invalid in UTF-8, so that the length stays the same. */
const breakUtf8 = bodyBytes(body => {
  const copy = Buffer.from(body)
  for (let at = copy.indexOf('é'); at >= 0; at = copy.indexOf('é')) copy.set([0xff, 0xfe], at)
  return copy
})

/** Whole answers have no chunks to cut, so this one is sent in chunks of one byte. */
function plainInCrumbs({ dialect }: FaultKit): Script {
  return scripted(function* crumbs(request) {
    yield head(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' })
    const whole = script(chunk(dialect.plain(buildReplyTo(request, ['Grüße 🙂'], { dialect }))))
    yield* chunkSizes(1)(whole).steps(request)
    yield end
  })
}

export function bodyFaults(kit: FaultKit): readonly FaultRow[] {
  const { dialect } = kit
  const error = dialect.error({ message: 'The engine is overloaded.', type: 'server_error', code: 'overloaded' })
  const emptyHead = head(200, { 'content-type': 'application/json', 'content-length': '0' })
  return [
    ['F23', 'truncated JSON', 'plain', truncatedBody(kit)],
    ['F23', 'truncated JSON in an event', 'stream', truncatedEvent(kit)],
    ['F23', 'truncated JSON in a later event', 'stream', truncatedEvent(kit, 1)],
    ['F24', 'HTML with 200', 'either', htmlAs('text/html')],
    ['F24', 'HTML called JSON', 'either', htmlAs('application/json')],
    ['F24', 'HTML called an event stream', 'either', htmlAs('text/event-stream')],
    ['F25', 'empty 200', 'either', script(emptyHead, end)],
    ['F25', 'empty event stream', 'either', script(streamHead, end)],
    ['F25', 'an answer without text', 'either', answer('', { dialect })],
    ['F26', 'error object with 200', 'either', script(...jsonAnswer(200, error))],
    [
      'F26',
      'error object as the only event',
      'stream',
      scripted(function* steps() {
        yield streamHead
        yield* frameSteps([dialect.errorFrame({ message: 'The engine is overloaded.', type: 'server_error' })])
        yield end
      }),
    ],
    ['F27', 'invalid UTF-8', 'plain', breakUtf8(plain('café', { dialect }))],
    ['F27', 'invalid UTF-8 in a stream', 'stream', breakUtf8(streamed(['caf', 'é'], { dialect }))],
    ['F27', 'split code points', 'plain', plainInCrumbs(kit)],
    ['F27', 'split code points in a stream', 'stream', chunkSizes(1)(streamed(['Grüße ', '🙂'], { dialect }))],
    ['F27', 'half a surrogate pair', 'either', answer('half \ud83d', { dialect })],
  ]
}
