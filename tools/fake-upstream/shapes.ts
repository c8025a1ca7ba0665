// Changes how a script's answer is cut and written without changing what it says.
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

/** Cuts the chunked body anew into chunks of `size` bytes, across events and inside characters. */
export function chunkSizes(size: number): Shape {
  assert(size >= 1, 'a chunk holds at least one byte')
  return reshape(function* recut(steps) {
    let held: Uint8Array = new Uint8Array(0)
    for (const step of steps) {
      if (step.kind !== 'chunk') {
        // A pause or an ending in the script must not overtake the bytes before it.
        if (held.length > 0) yield chunk(held)
        held = new Uint8Array(0)
        yield step
        continue
      }
      held = held.length === 0 ? step.bytes : Buffer.concat([held, step.bytes])
      let at = 0
      for (; at + size <= held.length; at += size) yield chunk(held.subarray(at, at + size))
      held = held.subarray(at)
    }
    if (held.length > 0) yield chunk(held)
  })
}

/** Writes every byte of the body by itself, with a wait before each. The head goes out at once. */
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

/** A wait before each piece of the body. */
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

/** Every newline of the body becomes this one. Only chunks, because their length is counted when they are written. */
export function lineEndings(ending: '\n' | '\r\n' | '\r'): Shape {
  return reshape(function* ended(steps) {
    for (const step of steps) {
      if (step.kind !== 'chunk') yield step
      else yield chunk(Buffer.from(Buffer.from(step.bytes).toString('latin1').replace(/\r?\n/g, ending), 'latin1'))
    }
  })
}
