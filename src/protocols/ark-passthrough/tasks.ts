// /api/v3/contents/generations/tasks: what a task may come to at most, read from its request, and how it is, read from
// what its upstream says of it. A film is billed by tokens: width × height × frames / 1,024.

import { Refusal } from '../../base/errors.ts'
import type { Usage, UsageReport } from '../../base/money/usage.ts'
import { tokenCount } from '../../base/money/usage.ts'
import { writeError } from '../ark/errors.ts'
import { noFrames, parseAnswer, readJsonCall, saidError, writeModel } from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { at, invalid, missing, optional } from '../request/checks.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { valuesOf } from '../request/references.ts'
import { readSeconds } from '../usage/passthrough-usage.ts'

const PIXELS_PER_TOKEN = 1_024
const FRAMES_PER_SECOND = 24
/** Where nothing is said, and where the model may choose. */
const SECONDS = 5
const SECONDS_MAX = 30
/** Of a film that a task is shown; it is billed as if it were made. */
const SHOWN_SECONDS_MAX = 15
/** As often as it may search before it begins. */
const SEARCHES_MAX = 10

interface Area {
  /** No shape of a film of this name has more pixels. */
  readonly most: number
  readonly usual: number
}

const areas: Readonly<Record<string, Area>> = {
  '480p': { most: 450_000, usual: 864 * 480 },
  '720p': { most: 1_000_000, usual: 1_280 * 720 },
  '1080p': { most: 2_200_000, usual: 1_920 * 1_080 },
  '2k': { most: 4_200_000, usual: 2_560 * 1_440 },
  '4k': { most: 9_000_000, usual: 3_840 * 2_160 },
}
const largest = areas['4k']!
/** What models make of their own accord is no larger. */
const unsaid = areas['1080p']!

const readFields = ['content', 'callback_url', 'duration', 'frames', 'resolution', 'service_tier', 'tools']

export const tasks: Protocol = {
  name: 'ark-tasks',
  lastEvent: '',
  quiet: true,
  readCall(body) {
    const call = readJsonCall('ark-tasks', body, readFields)
    const { json } = call
    const content = optional(json, 'content', 'list')
    if (content === undefined || content.length === 0) throw missing('content')
    // The upstream would call back by itself, past us, and with an id and a signature that are ours.
    if ((json.callback_url ?? '') !== '') throw invalid('callback_url', 'is not served: ask for the task instead')
    const serviceClass = optional(json, 'service_tier', 'word')
    const parts = content.filter(isObject)
    parts.forEach(checkSpelling)
    const seconds = secondsAtMost(json, parts)
    return {
      ...call,
      textOnly: false,
      inputTokensMax: 0, // what goes in is not billed
      outputTokensMax: tokensOf(pixelsAtMost(json, parts), seconds * FRAMES_PER_SECOND + 1),
      units: { seconds },
      searchesMax: (optional(json, 'tools', 'list') ?? []).length > 0 ? SEARCHES_MAX : 0,
      ...(serviceClass !== undefined && { serviceClass }),
    }
  },
  writeCall: writeModel,
  readAnswer(body) {
    const json = parseAnswer(body)
    const error = json && saidError(json)
    if (error !== undefined) return { outputBytes: 0, error }
    return json === undefined || readTaskId(body) === undefined ? undefined : { outputBytes: 0 }
  },
  readFrame: noFrames,
  writeError,
}

const tokensOf = (area: number, frames: number): number => Math.ceil((area * frames) / PIXELS_PER_TOKEN)

/** What a prompt says with flags, as older models read it: `--dur 5`, `--resolution 720p`. */
function flags(parts: readonly Json[], names: string): readonly string[] {
  const pattern = new RegExp(`--(?:${names})[ \\t]{1,8}([A-Za-z0-9.-]{1,16})`, 'g')
  const texts = parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : []))
  return texts.flatMap(text => [...text.matchAll(pattern)].map(([, said]) => said!))
}

function secondsAtMost(json: Json, parts: readonly Json[]): number {
  const frames = optional(json, 'frames', 'count')
  const said = (json.duration ?? undefined) === undefined ? [] : [secondsOf(json.duration)]
  if (frames !== undefined) said.push(Math.ceil(frames / FRAMES_PER_SECOND))
  said.push(...flags(parts, 'dur|duration').flatMap(flaggedSeconds))
  said.push(
    ...flags(parts, 'frames')
      .flatMap(flaggedSeconds)
      .map(count => Math.ceil(count / FRAMES_PER_SECOND)),
  )
  const isLonger = parts.some(isDraft)
  const made = said.length === 0 ? (isLonger ? SECONDS_MAX : SECONDS) : Math.max(...said)
  return made + SHOWN_SECONDS_MAX * parts.filter(({ type }) => type === 'video_url').length
}

