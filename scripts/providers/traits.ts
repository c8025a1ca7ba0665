// Traits of models, by family: rules over their ids; the first rule that matches applies. A model without a rule has no
// traits, and its upstream decides.
//
// Claude, OpenAI and Gemini: the model catalogues of @ai-sdk/anthropic 4.0.102, @ai-sdk/openai 4.0.114 and
// @ai-sdk/google 4.0.117 (Apache-2.0), read 2026-11-15, and the vendors' pages on what each model reads.

import type { Effort, Modality, ModelTraits } from '../../src/base/money/model-traits.ts'
import { mediaTokensOf } from './media-tokens.ts'

export type Rule = readonly [family: RegExp, traits: ModelTraits]

const upTo = (last: Effort, ...first: readonly Effort[]): readonly Effort[] => {
  const words: readonly Effort[] = ['low', 'medium', 'high', 'xhigh', 'max']
  return [...first, ...words.slice(0, words.indexOf(last) + 1)]
}

const documents: readonly Modality[] = ['text', 'image', 'file']
const everything: readonly Modality[] = ['text', 'image', 'audio', 'file', 'video']

const budgeted: ModelTraits = { reads: documents, thinking: 'budget', budgetMin: 1_024 }
/** From 4.6 on, Claude refuses a conversation that ends with a message of the assistant. */
const from46: ModelTraits = { reads: documents, prefill: false }
const adaptive: ModelTraits = { ...from46, thinking: 'adaptive', efforts: upTo('max'), sampling: false }
const either: ModelTraits = { ...from46, thinking: 'either', budgetMin: 1_024 }

/** Some ids have versions with dots, or a vendor or a region before the name. */
export const claude: readonly Rule[] = [
  [/(sonnet|opus)-5[-.]5/, { ...adaptive, stopsThinking: false, forcedTool: false }],
  [/haiku-5[-.]5/, adaptive],
  [/opus-5/, { ...either, efforts: upTo('max'), sampling: false }],
  [/fable-5[-.][12]/, { ...adaptive, stopsThinking: false, forcedTool: false }],
  [/fable-5/, { ...adaptive, stopsThinking: false }],
  [/opus-4[-.][78]|sonnet-5/, { ...either, efforts: upTo('max'), sampling: false }],
  [/(sonnet|opus)-4[-.]6/, { ...either, efforts: upTo('high') }],
  [/opus-4[-.]5/, { ...budgeted, efforts: upTo('high') }],
  [/(sonnet|haiku)-4[-.]5|opus-4[-.]1/, budgeted],
  [/(sonnet|opus)-4/, { ...budgeted, schema: false }],
]

const reasoning: ModelTraits = { reads: documents, thinking: 'effort' }
/** Models that always think and accept no sampling fields. */
const always: ModelTraits = { ...reasoning, stopsThinking: false, sampling: false }
const ifAsked: ModelTraits = { ...reasoning, samplingWithoutThinking: true }
const plain: ModelTraits = { reads: documents, thinking: 'none' }

/** GPT-5.6 introduced cache marks in prompts. */
const unmarked = ([family, traits]: Rule): Rule => [family, { ...traits, cacheMarks: false }]

export const openai: readonly Rule[] = [
  [/^gpt-6-(luna|sol)/, { ...ifAsked, efforts: upTo('max', 'none') }],
  [/^gpt-6/, { ...always, efforts: upTo('max') }],
  [/^gpt-5\.6/, { ...ifAsked, efforts: upTo('max', 'none') }],
  ...(
    [
      [/^gpt-audio/, { reads: ['text', 'audio'], thinking: 'none' }],
      [/^gpt-5-chat/, { ...plain, schema: false }],
      // The field that makes these models think is not published.
      [/^gpt-5\.\d-chat/, { reads: documents }],
      [/^gpt-5\.[2-5]/, { ...ifAsked, efforts: upTo('xhigh', 'none') }],
      [/^gpt-5\.1/, { ...ifAsked, efforts: upTo('high', 'none') }],
      [/^gpt-5/, { ...always, efforts: upTo('high', 'minimal') }],
      [/^o3-mini/, { ...always, reads: ['text'], efforts: upTo('high') }],
      [/^o\d/, { ...always, efforts: upTo('high') }],
      [/^gpt-4o-2024-05-13$/, { ...plain, schema: false }],
      [/^gpt-4(\.1|o)/, plain],
      [/^gpt-4-turbo(-2024|$)/, { reads: ['text', 'image'], thinking: 'none', schema: false }],
      [/^gpt-(3\.5|4)/, { reads: ['text'], thinking: 'none', schema: false }],
    ] as const
  ).map(unmarked),
]

const older: ModelTraits = { reads: everything, schemaWithTools: false, richResults: false }
/** The lowest level of these models is some thinking, not none. */
const levels: ModelTraits = { reads: everything, thinking: 'level', stopsThinking: false, penalties: false }

