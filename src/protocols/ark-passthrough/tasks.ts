// /api/v3/contents/generations/tasks: video generation. Reads from a request the most that its task can cost, and from
// the upstream's answers the state of the task. A video is billed by tokens: width × height × frames / 1,024.

import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { Usage, UsageReport } from '../../base/money/usage.ts'
import { tokenCount } from '../../base/money/usage.ts'
import { writeError } from '../ark/errors.ts'
import { findError, parseAnswerObject, readJsonCall, rejectFrame, writeModel } from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { describeField, invalid, missing, readOptional } from '../request/checks.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { findValues } from '../request/references.ts'
import { readSeconds } from '../usage/passthrough-usage.ts'

const PIXELS_PER_TOKEN = 1_024
const FRAMES_PER_SECOND = 24
/** The length of a video if the request names none. The next line is the length if the model may choose it. */
const SECONDS_DEFAULT = 5
const SECONDS_MAX = 30
/** The most seconds of an input video, which is billed like output. */
const INPUT_VIDEO_SECONDS_MAX = 15
/** How many searches the hold assumes at most for one task. */
const SEARCHES_MAX = 10

interface VideoArea {
  /** The most pixels of any aspect ratio at this resolution. */
  readonly max: number
  readonly usual: number
}

const AREA_BY_RESOLUTION: Readonly<Record<string, VideoArea>> = {
  '480p': { max: 450_000, usual: 864 * 480 },
  '720p': { max: 1_000_000, usual: 1_280 * 720 },
  '1080p': { max: 2_200_000, usual: 1_920 * 1_080 },
  '2k': { max: 4_200_000, usual: 2_560 * 1_440 },
  '4k': { max: 9_000_000, usual: 3_840 * 2_160 },
}
const LARGEST_AREA = AREA_BY_RESOLUTION['4k']!
/** No model makes a larger video unless the request asks for one. */
const DEFAULT_AREA = AREA_BY_RESOLUTION['1080p']!

const uniqueFields = ['content', 'callback_url', 'duration', 'frames', 'resolution', 'service_tier', 'tools']

export const tasks: Protocol = {
  name: 'ark-tasks',
  lastEvent: '',
  hidesStages: true,
  readCall(body) {
    const call = readJsonCall('ark-tasks', body, uniqueFields)
    const { json } = call
    const content = readOptional(json, 'content', 'list')
    if (content === undefined || content.length === 0) throw missing('content')
    // The upstream would send its callback directly to the caller, with the upstream's task id, which the caller must
    // not use.
    if ((json.callback_url ?? '') !== '') throw invalid('callback_url', 'is not supported: poll the task instead')
    const serviceClass = readOptional(json, 'service_tier', 'word')
    const parts = content.filter(isObject)
    parts.forEach(checkSpelling)
    const seconds = maxSeconds(json, parts)
    return {
      ...call,
      textOnly: false,
      inputTokensMax: 0, // input is not billed
      thoughtTokensMax: 0,
      outputTokensMax: countTokens(maxPixels(json, parts), seconds * FRAMES_PER_SECOND + 1),
      units: { seconds },
      searchesMax: (readOptional(json, 'tools', 'list') ?? []).length > 0 ? SEARCHES_MAX : 0,
      ...(serviceClass !== undefined && { serviceClass }),
    }
  },
  writeCall: writeModel,
  readAnswer(body) {
    const json = parseAnswerObject(body)
    const error = json && findError(json)
    if (error !== undefined) return { outputBytes: 0, error }
    return json === undefined || readTaskId(body) === undefined ? undefined : { outputBytes: 0 }
  },
  readFrame: rejectFrame,
  writeError,
}

const countTokens = (area: number, frames: number): number => Math.ceil((area * frames) / PIXELS_PER_TOKEN)

/** Reads flags in the prompt, which older models understand: `--dur 5`, `--resolution 720p`. */
function readFlags(parts: readonly Json[], names: string): readonly string[] {
  const pattern = new RegExp(`--(?:${names})[ \\t]{1,8}([A-Za-z0-9.-]{1,16})`, 'g')
  const texts = parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : []))
  return texts.flatMap(text => [...text.matchAll(pattern)].map(([, value]) => value!))
}

function maxSeconds(json: Json, parts: readonly Json[]): number {
  const frames = readOptional(json, 'frames', 'count')
  const requested = (json.duration ?? undefined) === undefined ? [] : [readDuration(json.duration)]
  if (frames !== undefined) requested.push(Math.ceil(frames / FRAMES_PER_SECOND))
  requested.push(...readFlags(parts, 'dur|duration').flatMap(readFlagNumber))
  requested.push(
    ...readFlags(parts, 'frames')
      .flatMap(readFlagNumber)
      .map(count => Math.ceil(count / FRAMES_PER_SECOND)),
  )
  const hasDraft = parts.some(isDraft)
  const outputSeconds = requested.length === 0 ? (hasDraft ? SECONDS_MAX : SECONDS_DEFAULT) : Math.max(...requested)
  return outputSeconds + INPUT_VIDEO_SECONDS_MAX * parts.filter(({ type }) => type === 'video_url').length
}

