// Known output limits of vendors, by family. They take precedence over those of the catalogue, which has some wrong
// limits and few dated names. Only certain limits are listed: with a limit that is too low, the hold of a call would be
// too small.

import { catalogueLimits } from './output-limits.ts'
import type { FileModel } from './sources.ts'

/** 'context': the only limit is that prompt and answer together fit into the context. */
type Known = readonly [family: RegExp, output: number | 'context']

const openai: readonly Known[] = [
  [/^gpt-3\.5-turbo-16k/, 'context'],
  [/^gpt-3\.5/, 4_096],
  [/^gpt-4(-0613)?$/, 8_192],
  [/^gpt-4-(turbo|0125|1106)/, 4_096],
  [/^gpt-4\.1/, 32_768],
  [/^gpt-4o-2024-05-13$/, 4_096],
  [/^gpt-(4o|audio)/, 16_384],
  [/^gpt-5(\.[123])?-chat-latest$/, 16_384],
  [/^gpt-[56]/, 128_000],
  [/^o[134]/, 100_000],
]

const google: readonly Known[] = [
  [/^gemini-2\.0/, 8_192],
  [/^gemini-(2\.5|3)/, 65_536],
]

const claude: readonly Known[] = [
  [/-4-5/, 64_000],
  [/-(5|4-[678])/, 128_000],
  [/opus-4/, 32_000],
  [/sonnet-4/, 64_000],
]

const known: Readonly<Record<string, readonly Known[]>> = {
  anthropic: claude,
  bedrock: claude,
  'vertex-anthropic': claude,
  vertex: google,
  ark: [[/^doubao-seed-2/, 131_072]],
  openai,
  google,
  deepseek: [
    [/^deepseek-v4/, 393_216],
    [/^deepseek-(chat|reasoner)$/, 'context'],
  ],
  groq: [
    [/\/kimi-k2/, 16_384],
    [/\/llama-4-/, 8_192],
    [/\/llama-guard-4-/, 1_024],
    [/\/qwen3-32b$/, 40_960],
  ],
  mistral: [
    // Its context is not in the data; the largest of the family is used.
    [/^magistral-small-latest$/, 262_144],
    [/./, 'context'],
  ],
  minimax: [[/^MiniMax-M2/, 131_072]],
  moonshot: [[/./, 'context']],
  xai: [[/./, 'context']],
  zhipu: [
    [/^glm-4\.5-air$/, 98_304],
    [/^glm-(4\.7|5)/, 131_072],
  ],
  openrouter: [
    ...under('openai', openai),
    ...under('google', google),
    [/^anthropic\/claude-opus-(4\.[678]|5)-fast$/, 128_000],
  ],
}

const knownContexts: readonly (readonly [provider: string, family: RegExp, tokens: number])[] = [
  ['mistral', /^mistral-saba-/, 32_768],
  ['mistral', /^(ministral-8b-2410|mistral-large-24\d\d|pixtral-.*)$/, 131_072],
  ['google', /^gemini-3-pro-preview$/, 1_048_576],
  ['vertex', /^gemini-(2\.5|3|3\.1)-pro/, 1_048_576],
  ['groq', /\/llama-4-scout-/, 131_072],
]

/** Adds the limits that the source of the model does not have. An answer is never longer than the context. */
export function withLimits(model: FileModel, provider: string): FileModel {
  const [catalogued, context] = catalogueLimits[provider]?.[model.id.replace(/:.*$/, '')] ?? []
  const byFamily = knownContexts.find(([of, family]) => of === provider && family.test(model.id))?.[2]
  const contextTokens = model.contextTokens ?? context ?? byFamily
  const rule = known[provider]?.find(([family]) => family.test(model.id))?.[1]
  const output = model.outputTokensMax ?? (rule === 'context' ? contextTokens : (rule ?? catalogued))
  const { id, name, speaks, price, traits } = model
  return {
    id,
    ...(name !== undefined && { name }),
    ...(contextTokens !== undefined && { contextTokens }),
    ...(output !== undefined && { outputTokensMax: Math.min(output, contextTokens ?? output) }),
    ...(speaks && { speaks }),
    ...(price && { price }),
    ...(traits && { traits }),
  }
}

/** The same families, as aggregators write their names. */
function under(vendor: string, families: readonly Known[]): readonly Known[] {
  return families.map(([family, output]) => [new RegExp(`^${vendor}/${family.source.slice(1)}`), output] as const)
}