/** `older25`: traits of all models of Gemini 2.5. */
const geminiRules = (older25: ModelTraits): readonly Rule[] => [
  [/^gemma/, { thinking: 'none', system: false }],
  [/^gemini-2\.0/, { ...older, thinking: 'none' }],
  [/^gemini-2\.5-pro/, { ...older25, thinking: 'budget', stopsThinking: false, budgetMin: 128, budgetMax: 32_768 }],
  [/^gemini-2\.5/, { ...older25, thinking: 'budget', budgetMin: 0, budgetMax: 24_576 }],
  [/^gemini-[3-9](\.\d)?-pro/, { ...levels, efforts: upTo('high') }],
  [/^gemini-(3\.[7-9]|[4-9]\.\d)-flash(?!-lite)/, { ...levels, efforts: upTo('high') }],
  [/^gemini-[3-9]/, { ...levels, efforts: upTo('high', 'minimal') }],
]

/**
 * The Gemini API refuses a penalty from Gemini 2.5 on ("Penalty is not enabled": google-gemini/cookbook#1290,
 * vercel/ai#8943), Vertex AI only from Gemini 3 on (BerriAI/litellm#16031, and its list of what Vertex AI accepts).
 */
export const gemini = geminiRules({ ...older, penalties: false })
const vertex = geminiRules(older)

/**
 * Functions and tools of the provider in one request: only Gemini 3 on the Gemini API, which has a field for this.
 * https://ai.google.dev/gemini-api/docs/tool-combination; Vertex does not have the field.
 */
const combinesTools = (rules: readonly Rule[], canCombine: (traits: ModelTraits) => boolean): readonly Rule[] =>
  rules.map(([family, traits]) => [family, { ...traits, serverToolsWithFunctions: canCombine(traits) }])

const seen: readonly Modality[] = ['text', 'image', 'video']

/** The longest reasoning that Ark documents for its older models and for DeepSeek. Newer models may reason for longer. */
const budgetMax = 32_768

export const ark: readonly Rule[] = [
  [/^doubao-seed-1-\d-thinking/, { reads: seen, thinking: 'effort', stopsThinking: false, budgetMax }],
  [/^doubao-seed-1/, { reads: seen, thinking: 'effort', budgetMax }],
  [/^doubao-seed/, { reads: seen, thinking: 'effort' }],
  [/^deepseek-v3/, { reads: ['text'], thinking: 'effort', budgetMax }],
]

/** An aggregator translates the fields of thinking, so its models have only the traits of their inputs. */
export const aggregated: readonly Rule[] = [
  [/^anthropic\/claude/, { reads: documents }],
  [/^openai\/(gpt-oss|o3-mini)/, { reads: ['text'] }],
  [/^openai\/(gpt-[456]|o\d)/, { reads: documents }],
  [/^google\/gemini/, { reads: everything }],
]

const doesNotThink: ModelTraits = { thinking: 'none' }

/** Families of open models that do not think, at any host. Some hosts refuse an effort for them. */
const hosted: readonly Rule[] = [
  [/(^|\/)(meta-)?llama-?(v?[34]|guard)(?!.*nemotron)/i, doesNotThink],
  [/(^|\/)(mixtral|mistral-(7b|nemo)|gemma-[23]|qwen-?2)/i, doesNotThink],
  [/qwen3-.*(instruct|coder)|kimi-k2-instruct|deepseek[-_]v3(-0324)?(:|$)/i, doesNotThink],
]

/** Groq accepts only `none` and `default` for Qwen 3: https://console.groq.com/docs/reasoning */
const groq: readonly Rule[] = [[/qwen3-32b/, { efforts: ['none'] }], ...hosted]

/** Only Small 4 and Medium 3.5 accept an effort: https://docs.mistral.ai/studio-api/conversations/reasoning */
const mistral: readonly Rule[] = [
  [/^magistral/, { efforts: [] }],
  [/^(codestral|devstral|ministral|pixtral|mistral-(large|medium-\d{4}|saba))/, doesNotThink],
]

/**
 * Most models decide on their own how much they think, and refuse an effort.
 * https://docs.x.ai/developers/model-capabilities/text/reasoning
 */
const xai: readonly Rule[] = [
  [/^grok-3-mini/, { efforts: ['low', 'high'] }],
  [/^grok-4\.3/, { efforts: upTo('high', 'none') }],
  [/^grok-(3|4(?!\.)|4\.20|build|code)/, { efforts: [] }],
]

const families: Readonly<Record<string, readonly Rule[]>> = {
  'anthropic': claude,
  'ark': ark,
  'bedrock': claude,
  'google': combinesTools(gemini, ({ thinking }) => thinking === 'level'),
  'groq': groq,
  'mistral': mistral,
  'openai': openai,
  'openrouter': aggregated,
  'vertex': combinesTools(vertex, () => false),
  'vertex-anthropic': claude,
  'xai': xai,
}

export function traitsOf(provider: string, model: string): ModelTraits | undefined {
  const traits = (families[provider] ?? hosted).find(([family]) => family.test(model))?.[1]
  const mediaTokens = readsMedia(traits) ? mediaTokensOf(provider, model) : undefined
  return mediaTokens === undefined ? traits : { ...traits, mediaTokens }
}

const readsMedia = (traits: ModelTraits | undefined): boolean => traits?.reads?.some(kind => kind !== 'text') ?? true

/** Models that do not answer in all the dialects of their provider. */
const inSomeDialects: readonly (readonly [provider: string, family: RegExp, dialects: readonly string[]])[] = [
  ['openai', /^gpt-audio/, ['openai-chat']],
]

export function dialectsOf(provider: string, model: string): readonly string[] | undefined {
  return inSomeDialects.find(([of, family]) => of === provider && family.test(model))?.[2]
}
