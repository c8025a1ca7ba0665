// POST /v1/audio/transcriptions: a form with a sound in it; the answer is JSON, text or events, as the form asks.

import type { Units, UsageReport } from '../../base/usage.ts'
import type { AnswerReading, FrameReading } from '../call.ts'
import type { Json } from '../checks.ts'
import { missing } from '../checks.ts'
import { isObject } from '../json-object.ts'
import { writeError } from '../openai-chat/errors.ts'
import type { Protocol } from '../protocol.ts'
import { formFlag, frameReader, parseAnswer, readFormCall, saidError, writeFormModel } from '../side-call.ts'
import { readBothUsage, readSeconds } from '../side-usage.ts'

/** Of sound in a second: as little as speech is ever pressed into, and as much as it usually has. */
const SECOND_BYTES_MIN = 750
const SECOND_BYTES = 16_000
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
    const readFields = ['stream', 'response_format', 'prompt']
    const { call, files } = readFormCall('openai-transcription', body, { asked, readFields })
    if (files.length === 0) throw missing('file')
    const soundBytes = files.reduce((sum, { start, end }) => sum + end - start, 0)
    const seconds = Math.ceil(soundBytes / SECOND_BYTES)
    const { outputTokensMax: _none, ...rest } = call
    return {
      ...rest,
      stream: formFlag(call.json, 'stream'),
      textOnly: false,
      units: { seconds: Math.ceil(soundBytes / SECOND_BYTES_MIN) },
      unitsGuess: { seconds },
      secondTextBytes: SECOND_TEXT_BYTES,
      inputBytes: seconds * TOKENS_PER_SECOND * 4,
    }
  },
  writeCall: writeFormModel,
  readAnswer,
  readFrame: frameReader(readTranscriptFrame),
  writeError,
}

/** Texts and subtitles are answers as well; a page of some server between is not. */
function readAnswer(body: Buffer): AnswerReading | undefined {
  const json = parseAnswer(body)
  if (json === undefined) {
    const start = body.toString('latin1', 0, 64).trimStart().toLowerCase()
    if (start.startsWith('<!doctype') || start.startsWith('<html')) return undefined
    return { outputBytes: body.byteLength, usage: readBothUsage(undefined, 'output', lastCue(body)) }
  }
  const error = saidError(json)
  if (error !== undefined) return { outputBytes: 0, error }
  const { text, usage, duration } = json
  if (typeof text !== 'string') return undefined
  // Silence is heard, too, and has no words.
  return { outputBytes: Math.max(1, Buffer.byteLength(text)), usage: usageOf(usage, duration) }
}

/** Subtitles end when the sound does, or a little before. */
function lastCue(body: Buffer): Units {
  const at = body.lastIndexOf('-->')
  const [, hours = 0, minutes, seconds] =
    /^-->[ \t]*(?:(\d{1,3}):)?(\d\d):(\d\d[.,]\d{3})/.exec(at < 0 ? '' : body.toString('latin1', at, at + 64)) ?? []
  if (minutes === undefined || seconds === undefined) return {}
  return { seconds: Number(hours) * 3_600 + Number(minutes) * 60 + Math.ceil(Number(seconds.replace(',', '.'))) }
}

function usageOf(usage: unknown, duration: unknown): UsageReport | undefined {
  const said = isObject(usage) && usage.type === 'duration' ? usage.seconds : undefined
  const seconds = readSeconds(said ?? duration)
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
