// Where the model list of a provider file comes from, one row for each provider that the price data knows.
// A provider without a row keeps the models written in its file.

import type { FilePrice } from './prices.ts'

export interface FileModel {
  readonly id: string
  readonly name?: string
  readonly contextTokens?: number
  readonly outputTokensMax?: number
  readonly price?: FilePrice
}

export interface Source {
  /** Providers of the price data. */
  readonly from: readonly string[]
  /** Of their ids, only these, and not those. */
  readonly only?: RegExp
  readonly skip?: RegExp
  /** Ids that the price data knows by a pattern and not by name. */
  readonly also?: readonly string[]
  /** The id on the wire, where it is not the data's own. */
  readonly wireId?: (id: string, from: string) => string
  /** An alias costs at least what it points to today. */
  readonly atLeast?: Readonly<Record<string, string>>
  /** For an aggregator: whose models are kept, and which provider of the price data is their maker. */
  readonly makers?: Readonly<Record<string, string | undefined>>
  readonly modelsMax?: number
  /** Listed by hand, in place of what the price data lists. */
  readonly hand?: readonly FileModel[]
}

const anyOf = (...parts: readonly RegExp[]): RegExp => new RegExp(parts.map(part => part.source).join('|'))

export const sources: Readonly<Record<string, Source>> = {
  baseten: { from: ['baseten'] },
  cerebras: { from: ['cerebras'] },
  deepseek: {
    from: ['deepseek'],
    // The vendor took "deepseek-chat" and "deepseek-reasoner" away in July 2026; the data still has their old price.
    only: /^deepseek-v4-pro$/,
    // The second is a name that the V4.1 model took over.
    hand: ['deepseek-flash', 'deepseek-v4-flash'].map(id => ({
      id,
      name: 'DeepSeek V4.1 Flash',
      contextTokens: 1_000_000,
      outputTokensMax: 393_216,
    })),
  },
  fireworks: { from: ['fireworks'], only: /^accounts\// },
  google: { from: ['google'], only: /^gemini-[2-9]/, skip: /:|-exp|-preview-\d|-text-|-latest|omni/ },
  groq: {
    from: ['groq'],
    skip: /^(deepseek-r1|gemma|llama-3\.1-(405|70)b|llama-3\.2|llama-guard-3|llama2|llama3-|mi[sx]tral)|specdec/,
  },
  // What Hugging Face passes on is this host's own price.
  hyperbolic: { from: ['huggingface_hyperbolic'], only: /Instruct|-0\d\d\d$|^openai/, skip: /VL-|-fast$/ },
  huggingface: {
    // Its router takes "model:host"; without a host it chooses one, at whatever that one's price is.
    from: ['cerebras', 'fireworks-ai', 'groq', 'novita', 'nscale', 'ovhcloud', 'publicai', 'together'].map(
      host => `huggingface_${host}`,
    ),
    only: /^openai\/|\/.*[A-Z]/,
    skip: /-fast$/,
    wireId: (id, from) => `${id}:${from.slice('huggingface_'.length)}`,
  },
  minimax: { from: ['minimax'], only: /^MiniMax-/, also: ['MiniMax-M3'] },
  mistral: {
    from: ['mistral'],
    only: /-(latest|\d{4})$|^mistral-medium-3-5$/,
    skip: /-2312$/,
    also: ['magistral-medium-latest', 'magistral-small-latest'],
    atLeast: { 'mistral-small-latest': 'mistral-small-2603' },
  },
  moonshot: { from: ['moonshotai'] },
  novita: {
    from: ['novita'],
    skip: /l2-|llama2|airoboros|dolphin|midnight|openchat|openhermes|sao10k|wizardlm/i,
  },
  openai: {
    from: ['openai'],
    // Base models, names of other clouds and of chat products, and whatever answers on another path only.
    skip: anyOf(
      /^(ada|babbage|curie|davinci|text-|ft:|computer-use|codex|chatgpt|gpt-35|gpt-3\.5-0301|gpt-5-\d(-|$))/,
      /^(gpt-3\.5-turbo(-16k)?-(0301|0613)|gpt-4-(32k|0314|turbo-0125)|gpt-4\.5|o1-(mini|preview))/,
      /[.:]ft-|:extended|instruct|vision|search|codex|deep-research|-pro(-|$)|-high$|gpt-5\.1-mini|-chat$|^gpt-5\.3$/,
    ),
    also: ['gpt-5-nano-2025-08-07'],
  },
  openrouter: {
    from: ['openrouter'],
    // Variants (":free", ":batch") and moving names ("~…-latest") have prices of their own.
    only: /^[a-z0-9-]+\/[^:]+$/,
    skip: anyOf(
      // Dated names of models that are listed without the date, and older or special models.
      /-20\d{6}$|-\d{4}-\d\d-\d\d$|-preview-\d|-0\d-\d\d$|-0\d-2024$|-beta$/,
      /search|deep-research|customtools|multi-agent|audio/,
      /\/(gpt-(3\.5|4-|4$|4\.5|5.*-(chat|pro)|6.*-pro|oss-safe)|chatgpt|.*codex|o1|o3-pro|.*-high$)/,
      /\/(claude-(\d|opus-4$|sonnet-4$)|gemini-(flash|pro|2\.0|2.*-preview$|.*-lite-preview$)|gemma-[23]|palm|learnlm)/,
      /\/(deepseek-(chat|r1$|.*exp)|.*distill|qwen-|qwen2|qwq|qwen3-(8b|14b|30b|32b|vl|.*-25\d\d$)|kimi-k2(-0905)?$)/,
      /\/(glm-.*v$|grok-2|minimax-(01|m1|.*her)|mixtral|pixtral|ministral-[38]b$|codestral-(2501|mamba))/,
      /\/(mistral-(7b|large$|large-2407|medium$|nemo|saba|small($|-24b|-3)|tiny)|command(-r|-r-plus)?$)/,
      /\/(llama-[23]-|llama-3\.[12]|llama-guard|llama-.*nemotron|nemotron-nano)/,
    ),
    // Those whose own price has tiers or hours are named; the list of an aggregator seldom has them.
    makers: {
      'anthropic': 'anthropic',
      'openai': 'openai',
      'google': 'google',
      'deepseek': 'deepseek',
      'moonshotai': undefined,
      'z-ai': undefined,
      'x-ai': 'x-ai',
      'minimax': 'minimax',
      'mistralai': undefined,
      'meta-llama': undefined,
      'nvidia': undefined,
      'amazon': undefined,
      'bytedance-seed': undefined,
      'xiaomi': undefined,
      'stepfun': undefined,
      'tencent': undefined,
      'cohere': undefined,
      'qwen': undefined,
    },
    modelsMax: 150,
    hand: [{ id: 'z-ai/glm-5.3-flash', name: 'GLM 5.3 Flash', contextTokens: 1_310_720 }],
  },
  ovhcloud: { from: ['ovhcloud'] },
  perplexity: { from: ['perplexity'], only: /^sonar/ },
  together: { from: ['together'], only: /^(meta-llama\/.*(Llama-4|3\.[13]-)|mistralai\/Mixtral.*Instruct)/ },
  xai: {
    from: ['x-ai'],
    skip: /\/|^grok-2|-beta$|multi-agent/,
    atLeast: { 'grok-latest': 'grok-4.6' },
  },
  zai: { from: ['zai'], only: /^glm-/ },
  zhipu: {
    from: ['zhipuai'],
    only: /^glm-/,
    skip: /assistant|-\d{8}$/,
  },
}
