// F28 to F32: event streams that are unusual but valid, far too long, cut short, or mixed up.

import {
  buildFramesTo,
  buildReplyTo,
  errorMidStream,
  filterFrames,
  streamed,
  streamHead,
  streamThrough,
  streamWithoutDone,
  toolCall,
  truncatedStream,
} from '../answers.ts'
import type { Frame } from '../dialect.ts'
import { formatEvent } from '../dialect.ts'
import type { Script } from '../script.ts'
import { chunk, close, end, scripted } from '../script.ts'
import { chunkSizes, lineEndings, shaped } from '../script-changes.ts'
import type { FaultKit, FaultRow } from './fault.ts'
import { fillTo, placeholder, repeatCharacter } from './filler.ts'

const pieces = ['Hel', 'lo']

/** A stream whose events are written by the function `write`. All variants here are valid in the standard. */
function streamWritten({ dialect }: FaultKit, write: (frame: Frame, index: number) => string): Script {
  return scripted(function* odd(request) {
    let index = 0
    yield streamHead
    for (const frame of buildFramesTo(request, pieces, { dialect })) yield chunk(write(frame, index++))
    yield end
  })
}

/** Breaks the JSON of an event into several `data` lines, which the standard allows. */
function splitData(frame: Frame): string {
  return formatEvent({
    ...frame,
    data: frame.data.replace(/^\{/, '{\n').replace(/\}$/, '\n}').replaceAll('\n', '\ndata: '),
  })
}

function spellingFaults(kit: FaultKit): readonly FaultRow[] {
  const { dialect } = kit
  const endings = ['\n', '\r\n', '\r'] as const
  return [
    ['F28', 'lines end in CRLF', 'stream', lineEndings('\r\n')(streamed(pieces, { dialect }))],
    ['F28', 'lines end in CR', 'stream', lineEndings('\r')(streamed(pieces, { dialect }))],
    ['F28', 'CRLF cut in two', 'stream', shaped(streamed(pieces, { dialect }), lineEndings('\r\n'), chunkSizes(1))],
    [
      'F28',
      'all line endings in turn',
      'stream',
      streamWritten(kit, (frame, index) => formatEvent(frame).replace(/\r?\n/g, endings[index % 3]!)),
    ],
    [
      'F28',
      'byte order mark',
      'stream',
      streamWritten(kit, (frame, index) => (index === 0 ? '\ufeff' : '') + formatEvent(frame)),
    ],
    [
      'F28',
      'comments between events',
      'stream',
      streamWritten(kit, frame => `: keep-alive\n\n:\n${formatEvent(frame)}`),
    ],
    ['F28', 'data on many lines', 'stream', streamWritten(kit, splitData)],
    [
      'F28',
      'no space behind the colon',
      'stream',
      streamWritten(kit, frame => formatEvent(frame).replace(/^(\w+): /gm, '$1:')),
    ],
    [
      'F28',
      'other fields',
      'stream',
      streamWritten(kit, (frame, index) => `id: ${index}\nretry: 10\nfoo: bar\n${formatEvent(frame)}`),
    ],
    ['F28', 'blank lines', 'stream', streamWritten(kit, frame => `\n\n\n${formatEvent(frame)}\n\n`)],
    ['F28', 'events with empty data', 'stream', streamWritten(kit, frame => `data:\n\n${formatEvent(frame)}`)],
  ]
}

function longEvent({ dialect, settings }: FaultKit): Script {
  return scripted(function* long(request) {
    yield streamHead
    for (const frame of buildFramesTo(request, [placeholder], { dialect, usage: { input: 1, output: 1 } })) {
      if (frame.kind !== 'piece') yield chunk(formatEvent(frame))
      else for (const part of fillTo(settings.lineBytes, formatEvent(frame))) yield chunk(part)
    }
    yield end
  })
}

function longComment({ dialect, settings }: FaultKit): Script {
  return scripted(function* long(request) {
    yield streamHead
    yield chunk(': ')
    for (const part of repeatCharacter('x', settings.lineBytes)) yield chunk(part)
    yield chunk('\n\n')
    for (const frame of buildFramesTo(request, pieces, { dialect })) yield chunk(formatEvent(frame))
    yield end
  })
}

function lineWithoutEnd({ settings }: FaultKit): Script {
  return scripted(function* endless() {
    yield streamHead
    yield chunk('data: ')
    for (const part of repeatCharacter('x', settings.lineBytes)) yield chunk(part)
    yield close
  })
}

/** Adds events of another answer, which the caller must never see. */
function otherAnswersEvents({ dialect }: FaultKit): Script {
  return scripted(function* mixed(request) {
    const ordinal = request.ordinal + 1_000_000
    yield streamHead
    for (const frame of buildFramesTo(request, pieces, { dialect })) {
      yield chunk(formatEvent(frame))
      if (frame.kind !== 'piece') continue
      const others = buildFramesTo(request, ['stranger'], { dialect, ordinal })
      for (const other of filterFrames(['piece'], others)) yield chunk(formatEvent(other))
    }
    yield end
  })
}

