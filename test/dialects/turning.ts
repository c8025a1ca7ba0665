// Turns an upstream's answer into a caller's as the pipeline does, without sockets and with everything fixed that is
// else another each time.

import { frameData, SseSplitter } from '../../src/http/sse.ts'
import { StreamTranslator } from '../../src/pipeline/attempt/translation.ts'
import type { Translation } from '../../src/pipeline/attempt/translation-types.ts'
import { Losses } from '../../src/protocols/neutral/losses.ts'
import type { ReasoningState } from '../../src/protocols/neutral/reasoning-state.ts'
import type { AnswerTarget } from '../../src/protocols/protocol.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import type { Dialect } from './upstreams.ts'

export const origin = 'originoforig'

export interface Turning {
  readonly translation: Translation
  /** What was kept for a caller that cannot carry it. */
  readonly kept: Map<string, readonly ReasoningState[]>
}

export function openTurning(from: Dialect, to: Dialect, more: Partial<AnswerTarget> = {}): Turning {
  const losses = new Losses()
  const kept = new Map<string, readonly ReasoningState[]>()
  let calls = 0
  const source = { origin, notes: { losses, renamed: new Map() }, mintCallId: () => `call_minted${calls++}` }
  const ask: AnswerTarget = {
    requestId: 'req_0123456789a',
    model: 'p/m',
    createdS: 1_763_000_000,
    wantsUsage: true,
    choices: 1,
    json: { model: 'p/m' },
    losses,
    keep: (id, sealed) => void kept.set(id, sealed),
    ...more,
  }
  return { translation: { upstreamCodec: protocols[from].codec, source, callerCodec: protocols[to].codec, ask }, kept }
}

export function turnWhole(
  { translation: { upstreamCodec, source, callerCodec, ask } }: Turning,
  json: unknown,
): string {
  return callerCodec.writeWholeAnswer(upstreamCodec.readWholeAnswer(json, source), ask)
}

/** The pieces are the bytes of a stream, cut anywhere. */
export function turnStream(from: Dialect, { translation }: Turning, pieces: Iterable<Uint8Array>): string {
  const splitter = new SseSplitter(1 << 20)
  const translator = new StreamTranslator(translation)
  let text = ''
  let isOver = false
  const take = (frame: Parameters<typeof frameData>[0]): void => {
    if (isOver) return
    const reading = protocols[from].readFrame(frameData(frame))
    if (reading.kind === 'error' || reading.kind === 'garbage') throw new Error(`a frame that is ${reading.kind}`)
    text += translator.convert(reading).toString()
    isOver = reading.kind === 'terminal'
  }
  for (const piece of pieces) for (const frame of splitter.push(Buffer.from(piece))) take(frame)
  const rest = splitter.end()
  if (rest !== undefined) take(rest.frame)
  return text + translator.end().toString()
}
