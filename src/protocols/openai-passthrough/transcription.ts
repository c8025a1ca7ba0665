// POST /v1/audio/transcriptions: a form with an audio file. The answer is JSON, text or events, as the form asks.

import type { Usage, UsageReport } from '../../base/money/usage.ts'
import type { AnswerReading, FrameReading } from '../neutral/call.ts'
import { noItems } from '../neutral/call.ts'
import { writeError } from '../openai-chat/errors.ts'
import { readFrame as readChatFrame } from '../openai-chat/stream.ts'
import {
  buildFrameReader,
  findError,
  parseAnswerObject,
  readFormCall,
  readFormFlag,
  writeFormModel,
} from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { invalid, missing } from '../request/checks.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { getAudioSeconds } from '../request/large-form.ts'
import { TRANSCRIBED_TOKENS_PER_SECOND } from '../usage/media-bytes.ts'
import { readInputOutputUsage, readSeconds } from '../usage/passthrough-usage.ts'

/** Bytes of text in one second of fast speech. */
const SECOND_TEXT_BYTES = 20

export const transcription: Protocol = {
  name: 'openai-transcription',
  lastEvent: '',
  hidesStages: true,
  requestType: 'multipart',
  allowsTextAnswers: true,
  // A model that cannot stream sends a whole answer, even if the call asks for a stream.
  mayNotStream: true,
  passedHeaders: ['content-type'],
  headers: { accept: '*/*' },
  readCall(body, request) {
    const uniqueFields = ['stream', 'response_format', 'prompt', ...REMOTE_AUDIO_FIELDS]
    const { call, files } = readFormCall('openai-transcription', body, { request, readFields: uniqueFields })
    refuseRemoteAudio(call.json)
    if (files.length === 0) throw missing('file')
    const seconds = files.reduce((sum, file) => sum + getAudioSeconds(body, file), 0)
    const { outputTokensMax: _none, ...rest } = call
    return {
      ...rest,
      stream: readFormFlag(call.json, 'stream'),
      textOnly: false,
      units: { seconds },
      secondTextBytes: SECOND_TEXT_BYTES,
      inputBytes: Buffer.byteLength(`${call.json.prompt ?? ''}`) + seconds * TRANSCRIBED_TOKENS_PER_SECOND * 4,
    }
  },
  writeCall: writeFormModel,
  readAnswer,
  readFrame,
  writeError,
}

/** Fields that name audio outside of the form, whose length the gateway cannot measure. */
const REMOTE_AUDIO_FIELDS = ['url', 'file_url', 'file_id', 'audio_url'] as const

function refuseRemoteAudio(json: Json): void {
  const field = REMOTE_AUDIO_FIELDS.find(name => (json[name] ?? '') !== '')
  if (field !== undefined) throw invalid(field, 'is not supported: send the audio itself as "file"')
}

/** Plain text and subtitles are valid answers. Pages of proxies, errors in XML and JSON that was cut off are not. */
function readAnswer(body: Buffer): AnswerReading | undefined {
  const json = parseAnswerObject(body)
  if (json === undefined) {
    const start = body.toString('latin1', 0, 64).trimStart().toLowerCase()
    if (/^(<!doctype|<html|<\?xml|\{\s*")/.test(start)) return undefined
    // Neither text nor subtitles say how long the audio is: subtitles end with the last word, not with the audio.
    return { outputBytes: body.byteLength, usage: readInputOutputUsage(undefined, 'output') }
  }
  const error = findError(json)
  if (error !== undefined) return { outputBytes: 0, error }
  const { text, usage, duration } = json
  if (typeof text !== 'string') return undefined
  // The transcript of silence is empty and still an answer.
  return { outputBytes: Math.max(1, Buffer.byteLength(text)), usage: readTranscriptionUsage(usage, duration) }
}

function readTranscriptionUsage(usage: unknown, duration: unknown): UsageReport | undefined {
  const reportedSeconds = isObject(usage) && usage.type === 'duration' ? usage.seconds : undefined
  const promptSeconds = isObject(usage) ? usage.prompt_audio_seconds : undefined
  const seconds = readSeconds(reportedSeconds ?? promptSeconds ?? duration)
  const units = seconds === undefined ? {} : { seconds }
  return readInputOutputUsage(reportedSeconds === undefined ? usage : undefined, 'output', units)
}

const readNamedFrame = buildFrameReader(readTranscriptFrame)

/** vLLM sends the chunks of a chat. Its name for them has no quotes within a transcript. */
function readFrame(data: string | undefined, earlier?: Usage): FrameReading {
  return data?.includes('"transcription.chunk"') ? readChatFrame(data) : readNamedFrame(data, earlier)
}

/** The events of OpenAI, and those of Mistral, whose names begin with `transcription.`. */
function readTranscriptFrame({ delta, text, usage }: Json, type: string): FrameReading | undefined {
  const bytes = (value: unknown): number => (typeof value === 'string' ? Buffer.byteLength(value) : 0)
  switch (type) {
    case 'transcript.text.delta':
      return { kind: 'content', outputBytes: bytes(delta), finishes: 0 }
    case 'transcription.text.delta':
    case 'transcript.text.segment':
      return { kind: 'content', outputBytes: bytes(text), finishes: 0 }
    case 'transcription.segment':
      // A segment may repeat the text of the deltas before it.
      return { kind: 'content', outputBytes: 0, items: { ...noItems, textBytes: bytes(text) }, finishes: 0 }
    case 'transcription.language':
      return { kind: 'opening', outputBytes: 0, finishes: 0 }
    case 'transcript.text.done':
    case 'transcription.done':
      // The whole transcript once more. Some servers send nothing else.
      return {
        kind: 'terminal',
        outputBytes: 0,
        items: { ...noItems, textBytes: bytes(text) },
        usesOfAll: {},
        finishes: 1,
        usage: readTranscriptionUsage(usage, undefined),
      }
    default:
      return undefined
  }
}
