// OpenAI's speech and transcription endpoints.

import { frameSteps, jsonAnswer, streamHead } from '../answers.ts'
import { objectOf, stringOf } from '../body-fields.ts'
import type { Frame, Problem } from '../dialect.ts'
import { countWords } from '../dialect.ts'
import { readForm } from '../multipart.ts'
import type { ReceivedRequest } from '../request.ts'
import type { Script } from '../script.ts'
import { bytes, end, head, script } from '../script.ts'

type Refuse = (problem: Problem) => Script

const bytesOfWord = 64
const wordsMax = 4_096
const types: Readonly<Record<string, string>> = {
  mp3: 'audio/mpeg',
  opus: 'audio/opus',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
}

const event = (type: string, rest: object): Frame => ({ kind: 'piece', data: JSON.stringify({ type, ...rest }) })

export function answerSpeech(request: ReceivedRequest, refuse: Refuse): Script {
  const body = objectOf(request)
  const words = countWords(stringOf(body.input))
  if (words === 0 || words > wordsMax) return refuse({ message: "Invalid 'input'.", param: 'input' })
  if (body.voice === undefined) return refuse({ message: "Missing required parameter: 'voice'.", param: 'voice' })
  const sound = Buffer.alloc(words * bytesOfWord, 'ID3')
  if (body.stream_format === 'sse') {
    const usage = { input_tokens: words, output_tokens: words * 10, total_tokens: words * 11 }
    const delta = event('speech.audio.delta', { audio: sound.toString('base64') })
    const last = event('speech.audio.done', { usage })
    return script(streamHead, ...frameSteps([delta, last]), end)
  }
  const type = types[stringOf(body.response_format) || 'mp3']
  if (type === undefined) return refuse({ message: "Invalid 'response_format'.", param: 'response_format' })
  return script(head(200, { 'content-type': type, 'content-length': String(sound.length) }), bytes(sound), end)
}

export function answerTranscription(request: ReceivedRequest, refuse: Refuse): Script {
  const form = readForm(request)
  const file = form?.files.get('file')
  if (!form || !file) return refuse({ message: "Missing required parameter: 'file'.", param: 'file' })
  const text = `I hear ${file.bytes} bytes of ${file.name}`
  const [input, output] = [Math.ceil(file.bytes / bytesOfWord), countWords(text)]
  const counted = { type: 'tokens', input_tokens: input, output_tokens: output, total_tokens: input + output }
  const details = { input_token_details: { audio_tokens: input, text_tokens: 0 } }
  // The oldest model is billed by time.
  const byTime = form.fields.get('model') === 'whisper-1'
  const usage = byTime ? { type: 'duration', seconds: Math.ceil(input / 10) } : { ...counted, ...details }
  if (form.fields.get('stream') === 'true') {
    const delta = event('transcript.text.delta', { delta: text })
    const last = event('transcript.text.done', { text, usage })
    return script(streamHead, ...frameSteps([delta, last]), end)
  }
  const format = form.fields.get('response_format') ?? 'json'
  if (format === 'text') {
    const length = String(Buffer.byteLength(text) + 1)
    const headers = { 'content-type': 'text/plain; charset=utf-8', 'content-length': length }
    return script(head(200, headers), bytes(`${text}\n`), end)
  }
  const more = format === 'verbose_json' ? { task: 'transcribe', language: 'english', duration: 1, segments: [] } : {}
  return script(...jsonAnswer(200, JSON.stringify({ ...more, text, usage })))
}