/** Faults that need something which not every dialect has. */
function traitFaults({ dialect }: FaultKit): readonly FaultRow[] {
  const { traits } = dialect
  const call = { name: 'clock', arguments: '{}' }
  const through = (change: (frames: Iterable<Frame>) => Iterable<Frame>) => streamThrough(change, pieces, { dialect })
  const ofOpening: readonly FaultRow[] = [
    [
      'F32',
      'text before the role',
      'stream',
      through(frames => {
        const frameList = [...frames]
        return [...filterFrames(['piece'], frameList), ...filterFrames(['open', 'finish', 'usage', 'done'], frameList)]
      }),
    ],
  ]
  const ofChoices: readonly FaultRow[] = [
    ['F32', 'a choice that was not asked for', 'stream', streamed(pieces, { dialect, index: 7 })],
    ['F32', 'a negative choice', 'stream', streamed(pieces, { dialect, index: -1 })],
  ]
  const ofTerminal: readonly FaultRow[] = [
    ['F32', 'nothing but the terminal event', 'stream', through(frames => filterFrames(['done'], frames))],
  ]
  const ofPlaces: readonly FaultRow[] = [
    ['F32', 'a tool call that skips places', 'stream', toolCall({ ...call, index: 7 }, { dialect })],
    ['F32', 'a tool call at a negative place', 'stream', toolCall({ ...call, index: -1 }, { dialect })],
  ]
  return [
    ...(traits.opening ? ofOpening : []),
    ...(traits.choices ? ofChoices : []),
    ...(traits.terminal ? ofTerminal : []),
    ...(traits.places ? ofPlaces : []),
  ]
}

function orderFaults(kit: FaultKit): readonly FaultRow[] {
  const { dialect } = kit
  const through = (change: (frames: Iterable<Frame>) => Iterable<Frame>) => streamThrough(change, pieces, { dialect })
  return [
    ['F32', 'events of another response', 'stream', otherAnswersEvents(kit)],
    ['F32', 'every event twice', 'stream', through(frames => [...frames].flatMap(frame => [frame, frame]))],
    [
      'F32',
      'finish and usage before the text',
      'stream',
      through(frames => {
        const frameList = [...frames]
        return [
          ...filterFrames(['open'], frameList),
          ...filterFrames(['finish', 'usage'], frameList),
          ...filterFrames(['piece', 'done'], frameList),
        ]
      }),
    ],
    [
      'F32',
      'events after the terminal one',
      'stream',
      through(frames => {
        const frameList = [...frames]
        return [...frameList, ...filterFrames(['piece', 'usage'], frameList)]
      }),
    ],
    ...traitFaults(kit),
  ]
}

/** Streams that stop before their end. */
function endingFaults({ dialect }: FaultKit): readonly FaultRow[] {
  const unfinished = streamThrough(frames => filterFrames(['open', 'piece'], frames), pieces, { dialect })
  const withoutTerminal: readonly FaultRow[] = [
    ['F30', 'finished, but without terminal event', 'stream', streamWithoutDone(pieces, { dialect })],
  ]
  return [
    ...(dialect.traits.terminal ? withoutTerminal : []),
    ['F30', 'neither finished nor terminal event', 'stream', unfinished],
    ['F30', 'cut off by FIN', 'stream', truncatedStream(pieces, { dialect })],
  ]
}

function errorFaults({ dialect }: FaultKit): readonly FaultRow[] {
  const error = { message: 'The server had an error.', type: 'server_error' }
  const endsIn = (frame: Frame) =>
    streamThrough(frames => [...filterFrames(['open', 'piece'], frames), frame], pieces, { dialect })
  const frame = dialect.errorFrame(error)
  const named: readonly FaultRow[] = [
    ['F31', 'named error event after text', 'stream', endsIn({ ...frame, event: 'error' })],
  ]
  const failed = scripted(function* failing(request) {
    const reply = buildReplyTo(request, pieces, { dialect })
    yield* endsIn(dialect.failedFrame!(reply, error)).steps(request)
  })
  return [
    ['F31', 'error event after text', 'stream', errorMidStream(pieces, error, { dialect })],
    ['F31', 'error event before text', 'stream', errorMidStream([], error, { dialect })],
    ...(frame.event === undefined ? named : []),
    ...(dialect.failedFrame ? ([['F31', 'a failed answer after text', 'stream', failed]] as const) : []),
  ]
}

export function sseFaults(kit: FaultKit): readonly FaultRow[] {
  return [
    ...spellingFaults(kit),
    ['F29', 'an event of one huge line', 'stream', longEvent(kit)],
    ['F29', 'a comment of one huge line', 'stream', longComment(kit)],
    ['F29', 'a huge line that never ends', 'stream', lineWithoutEnd(kit)],
    ...endingFaults(kit),
    ...errorFaults(kit),
    ...orderFaults(kit),
  ]
}