/** -1 lets the model choose. */
function secondsOf(value: unknown): number {
  if (value === -1) return SECONDS_MAX
  const seconds = typeof value === 'number' ? readSeconds(value) : undefined
  if (seconds === undefined || seconds > 3_600) throw invalid('duration', 'must be a number of seconds, or -1')
  return seconds
}

/** Words that only look like a flag are none. */
function flaggedSeconds(text: string): readonly number[] {
  if (text === '-1') return [SECONDS_MAX]
  return /^\d{1,4}$/.test(text) ? [Number(text)] : []
}

function pixelsAtMost(json: Json, parts: readonly Json[]): number {
  const asked = optional(json, 'resolution', 'word')
  const said = [...(asked === undefined ? [] : [asked]), ...flags(parts, 'rs|resolution')]
  return said.length === 0 ? unsaid.most : Math.max(...said.map(name => areaOf(name).most))
}

function areaOf(resolution: string): Area {
  const name = resolution.toLowerCase()
  return Object.hasOwn(areas, name) ? areas[name]! : largest
}

const PART_FIELDS = ['type', 'draft_task', 'video_url'] as const

/** The upstream may read `Type` as `type`: then the part would be another one than was priced. */
function checkSpelling(part: Json, index: number): void {
  for (const field of PART_FIELDS) {
    const count = Object.hasOwn(part, field) ? 1 : 0
    if (valuesOf(part, field).length === count) continue
    const where = `content[${index}].${field}`
    throw new Refusal('field_duplicate', where, { param: where, hint: `"${where}" may stand once, in this spelling.` })
  }
}

/** By its type or by what it holds: an upstream may look at either. */
const isDraft = ({ type, draft_task: draft }: Json): boolean =>
  type === 'draft_task' || (draft !== undefined && draft !== null)

/** Tasks of others that this one builds on. */
export function draftsNamed(json: Json): readonly string[] {
  const parts = Array.isArray(json.content) ? json.content.filter(isObject) : []
  return parts.filter(isDraft).map(({ draft_task: draft }) => {
    const ids = isObject(draft) ? valuesOf(draft, 'id') : []
    if (isObject(draft) && ids.length === 1 && typeof draft.id === 'string') return draft.id
    throw new Refusal('field_invalid', 'draft_task', at('content', 'has a draft_task without an id'))
  })
}

/** It becomes a part of an address. */
const ID = /^[A-Za-z0-9][\w.:-]{0,199}$/

export const isTaskId = (text: string): boolean => ID.test(text)

/** The name that an upstream gave a task; undefined for what is none. */
export function readTaskId(body: Buffer): string | undefined {
  const id = parseAnswer(body)?.id
  return typeof id === 'string' && isTaskId(id) ? id : undefined
}

export const taskStates = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'expired'] as const
export type TaskState = (typeof taskStates)[number]

export interface TaskSaid {
  /** Undefined for one that we do not know: it may still come to something. */
  readonly state: TaskState | undefined
  readonly usage: UsageReport | undefined
  /** Counted by what it says of its film. */
  readonly estimate: Usage
  readonly serviceClass: string | undefined
}

/** Undefined for what says nothing of a task. */
export function readTask(body: Buffer): TaskSaid | undefined {
  const json = parseAnswer(body)
  if (json === undefined || typeof json.status !== 'string') return undefined
  const { status, usage, resolution, service_tier: tier } = json
  const frames = framesOf(json)
  const seconds = Math.ceil(frames / FRAMES_PER_SECOND)
  const area = typeof resolution === 'string' ? areaOf(resolution) : unsaid
  return {
    state: taskStates.find(state => state === status.toLowerCase()),
    usage: readFilmUsage(usage, readSeconds(json.duration)),
    estimate: { input: 0, output: tokensOf(area.usual, frames), seconds },
    serviceClass: typeof tier === 'string' ? tier : undefined,
  }
}

function framesOf({ duration, frames, framespersecond: rate }: Json): number {
  const perSecond = tokenCount(rate) || FRAMES_PER_SECOND
  return tokenCount(frames) || (readSeconds(duration) || SECONDS) * perSecond
}

/** A total is what was written, and what was read beside it. */
function readFilmUsage(report: unknown, seconds: number | undefined): UsageReport | undefined {
  if (!isObject(report)) return undefined
  const output = tokenCount(report.completion_tokens ?? report.total_tokens)
  const total = tokenCount(report.total_tokens ?? output)
  const { web_search: searched } = isObject(report.tool_usage) ? report.tool_usage : {}
  const searches = tokenCount(searched ?? 0)
  if (output === undefined || total === undefined || searches === undefined || total < output) return 'nonsense'
  if (total === 0 && searches === 0) return undefined
  return {
    input: total - output, output,
    ...(searches > 0 && { searches }),
    ...(seconds !== undefined && { seconds }),
  }
}
