// Translates answers of an upstream for a caller as the pipeline does, without sockets, and with fixed ids and times.

import { frameData, SseSplitter } from '../../src/http/sse.ts'
import { StreamTranslator } from '../../src/pipeline/attempt/translation.ts'
import type { Translation } from '../../src/pipeline/attempt/translation-types.ts'
import { Losses } from '../../src/protocols/neutral/losses.ts'
import type { ReasoningState } from '../../src/protocols/neutral/reasoning-state.ts'
import type { AnswerTarget } from '../../src/protocols/protocol.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import type { Dialect } from './upstreams.ts'

export const origin = 'originoforig'

export interface TestTranslation {
  readonly translation: Translation
  /** Reasoning state that the gateway keeps for a caller whose dialect cannot carry it. */
  readonly keptStates: Map<string, readonly ReasoningState[]>
}

export function openTranslation(from: Dialect, to: Dialect, more: Partial<AnswerTarget> = {}): TestTranslation {
  const losses = new Losses()
  const keptStates = new Map<string, readonly ReasoningState[]>()
  let calls = 0
  const source = { origin, notes: { losses, renamed: new Map() }, mintCallId: () => `call_minted${calls++}` }
  const target: AnswerTarget = {
    requestId: 'req_0123456789a',
    model: 'p/m',
    createdS: 1_763_000_000,
    wantsUsage: true,
    choices: 1,
    // The caller asks to see thoughts, in the words of each dialect.
    json: {
      model: 'p/m',
      thinking: { type: 'adaptive' },
      generationConfig: { thinkingConfig: { includeThoughts: true } },
    },
    losses,
    keep: (id, sealed) => void keptStates.set(id, sealed),
    ...more,
  }
  return {
    translation: { upstreamCodec: protocols[from].codec, source, callerCodec: protocols[to].codec, target },
    keptStates: keptStates,
  }
}

export function translateWhole(
  { translation: { upstreamCodec, source, callerCodec, target } }: TestTranslation,
  json: unknown,
): string {
  return callerCodec.writeWholeAnswer(upstreamCodec.readWholeAnswer(json, source), target)
}

/** The pieces are the bytes of a stream, split anywhere. */
export function translateStream(from: Dialect, { translation }: TestTranslation, pieces: Iterable<Uint8Array>): string {
  const splitter = new SseSplitter(1 << 20)
  const translator = new StreamTranslator(translation)
  let text = ''
  let isFinished = false
  const take = (frame: Parameters<typeof frameData>[0]): void => {
    if (isFinished) return
    const reading = protocols[from].readFrame(frameData(frame))
    if (reading.kind === 'error' || reading.kind === 'garbage') throw new Error(`a frame that is ${reading.kind}`)
    text += translator.convert(reading).toString()
    isFinished = reading.kind === 'terminal'
  }
  for (const piece of pieces) for (const frame of splitter.push(Buffer.from(piece))) take(frame)
  const rest = splitter.end()
  if (rest !== undefined) take(rest.frame)
  return text + translator.end().toString()
}
