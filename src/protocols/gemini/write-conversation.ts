// Writes the neutral conversation as a request for an upstream of this dialect.

import type {
  Conversation,
  ConversationPart,
  GenerationSettings,
  MediaPart,
  OutputFormat,
} from '../neutral/conversation.ts'
import type { SettingCodes } from '../neutral/default-settings.ts'
import { addSettingLosses } from '../neutral/default-settings.ts'
import { describeSchema } from '../neutral/described-schema.ts'
import { outputCap } from '../neutral/output-cap.ts'
import { acceptedPenalties } from '../neutral/penalties.ts'
import type { ConversationTarget } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import { toGoogleSchema } from './schema.ts'
import { writeThinking } from './thinking.ts'
import { GeminiToolNames } from './tool-names.ts'
import { writeContents } from './write-contents.ts'
import { hasFunctions, needsAnswerTool, writeTools } from './write-tools.ts'

const STOP_SEQUENCES_MAX = 5

export function writeConversation(conversation: Conversation, target: ConversationTarget): string {
  return JSON.stringify(buildRequest(conversation, target))
}

export function buildRequest(conversation: Conversation, target: ConversationTarget): Json {
  const names = new GeminiToolNames(conversation.tools, target.notes.renamed)
  noteLosses(conversation.settings, target)
  const tools = writeTools(conversation, names, target)
  const contents = writeContents(conversation.messages, names, target)
  const config = writeConfig(conversation, target)
  const tier = writeTier(conversation.settings, target)
  return {
    ...contents,
    ...tools,
    ...(Object.keys(config).length > 0 && { generationConfig: config }),
    ...(tier !== undefined && { serviceTier: tier }),
  }
}

const unsupported: SettingCodes = [
  ['logitBias', 'logit_bias'],
  ['verbosity', 'verbosity'],
  ['endUser', 'user'],
  ['metadata', 'metadata'],
  ['cacheKey', 'prompt_cache_key'],
]

/** Records settings that this dialect has no field for. */
function noteLosses(settings: GenerationSettings, { notes }: ConversationTarget): void {
  addSettingLosses(settings, unsupported, notes.losses)
  if (settings.cache !== undefined) {
    notes.losses.add(settings.cache === 'breakpoints' ? 'prompt_cache_options' : 'cache_control')
  }
}

function writeConfig(conversation: Conversation, target: ConversationTarget): Json {
  const { settings, reasoning } = conversation
  const { losses } = target.notes
  const { stop, logprobs, choices } = settings
  const cap = outputCap(settings, target)
  if (stop !== undefined && stop.length > STOP_SEQUENCES_MAX) losses.add('stop')
  const thinking =
    reasoning === undefined
      ? undefined
      : writeThinking(reasoning, { traits: target.traits, outputTokensMax: cap ?? target.outputTokensMax, losses })
  const resolution = writeResolution(conversation, target)
  const config = {
    ...writeSampling(settings, target),
    candidateCount: choices === 1 ? undefined : choices,
    maxOutputTokens: cap,
    stopSequences: stop === undefined || stop.length === 0 ? undefined : stop.slice(0, STOP_SEQUENCES_MAX),
    ...acceptedPenalties(settings, target),
    // Google takes 32 bits. Equal seeds stay equal.
    seed: settings.seed === undefined ? undefined : settings.seed | 0,
    responseLogprobs: logprobs === undefined ? undefined : true,
    logprobs: logprobs === 0 ? undefined : logprobs,
    ...writeFormat(conversation, target),
    thinkingConfig: thinking,
    mediaResolution: resolution,
  }
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined))
}

const SAMPLING_CODES: SettingCodes = [
  ['temperature', 'temperature'],
  ['topP', 'top_p'],
  ['topK', 'top_k'],
]

function writeSampling(settings: GenerationSettings, { traits, notes }: ConversationTarget): Json {
  const { temperature, topP, topK } = settings
  if (traits.sampling !== false) return { temperature, topP, topK }
  addSettingLosses(settings, SAMPLING_CODES, notes.losses)
  return {}
}

function writeFormat(conversation: Conversation, { traits, notes }: ConversationTarget): Json {
  const { format } = conversation
  if (format === undefined || needsAnswerTool(conversation, traits)) return {}
  if (traits.schemaWithTools === false && hasFunctions(conversation.tools)) {
    notes.losses.add('response_format')
    return {}
  }
  return buildFormat(format, traits.schema !== false, () => notes.losses.add('response_format.schema'))
}

function buildFormat(format: OutputFormat, takesSchema: boolean, addLoss: () => void): Json {
  const json = { responseMimeType: 'application/json' }
  if (format.kind === 'json') return json
  const converted = takesSchema ? toGoogleSchema(describeSchema(format)) : undefined
  if (converted === undefined || converted.isWeaker) addLoss()
  return { ...json, ...(converted && { responseJsonSchema: converted.schema }) }
}

const TIER_BY_CLASS: Readonly<Record<string, string | undefined>> = {
  default: 'standard',
  standard: 'standard',
  standard_only: 'standard',
  flex: 'flex',
  priority: 'priority',
  fast: 'priority',
}

function writeTier({ serviceClass }: GenerationSettings, { notes }: ConversationTarget): string | undefined {
  if (serviceClass === undefined || serviceClass === 'auto') return undefined
  const tier = Object.hasOwn(TIER_BY_CLASS, serviceClass) ? TIER_BY_CLASS[serviceClass] : undefined
  if (tier === undefined) notes.losses.add('service_tier')
  return tier
}

const RESOLUTION_BY_DETAIL: Readonly<Record<string, string>> = {
  low: 'MEDIA_RESOLUTION_LOW',
  high: 'MEDIA_RESOLUTION_HIGH',
  original: 'MEDIA_RESOLUTION_HIGH',
}

/**
 * This dialect has one resolution for all media, so a detail is carried only if all images have the same. Files count
 * only with a detail: in most dialects they cannot have one.
 */
function writeResolution({ messages }: Conversation, { notes }: ConversationTarget): string | undefined {
  const parts = messages
    .flatMap(turn => turn.parts)
    .flatMap((part): readonly ConversationPart[] => (part.kind === 'result' ? part.parts : [part]))
  const resolutionOf = ({ detail = 'auto' }: MediaPart): string | undefined => RESOLUTION_BY_DETAIL[detail]
  const media = parts.filter((part): part is MediaPart => 'source' in part)
  const counted = media.filter(part => part.kind === 'image' || resolutionOf(part) !== undefined)
  const resolutions = new Set(counted.map(resolutionOf))
  if (resolutions.size <= 1) return [...resolutions][0]
  for (const part of counted) if (resolutionOf(part) !== undefined) notes.losses.add(`${part.kind}.detail`)
  return undefined
}