/** A duration of -1 lets the model choose. */
function readDuration(value: unknown): number {
  if (value === -1) return SECONDS_MAX
  const seconds = typeof value === 'number' ? readSeconds(value) : undefined
  if (seconds === undefined || seconds > 3_600) throw invalid('duration', 'must be a number of seconds, or -1')
  return seconds
}

/** Ignores values that are no number: the text only looks like a flag. */
function readFlagNumber(text: string): readonly number[] {
  if (text === '-1') return [SECONDS_MAX]
  return /^\d{1,4}$/.test(text) ? [Number(text)] : []
}

function maxPixels(json: Json, parts: readonly Json[]): number {
  const resolution = readOptional(json, 'resolution', 'word')
  const requested = [...(resolution === undefined ? [] : [resolution]), ...readFlags(parts, 'rs|resolution')]
  return requested.length === 0 ? DEFAULT_AREA.max : Math.max(...requested.map(name => findArea(name).max))
}

function findArea(resolution: string): VideoArea {
  const name = resolution.toLowerCase()
  return Object.hasOwn(AREA_BY_RESOLUTION, name) ? AREA_BY_RESOLUTION[name]! : LARGEST_AREA
}

const PART_FIELDS = ['type', 'draft_task', 'video_url'] as const

/** Refuses a field in unusual capitals: the upstream may read `Type` as `type`, and make another video than was priced. */
function checkSpelling(part: Json, index: number): void {
  for (const field of PART_FIELDS) {
    const count = Object.hasOwn(part, field) ? 1 : 0
    if (findValues(part, field).length === count) continue
    const path = `content[${index}].${field}`
    throw new Refusal('field_duplicate', path, {
      param: path,
      hint: hintOf('call_field_spelling', { name: path }),
    })
  }
}

/** Whether a part names a draft, by its type or by its field: the upstream may look at either. */
const isDraft = ({ type, draft_task: draft }: Json): boolean =>
  type === 'draft_task' || (draft !== undefined && draft !== null)

/** The ids of the draft tasks that this task builds on. */
export function listDraftIds(json: Json): readonly string[] {
  const parts = Array.isArray(json.content) ? json.content.filter(isObject) : []
  return parts.filter(isDraft).map(({ draft_task: draft }) => {
    const ids = isObject(draft) ? findValues(draft, 'id') : []
    if (isObject(draft) && ids.length === 1 && typeof draft.id === 'string') return draft.id
    throw new Refusal('field_invalid', 'draft_task', describeField('content', 'has a draft_task without an id'))
  })
}

/** Task ids become part of a URL. */
const TASK_ID = /^[A-Za-z0-9][\w.:-]{0,199}$/

export const isTaskId = (text: string): boolean => TASK_ID.test(text)

/** Reads the id that an upstream gave a task; undefined for an answer without a valid id. */
export function readTaskId(body: Buffer): string | undefined {
  const id = parseAnswerObject(body)?.id
  return typeof id === 'string' && isTaskId(id) ? id : undefined
}

export const taskStates = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'expired'] as const
export type TaskState = (typeof taskStates)[number]

export interface TaskReport {
  /** Undefined for an unknown state: the task may still succeed. */
  readonly state: TaskState | undefined
  /** The answer contains a result, such as the address of a video. */
  readonly hasResult: boolean
  readonly usage: UsageReport | undefined
  /** Usage computed from the length and resolution of the video. */
  readonly estimate: Usage
  readonly serviceClass: string | undefined
}

/** Undefined for an answer that is no task. */
export function readTask(body: Buffer): TaskReport | undefined {
  const json = parseAnswerObject(body)
  if (json === undefined || typeof json.status !== 'string') return undefined
  const { status, content, usage, resolution, service_tier: tier } = json
  const frames = countFrames(json)
  const seconds = Math.ceil(frames / FRAMES_PER_SECOND)
  const area = typeof resolution === 'string' ? findArea(resolution) : DEFAULT_AREA
  return {
    state: taskStates.find(state => state === status.toLowerCase()),
    hasResult: typeof content === 'string' || (isObject(content) && Object.keys(content).length > 0),
    usage: readVideoUsage(usage, readSeconds(json.duration)),
    estimate: { input: 0, output: countTokens(area.usual, frames), seconds },
    serviceClass: typeof tier === 'string' ? tier : undefined,
  }
}

function countFrames({ duration, frames, framespersecond: rate }: Json): number {
  const perSecond = tokenCount(rate) || FRAMES_PER_SECOND
  return tokenCount(frames) || (readSeconds(duration) || SECONDS_DEFAULT) * perSecond
}

/** The total includes input tokens besides the output tokens. */
function readVideoUsage(report: unknown, seconds: number | undefined): UsageReport | undefined {
  if (!isObject(report)) return undefined
  const output = tokenCount(report.completion_tokens ?? report.total_tokens)
  const total = tokenCount(report.total_tokens ?? output)
  const { web_search: webSearches } = isObject(report.tool_usage) ? report.tool_usage : {}
  const searches = tokenCount(webSearches ?? 0)
  if (output === undefined || total === undefined || searches === undefined || total < output) return 'nonsense'
  if (total === 0 && searches === 0) return undefined
  return {
    input: total - output,
    output,
    ...(searches > 0 && { searches }),
    ...(seconds !== undefined && { seconds }),
  }
}
