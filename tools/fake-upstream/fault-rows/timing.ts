// F11 to F15: answers that arrive late, slowly or in tiny pieces.

import { answer, buildFramesTo, frameSteps, plain, streamed, streamHead } from '../answers.ts'
import { formatEvent } from '../dialect.ts'
import type { Script } from '../script.ts'
import { chunk, end, head, script, scripted, wait } from '../script.ts'
import { chunkSizes, slowBytes } from '../script-changes.ts'
import { halfAnswer } from './connection.ts'
import type { FaultKit, FaultRow } from './fault.ts'

function lateAnswer({ dialect }: FaultKit, ms: number): Script {
  const inTime = answer('Hello', { dialect })
  return scripted(function* late(request) {
    yield wait(ms)
    yield* inTime.steps(request)
  })
}

function pausingStream({ dialect }: FaultKit, ms: number): Script {
  return scripted(function* pausing(request) {
    yield streamHead
    let pieces = 0
    for (const frame of buildFramesTo(request, ['Hel', 'lo'], { dialect })) {
      if (frame.kind === 'piece' && pieces++ === 1) yield wait(ms)
      yield chunk(formatEvent(frame))
    }
    yield end
  })
}

/** An iterable that every run can iterate again. */
function letters(count: number): Iterable<string> {
  return {
    *[Symbol.iterator]() {
      for (let left = count; left > 0; left--) yield 'x'
    },
  }
}

const counts = { input: 1, output: 1 }

/** Sends this many one-byte chunks, then ends the body in the middle of an event. */
function tinyChunks({ dialect, settings }: FaultKit): Script {
  return scripted(function* crumbled(request) {
    const text = letters(settings.tinyChunks)
    const events = scripted(() => frameSteps(buildFramesTo(request, text, { dialect, usage: counts })))
    yield streamHead
    let left = settings.tinyChunks
    for (const step of chunkSizes(1)(events).steps(request)) {
      if (left-- === 0) break
      yield step
    }
    yield end
  })
}

export function timingFaults(kit: FaultKit): readonly FaultRow[] {
  const { dialect, settings } = kit
  const jsonHead = head(200, { 'content-type': 'application/json', 'content-length': '100' })
  return [
    ['F11', 'headers of a whole answer, then silence', 'either', script(jsonHead)],
    ['F11', 'headers of a stream, then silence', 'either', script(streamHead)],
    ['F11', 'half an answer, then silence', 'either', halfAnswer(kit)],
    ['F12', 'first byte at half the deadline', 'either', lateAnswer(kit, settings.deadlineMs * 0.5)],
    ['F12', 'first byte at one and a half deadlines', 'either', lateAnswer(kit, settings.deadlineMs * 1.5)],
    ['F13', 'a whole answer byte by byte', 'plain', slowBytes(settings.byteMs)(plain('Hello', { dialect }))],
    ['F13', 'a stream byte by byte', 'stream', slowBytes(settings.byteMs)(streamed(['Hello'], { dialect }))],
    ['F14', 'a pause between two chunks, beyond idle', 'stream', pausingStream(kit, settings.idleMs * 1.5)],
    ['F15', 'a million chunks of one byte', 'stream', tinyChunks(kit)],
    [
      'F15',
      'a million events of one letter',
      'stream',
      streamed(letters(settings.tinyChunks), { dialect, usage: { input: 1, output: settings.tinyChunks } }),
    ],
  ]
}
