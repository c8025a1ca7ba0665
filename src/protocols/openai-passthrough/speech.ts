// POST /v1/audio/speech: reads text and returns audio, as bytes or as events.

import type { FrameReading } from '../neutral/call.ts'
import { writeError } from '../openai-chat/errors.ts'
import { buildAnswerReader, buildFrameReader, readJsonCall, writeModel } from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { invalid, missing, readOptional } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'
import { readInputOutputUsage } from '../usage/passthrough-usage.ts'

/** Audio tokens for each character at normal speed: usually, and at most. Slow speech is longer. */
const TOKENS_PER_CHARACTER = 1.5
const TOKENS_PER_CHARACTER_MAX = 6
const SPEED_MIN = 0.25
/** Audio tokens of a second, and the most bytes of a second: of uncompressed audio, and of compressed audio at 24 kHz. */
const TOKENS_PER_SECOND = 20
const UNCOMPRESSED_SECOND_BYTES = 48_000
const COMPRESSED_SECOND_BYTES = 20_000
const UNCOMPRESSED: ReadonlySet<unknown> = new Set(['wav', 'pcm', 'flac'])

export const speech: Protocol = {
  name: 'openai-speech',
  lastEvent: '',
  hidesStages: true,
  allowsBinaryAnswers: true,
  headers: { accept: '*/*' },
  readCall(body) {
    const { services, ...call } = readJsonCall('openai-speech', body, ['input', 'speed', 'stream_format'])
    const { json } = call
    // Speed has no price of its own here: the audio is longer or shorter.
    const paid = services?.filter(({ name }) => name !== 'speed') ?? []
    const input = readOptional(json, 'input', 'text')
    // No text would be no characters to pay for, whatever a server says instead.
    if (input === undefined || input === '') throw missing('input')
    const speed = readOptional(json, 'speed', 'number') ?? 1
    if (!(speed >= SPEED_MIN && speed <= 4)) throw invalid('speed', `must be from ${SPEED_MIN} to 4`)
    const characters = countCharacters(input)
    const isUncompressed = UNCOMPRESSED.has(json.response_format)
    return {
      ...call,
      ...(paid.length > 0 && { services: paid }),
      stream: json.stream_format === 'sse',
      units: { characters },
      outputTokensMax: Math.ceil((characters * TOKENS_PER_CHARACTER_MAX) / Math.min(1, speed)) + 500,
      outputTokensGuess: Math.ceil((characters * TOKENS_PER_CHARACTER) / speed),
      outputGuessKind: 'outputAudio',
      soundTokenBytes: (isUncompressed ? UNCOMPRESSED_SECOND_BYTES : COMPRESSED_SECOND_BYTES) / TOKENS_PER_SECOND,
    }
  },
  writeCall: writeModel,
  // Audio is passed on unread; a JSON answer is an error.
  readAnswer: buildAnswerReader(() => undefined),
  readFrame: buildFrameReader(readSpeechFrame),
  writeError,
}

/** Counts a surrogate pair as one character. */
function countCharacters(text: string): number {
  let characters = 0
  for (let index = 0; index < text.length; index++) {
    if ((text.charCodeAt(index) & 0xfc00) !== 0xdc00) characters++
  }
  return characters
}

function readSpeechFrame({ usage }: Json, type: string): FrameReading | undefined {
  if (type === 'speech.audio.delta') return { kind: 'content', outputBytes: 1, finishes: 0 }
  if (type !== 'speech.audio.done') return undefined
  return { kind: 'terminal', outputBytes: 0, finishes: 1, usage: readInputOutputUsage(usage, 'outputAudio') }
}
