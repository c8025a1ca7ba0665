// POST /v1/audio/transcriptions: a form with a sound in it; the answer is JSON, text or events, as the form asks.

import type { UsageReport } from '../../base/money/usage.ts'
import type { AnswerReading, FrameReading } from '../neutral/call.ts'
import { writeError } from '../openai-chat/errors.ts'
import { formFlag, frameReader, parseAnswer, readFormCall, saidError, writeFormModel } from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { invalid, missing } from '../request/checks.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { soundOf } from '../request/large-form.ts'
import { readBothUsage, readSeconds } from '../usage/passthrough-usage.ts'

/** Of words in a second, where they are spoken fast. */
const SECOND_TEXT_BYTES = 20
/** Of one second of sound. */
const TOKENS_PER_SECOND = 10

export const transcription: Protocol = {
  name: 'openai-transcription',
  lastEvent: '',
  quiet: true,
  takes: 'multipart',
  // A model that cannot stream answers whole, whatever it was asked.
  mayNotStream: true,
  passes: ['content-type'],
  headers: { accept: '*/*' },
  readCall(body, asked) {
    const readFields = ['stream', 'response_format', 'prompt', ...ELSEWHERE]
    const { call, files } = readFormCall('openai-transcription', body, { asked, readFields })
    refuseElsewhere(call.json)
    if (files.length === 0) throw missing('file')
    const seconds = files.reduce((sum, file) => sum + soundOf(body, file), 0)
    const { outputTokensMax: _none, ...rest } = call
    return {
      ...rest,
      stream: formFlag(call.json, 'stream'),
      textOnly: false,
      units: { seconds },
      secondTextBytes: SECOND_TEXT_BYTES,
      inputBytes: seconds * TOKENS_PER_SECOND * 4,
    }
  },
  writeCall: writeFormModel,
  readAnswer,
  readFrame: frameReader(readTranscriptFrame),
  writeError,
}

/** A sound that lies elsewhere may be of any length. */
const ELSEWHERE = ['url', 'file_url', 'file_id', 'audio_url'] as const

function refuseElsewhere(json: Json): void {
  const field = ELSEWHERE.find(name => (json[name] ?? '') !== '')
  if (field !== undefined) throw invalid(field, 'is not served: send the sound itself, as "file"')
}

/** Texts and subtitles are answers as well; a page of some server between is not. */
function readAnswer(body: Buffer): AnswerReading | undefined {
  const json = parseAnswer(body)
  if (json === undefined) {
    const start = body.toString('latin1', 0, 64).trimStart().toLowerCase()
    if (start.startsWith('<!doctype') || start.startsWith('<html')) return undefined
    // Subtitles end with the last word, and not with the sound: neither they nor a text tell how long it was.
    return { outputBytes: body.byteLength, usage: readBothUsage(undefined, 'output') }
  }
  const error = saidError(json)
  if (error !== undefined) return { outputBytes: 0, error }
  const { text, usage, duration } = json
  if (typeof text !== 'string') return undefined
  // Silence is heard, too, and has no words.
  return { outputBytes: Math.max(1, Buffer.byteLength(text)), usage: usageOf(usage, duration) }
}

function usageOf(usage: unknown, duration: unknown): UsageReport | undefined {
  const said = isObject(usage) && usage.type === 'duration' ? usage.seconds : undefined
  const heard = isObject(usage) ? usage.prompt_audio_seconds : undefined
  const seconds = readSeconds(said ?? heard ?? duration)
  const units = seconds === undefined ? {} : { seconds }
  return readBothUsage(said === undefined ? usage : undefined, 'output', units)
}

function readTranscriptFrame({ delta, text, usage }: Json, type: string): FrameReading | undefined {
  const bytes = (value: unknown): number => (typeof value === 'string' ? Buffer.byteLength(value) : 0)
  if (type === 'transcript.text.delta') return { kind: 'content', outputBytes: bytes(delta), finishes: 0 }
  if (type === 'transcript.text.segment') return { kind: 'content', outputBytes: bytes(text), finishes: 0 }
  if (type !== 'transcript.text.done') return undefined
  return { kind: 'terminal', outputBytes: 0, finishes: 1, usage: usageOf(usage, undefined) }
}
