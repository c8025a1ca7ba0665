// A request for an upstream of this dialect.
import type { Conversation, MediaPart, OutputFormat, Settings } from '../neutral/conversation.ts'
import type { ConversationTarget } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import { ToolNames } from './names.ts'
import { forGoogle } from './schema.ts'
import { writeThinking } from './thinking.ts'
import { writeContents } from './write-contents.ts'
import { answersByTool, hasFunctions, writeTools } from './write-tools.ts'

const STOPS_MAX = 5

export function writeConversation(asked: Conversation, target: ConversationTarget): string {
  return JSON.stringify(requestOf(asked, target))
}

export function requestOf(asked: Conversation, target: ConversationTarget): Json {
  const names = new ToolNames(asked.tools, target.notes.renamed)
  noteLosses(asked.settings, target)
  const tools = writeTools(asked, names, target)
  const contents = writeContents(asked.turns, names, target)
  const config = writeConfig(asked, target)
  const tier = writeTier(asked.settings, target)
  return {
    ...contents,
    ...tools,
    ...(Object.keys(config).length > 0 && { generationConfig: config }),
    ...(tier !== undefined && { serviceTier: tier }),
  }
}

/** What there is no place for. */
function noteLosses(settings: Settings, { notes }: ConversationTarget): void {
  const { logitBias, verbosity, endUser, metadata, cacheKey, cache } = settings
  const lost = {
    logit_bias: logitBias,
    verbosity,
    user: endUser,
    metadata,
    prompt_cache_key: cacheKey,
    cache_control: cache,
  }
  for (const [code, value] of Object.entries(lost)) if (value !== undefined) notes.losses.add(code)
}

function writeConfig(asked: Conversation, target: ConversationTarget): Json {
  const { settings, reasoning } = asked
  const { losses } = target.notes
  const { stop, logprobs, choices } = settings
  const cap = capOf(settings, target)
  if (stop !== undefined && stop.length > STOPS_MAX) losses.add('stop')
  const thinking =
    reasoning === undefined
      ? undefined
      : writeThinking(reasoning, { traits: target.traits, outputTokensMax: cap ?? target.outputTokensMax, losses })
  const resolution = writeResolution(asked, target)
  const config = {
    ...writeSampling(settings, target),
    candidateCount: choices === 1 ? undefined : choices,
    maxOutputTokens: cap,
    stopSequences: stop === undefined || stop.length === 0 ? undefined : stop.slice(0, STOPS_MAX),
    presencePenalty: settings.presencePenalty,
    frequencyPenalty: settings.frequencyPenalty,
    seed: settings.seed,
    responseLogprobs: logprobs === undefined ? undefined : true,
    logprobs: logprobs === 0 ? undefined : logprobs,
    ...writeFormat(asked, target),
    thinkingConfig: thinking,
    mediaResolution: resolution,
  }
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined))
}

/** Never more than the model writes, and never more than the funds allow. */
function capOf({ outputTokensMax }: Settings, target: ConversationTarget): number | undefined {
  if (outputTokensMax === undefined) return target.cap
  return Math.min(outputTokensMax, target.cap ?? outputTokensMax, target.outputTokensMax ?? outputTokensMax)
}

function writeSampling({ temperature, topP, topK }: Settings, { traits, notes }: ConversationTarget): Json {
  if (traits.sampling !== false) return { temperature, topP, topK }
  for (const [code, value] of Object.entries({ temperature, top_p: topP, top_k: topK })) {
    if (value !== undefined) notes.losses.add(code)
  }
  return {}
}

function writeFormat(asked: Conversation, { traits, notes }: ConversationTarget): Json {
  const { format } = asked
  if (format === undefined || answersByTool(asked, traits)) return {}
  if (traits.schemaWithTools === false && hasFunctions(asked.tools)) {
    notes.losses.add('response_format')
    return {}
  }
  return formatOf(format, traits.schema !== false, () => notes.losses.add('response_format.schema'))
}

function formatOf(format: OutputFormat, takesSchema: boolean, lose: () => void): Json {
  const json = { responseMimeType: 'application/json' }
  if (format.kind === 'json') return json
  if (takesSchema) return { ...json, responseJsonSchema: forGoogle(format.schema) }
  lose()
  return json
}

const tiers: Readonly<Record<string, string | undefined>> = {
  default: 'standard',
  standard: 'standard',
  standard_only: 'standard',
  flex: 'flex',
  priority: 'priority',
  fast: 'priority',
}

function writeTier({ serviceClass }: Settings, { notes }: ConversationTarget): string | undefined {
  if (serviceClass === undefined || serviceClass === 'auto') return undefined
  const tier = Object.hasOwn(tiers, serviceClass) ? tiers[serviceClass] : undefined
  if (tier === undefined) notes.losses.add('service_tier')
  return tier
}

const resolutions: Readonly<Record<string, string>> = {
  low: 'MEDIA_RESOLUTION_LOW',
  high: 'MEDIA_RESOLUTION_HIGH',
  original: 'MEDIA_RESOLUTION_HIGH',
}

/** One for all images: that of those that say one, if they agree. */
function writeResolution({ turns }: Conversation, { notes }: ConversationTarget): string | undefined {
  const images = turns.flatMap(turn => turn.parts.filter((part): part is MediaPart => part.kind === 'image'))
  const wishes = new Set(images.map(({ detail }) => resolutions[detail ?? 'auto']))
  if (wishes.size > 1) notes.losses.add('image.detail')
  return wishes.size === 1 ? [...wishes][0] : undefined
}
