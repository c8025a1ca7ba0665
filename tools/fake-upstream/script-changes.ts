// Changes how the answer of a script is cut and written, without changing its content.
//
//   chunkSizes(3)(streamed(['Grüße']))      shaped(streamed(['hi']), lineEndings('\r\n'), slowBytes(5))

import { assert } from '../../src/base/assert.ts'
import type { Script, Step } from './script.ts'
import { chunk, wait } from './script.ts'

export type Shape = (script: Script) => Script

/** Applies the shapes from left to right. */
export function shaped(script: Script, ...shapes: readonly Shape[]): Script {
  return shapes.reduce((inner, shape) => shape(inner), script)
}

function reshape(change: (steps: Iterable<Step>) => Iterable<Step>): Shape {
  return script => ({ starts: script.starts, steps: request => change(script.steps(request)) })
}

/** Cuts the chunked body into chunks of `size` bytes, across events and inside characters. */
export function chunkSizes(size: number): Shape {
  assert(size >= 1, 'a chunk holds at least one byte')
  return reshape(function* recut(steps) {
    let buffered: Uint8Array = new Uint8Array(0)
    for (const step of steps) {
      if (step.kind !== 'chunk') {
        // Bytes must be sent before a pause or an ending that follows them.
        if (buffered.length > 0) yield chunk(buffered)
        buffered = new Uint8Array(0)
        yield step
        continue
      }
      buffered = buffered.length === 0 ? step.bytes : Buffer.concat([buffered, step.bytes])
      let at = 0
      for (; at + size <= buffered.length; at += size) yield chunk(buffered.subarray(at, at + size))
      buffered = buffered.subarray(at)
    }
    if (buffered.length > 0) yield chunk(buffered)
  })
}

/** Writes every byte of the body alone, with a wait before each. The head is sent at once. */
export function slowBytes(ms: number): Shape {
  return reshape(function* slow(steps) {
    for (const step of steps) {
      if (step.kind !== 'chunk' && step.kind !== 'bytes') {
        yield step
        continue
      }
      for (let at = 0; at < step.bytes.length; at++) {
        yield wait(ms)
        yield { kind: step.kind, bytes: step.bytes.subarray(at, at + 1) }
      }
    }
  })
}

/** Adds a wait between the pieces of the body. */
export function waitBetween(ms: number): Shape {
  return reshape(function* waiting(steps) {
    let pieces = 0
    for (const step of steps) {
      if ((step.kind === 'chunk' || step.kind === 'bytes') && pieces++ > 0) yield wait(ms)
      yield step
    }
  })
}

/** Changes the body's bytes, piece by piece. */
export function bodyBytes(change: (bytes: Uint8Array) => Uint8Array): Shape {
  return reshape(function* changed(steps) {
    for (const step of steps) {
      yield step.kind === 'chunk' || step.kind === 'bytes' ? { kind: step.kind, bytes: change(step.bytes) } : step
    }
  })
}

/** Replaces every line ending of a chunked body; chunks get their length only when they are written. */
export function lineEndings(ending: '\n' | '\r\n' | '\r'): Shape {
  return reshape(function* ended(steps) {
    for (const step of steps) {
      if (step.kind !== 'chunk') yield step
      else yield chunk(Buffer.from(Buffer.from(step.bytes).toString('latin1').replace(/\r?\n/g, ending), 'latin1'))
    }
  })
}
