// The neutral conversation as a request for an upstream of this dialect. Nothing is to be kept there: what a call
// builds on is in the call, and what the model thought comes back sealed.

import { createHash } from 'node:crypto'
import type { Conversation, Settings, Turn } from '../neutral/conversation.ts'
import type { ConversationTarget } from '../protocol.ts'
import { invalid } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'
import type { Flavour } from './flavour.ts'
import { ToolNames } from './tool-names.ts'
import type { Writing } from './write-items.ts'
import { keptFor, writeItems } from './write-items.ts'
import { writeReasoning } from './write-reasoning.ts'
import { writeFormat, writeTools } from './write-tools.ts'

const NAME_CHARS_MAX = 64

interface Target {
  readonly flavour: Flavour
  readonly target: ConversationTarget
}

export const writeConversation = (conversation: Conversation, target: Target): string =>
  JSON.stringify(requestOf(conversation, target))

/** What a count has a place for. */
const COUNTED = [
  ...['model', 'input', 'instructions', 'tools', 'tool_choice', 'parallel_tool_calls', 'reasoning', 'text'],
] as const

/** The same, to be counted and not answered. */
export function writeCountConversation(conversation: Conversation, target: Target): string {
  const body = requestOf(conversation, target)
  return JSON.stringify(Object.fromEntries(COUNTED.map(field => [field, body[field]])))
}

function requestOf(conversation: Conversation, { flavour, target }: Target): Json {
  const { settings, tools, format, parallelCalls } = conversation
  const { losses } = target.notes
  losses.addAll(conversation.unread)
  if ((settings.choices ?? 1) > 1) throw invalid('n', 'must be 1: this model answers once')
  const known = tools.flatMap(tool => (tool.kind === 'function' || tool.kind === 'custom' ? [tool.name] : []))
  const writing: Writing = { flavour, target, names: new ToolNames(target.notes, known) }
  const reasoning = writeReasoning(conversation.reasoning, writing)
  const { instructions, turns } = splitInstructions(conversation.turns)
  const written = writeTools(conversation, writing)
  const form = format && writeFormat(format, writing, tools.length > 0)
  const input = writeItems(turns, writing)
  if (input.length === 0) throw invalid('messages', 'hold nothing that this model could read')
  const mustSayJson = form?.type === 'json_object' && !saysJson(conversation.turns)
  const text = { ...(form && { format: form }), ...verbosity(settings, writing) }
  const include = [
    ...(reasoning.thinks ? ['reasoning.encrypted_content'] : []),
    ...(settings.logprobs !== undefined && !flavour.lacks.has('top_logprobs') ? ['message.output_text.logprobs'] : []),
  ]
  return {
    model: target.model,
    ...(instructions !== undefined && { instructions }),
    input: mustSayJson ? [...input, sayJson(flavour)] : input,
    ...written,
    ...(parallelCalls !== undefined && tools.length > 0 && { parallel_tool_calls: parallelCalls }),
    ...(Object.keys(text).length > 0 && { text }),
    ...reasoning.fields,
    ...writeSettings(settings, writing, reasoning.thinks),
    ...(include.length > 0 && { include }),
    store: false,
    stream: settings.stream,
  }
}

/** The first words of the system have a field of their own, unless something else hangs on them. */
function splitInstructions(turns: readonly Turn[]): { instructions?: string; turns: readonly Turn[] } {
  const [first, ...rest] = turns
  if (first?.role !== 'system' || first.name !== undefined || rest.length === 0) return { turns }
  const texts = first.parts.map(part => (part.kind === 'text' && part.cache === undefined ? part.text : undefined))
  const isPlain = texts.length > 0 && texts.every(text => text !== undefined)
  const instructions = isPlain ? texts.join('\n\n') : ''
  return instructions === '' ? { turns } : { instructions, turns: rest }
}

/** JSON without a schema is refused where nothing in the conversation asks for it in words. */
const saysJson = (turns: readonly Turn[]): boolean =>
  turns.some(({ parts }) => parts.some(part => part.kind === 'text' && /json/i.test(part.text)))

const sayJson = (flavour: Flavour): Json => ({
  type: 'message',
  role: flavour.developers ? 'developer' : 'system',
  content: [{ type: 'input_text', text: 'Answer with a JSON object.' }],
})

function verbosity({ verbosity: asked }: Settings, { flavour, target }: Writing): Json {
  if (asked === undefined) return {}
  if (!flavour.lacks.has('verbosity')) return { verbosity: asked }
  target.notes.losses.add('verbosity')
  return {}
}

/** What this dialect has no word for, by the name that most callers know it by. */
const wordless: readonly (readonly [keyof Settings, string])[] = [
  ['stop', 'stop'],
  ['seed', 'seed'],
  ['topK', 'top_k'],
  ['frequencyPenalty', 'frequency_penalty'],
  ['presencePenalty', 'presence_penalty'],
  ['logitBias', 'logit_bias'],
]

function writeSettings(settings: Settings, writing: Writing, thinks: boolean): Json {
  const { flavour, target } = writing
  const { losses } = target.notes
  for (const [name, code] of wordless) {
    const value = settings[name]
    if (value !== undefined && !(Array.isArray(value) && value.length === 0)) losses.add(code)
  }
  const given: Record<string, unknown> = {
    max_output_tokens: leastOf(settings.outputTokensMax, target.cap),
    temperature: settings.temperature,
    top_p: settings.topP,
    top_logprobs: settings.logprobs || undefined,
    service_tier: settings.serviceClass === undefined ? undefined : writeClass(settings.serviceClass, writing),
    prompt_cache_key: shortened(settings.cacheKey),
    prompt_cache_options: cacheOptions(settings, writing),
    safety_identifier: shortened(settings.endUser),
    metadata: settings.metadata,
  }
  const isSampled = target.traits.sampling !== false && !(target.traits.samplingWithoutThinking && thinks)
  const lacks = (name: string): boolean =>
    flavour.lacks.has(name) || (!isSampled && (name === 'temperature' || name === 'top_p'))
  for (const name in given) {
    if (given[name] === undefined || !lacks(name)) continue
    losses.add(name)
    given[name] = undefined
  }
  if (settings.logprobs !== undefined && flavour.lacks.has('top_logprobs')) losses.add('logprobs')
  return given
}

/** Other dialects have other words for what is usual. */
const usual: readonly string[] = ['standard', 'standard_only']

function writeClass(asked: string, { flavour, target }: Writing): string | undefined {
  const name = usual.includes(asked) ? 'default' : asked
  if (flavour.classes.includes(name)) return name
  target.notes.losses.add('service_tier')
  return undefined
}

/** Longer names are refused; what they are for is to be the same each time, and a hash is. */
const shortened = (name: string | undefined): string | undefined =>
  name === undefined || name.length <= NAME_CHARS_MAX ? name : createHash('sha256').update(name).digest('hex')

const leastOf = (own: number | undefined, cap: number | undefined): number | undefined =>
  own === undefined || cap === undefined ? (own ?? cap) : Math.min(own, cap)

/** A prompt is kept for a while without being asked; only a longer while must be said. */
function cacheOptions({ cache }: Settings, { flavour, target }: Writing): Json | undefined {
  if (cache?.ttl === undefined) return undefined
  const isMarked = flavour.cacheMarks && target.traits.cacheMarks !== false
  if (isMarked) return { mode: 'implicit', ttl: keptFor(cache.ttl) }
  target.notes.losses.add('cache')
  return undefined
}
