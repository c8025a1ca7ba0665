// Prices written by hand, for providers that the price data lacks, has wrong, or has only in a converted currency. Each
// names its source and the day it was read. A model without a source is left out and not served.
//
// If a vendor's price depends on something that the format cannot express (the length of the answer, whether the model
// thinks), or if sources disagree, the higher price is used. For the same reason, "k" in a price list means 1,000 tokens.

import type { FileCase, FilePrice } from './prices.ts'

// The exchange rate for prices in yuan. The market rate was 6.76 in June 2026, the last verified day, and the yuan was
// rising. The difference prevents charges that are lower than the bill in yuan.
export const CNY = { code: 'CNY', unitsPerUsd: '6.60' }

/** Applies above this number of input tokens. */
type Tier = readonly [above: number, input: number, output: number, cacheRead?: number]

function yuan(source: string, ...tiers: readonly [Tier, ...Tier[]]): FilePrice {
  return { ...tiered(tiers.map(tier => [tier[0], rates(tier)] as const)), currency: CNY, source }
}

/**
 * Alibaba bills tokens of its automatic cache at a fifth of the input, and tokens that a caller caches at five
 * quarters.
 */
function qwen(source: string, ...tiers: readonly [Tier, ...Tier[]]): FilePrice {
  const withCache = tiers.map(([above, input, output]) => {
    const cached = { cacheRead: text(input / 5), cacheWrite: text(input * 1.25) }
    return [above, { ...rates([above, input, output]), ...cached }] as const
  })
  return { ...tiered(withCache), currency: CNY, source }
}

function usd(source: string, ...tier: Tier): FilePrice {
  return { ...rates(tier), source }
}

type BaseRates = Pick<FilePrice, 'input' | 'output' | 'cacheRead' | 'cacheWrite'>

function rates([, input, output, cacheRead]: Tier): BaseRates {
  return { input: text(input), output: text(output), ...(cacheRead !== undefined && { cacheRead: text(cacheRead) }) }
}

function tiered(tiers: readonly (readonly [above: number, rates: BaseRates])[]): FilePrice {
  const [[, base], ...others] = tiers as [(typeof tiers)[0], ...typeof tiers]
  const cases = others.map(([inputAbove, rates]): FileCase => ({ inputAbove, ...rates }))
  return { ...base, ...(cases.length > 0 && { cases }) }
}

/** As a decimal text. Six places are more than any list has, and remove binary fractions. */
const text = (price: number): string => String(Number(price.toFixed(6)))

const ARK = 'volcengine.com/docs/82379/1544106 (Ark model prices), by public copies of it; read 2026-11-15'
const BAILIAN = 'help.aliyun.com/zh/model-studio/model-pricing (Beijing), by public copies of it; read 2026-11-15'
const QWEN_PLUS = `${BAILIAN}; output in thinking mode (8, 24, 64) as remembered, on no page that was read`
const BAILIAN_DEARER = `${BAILIAN}; copies differ above 256k, the dearer taken`
const BIGMODEL = 'docs.bigmodel.cn/cn/guide/start/pricing; read 2026-11-15'
const BIGMODEL_COPIES = 'open.bigmodel.cn/pricing, by public copies of it; read 2026-11-15'
const BIGMODEL_DATA = 'open.bigmodel.cn/pricing, as @pydantic/genai-prices 0.1.8 has it at 7.25 CNY; read 2026-11-15'
const DEEPSEEK = 'api-docs.deepseek.com/quick_start/pricing; read 2026-11-15. Weekends are cheaper than this says'
const HUGGING_FACE = 'the price that Hugging Face passes on, in @pydantic/genai-prices 0.1.8; read 2026-11-15'
const MODELS_DEV = 'models.dev, as mastra.ai/models/providers/deepinfra lists it; read 2026-11-15'
const SAMBANOVA = 'cloud.sambanova.ai/plans/pricing, transcribed 2026-10-07'
const SILICONFLOW = 'siliconflow.cn/pricing, by public copies of 2026-02-09'
const SILICONFLOW_OLD = 'siliconflow.cn/zh-cn/models, by a public copy of July 2025'
const STEPFUN = 'platform.stepfun.com/docs/zh/guides/pricing/details, transcribed 2026-10-07'
const ZAI = 'docs.z.ai/guides/overview/pricing: the list price; the price data has the half price of the launch weeks'

const flash: FilePrice = {
  input: '0.15',
  output: '0.60',
  cacheRead: '0.003',
  cases: (
    [
      ['01:00', '04:00'],
      ['06:00', '10:00'],
    ] as const
  ).map((hours): FileCase => ({ hours, input: '0.30', output: '1.20', cacheRead: '0.006' })),
  source: DEEPSEEK,
}

const seed16 = yuan(ARK, [0, 0.8, 8, 0.16], [32_000, 1.2, 16, 0.16], [128_000, 2.4, 24, 0.16])

/** By provider file, then by model. */
export const handPrices: Readonly<Record<string, Readonly<Record<string, FilePrice>>>> = {
  ark: {
    'deepseek-v3-2-251201': yuan(ARK, [0, 2, 3, 0.4], [32_000, 4, 6, 0.4]),
    'doubao-seed-1-6-251015': seed16,
    'doubao-seed-1-6-flash-250828': yuan(ARK, [0, 0.15, 1.5, 0.03], [32_000, 0.3, 3, 0.03], [128_000, 0.6, 6, 0.03]),
    'doubao-seed-1-6-thinking-250715': seed16,
    'doubao-seed-1-8-251228': seed16,
    'doubao-seed-2-0-lite-260215': yuan(ARK, [0, 0.6, 3.6, 0.12], [32_000, 0.9, 5.4, 0.18], [128_000, 1.8, 10.8, 0.36]),
    'doubao-seed-2-0-mini-260215': yuan(ARK, [0, 0.2, 2, 0.04], [32_000, 0.4, 4, 0.08], [128_000, 0.8, 8, 0.16]),
    'doubao-seed-2-0-pro-260215': yuan(ARK, [0, 3.2, 16, 0.64], [32_000, 4.8, 24, 0.96], [128_000, 9.6, 48, 1.92]),
    'doubao-seed-2-1-pro-260628': yuan(ARK, [0, 6, 30, 1.2]),
  },
  dashscope: {
    'qwen-flash': qwen(BAILIAN, [0, 0.15, 1.5], [128_000, 0.6, 6], [256_000, 1.2, 12]),
    'qwen-long': qwen(BAILIAN, [0, 0.5, 2]),
    'qwen-max': qwen(BAILIAN, [0, 2.4, 9.6]),
    // The price of output in thinking mode, because a price cannot distinguish it from other output.
    'qwen-plus': qwen(QWEN_PLUS, [0, 0.8, 8], [128_000, 2.4, 24], [256_000, 4.8, 64]),
    'qwen-turbo': qwen(BAILIAN, [0, 0.3, 3]),
    'qwen-vl-plus': qwen(BAILIAN, [0, 0.8, 2]),
    'qwen3-coder-plus': qwen(BAILIAN, [0, 4, 16], [32_000, 6, 24], [128_000, 10, 40], [256_000, 20, 200]),
    // One copy of the list has the price from before April 2026, which was higher.
    'qwen3-max': qwen(BAILIAN, [0, 3.2, 12.8], [32_000, 6.4, 25.6], [128_000, 9.6, 38.4]),
    'qwen3-vl-plus': qwen(BAILIAN, [0, 1, 10], [32_000, 1.5, 15], [128_000, 3, 30]),
    'qwen3.5-flash': qwen(BAILIAN, [0, 0.2, 2], [128_000, 0.8, 8], [256_000, 1.2, 12]),
    'qwen3.5-plus': qwen(BAILIAN, [0, 0.8, 4.8], [128_000, 2, 12], [256_000, 4, 24]),
    'qwen3.6-flash': qwen(BAILIAN, [0, 1.2, 7.2], [256_000, 4.8, 28.8]),
    'qwen3.6-plus': qwen(BAILIAN, [0, 2, 12], [256_000, 8, 48]),
    'qwen3.7-plus': qwen(BAILIAN_DEARER, [0, 2, 8], [256_000, 6, 24]),
    'qwen3.8-max': qwen(BAILIAN, [0, 12, 36]),
  },
  deepinfra: {
    'deepseek-ai/DeepSeek-V3.2': usd(MODELS_DEV, 0, 0.26, 0.38),
    'openai/gpt-oss-120b': usd(MODELS_DEV, 0, 0.05, 0.24),
    'openai/gpt-oss-20b': usd(MODELS_DEV, 0, 0.03, 0.14),
  },
  deepseek: { 'deepseek-flash': flash, 'deepseek-v4-flash': flash },
  openrouter: { 'z-ai/glm-5.3-flash': usd(ZAI, 0, 0.15, 0.5, 0.03) },
  sambanova: {
    'DeepSeek-V3.1': usd(SAMBANOVA, 0, 3, 4.5),
    'DeepSeek-V3.2': usd(SAMBANOVA, 0, 3, 4.5),
    'Meta-Llama-3.3-70B-Instruct': usd(HUGGING_FACE, 0, 0.6, 1.2),
    'MiniMax-M3': usd(SAMBANOVA, 0, 0.6, 2.4, 0.06),
    'gpt-oss-120b': usd(HUGGING_FACE, 0, 0.22, 0.59),
  },
  siliconflow: {
    'Qwen/Qwen3-Coder-480B-A35B-Instruct': yuan(SILICONFLOW, [0, 8, 16]),
    'baidu/ERNIE-4.5-300B-A47B': yuan(SILICONFLOW_OLD, [0, 2, 8]),
    'deepseek-ai/DeepSeek-R1': yuan(SILICONFLOW, [0, 4, 16]),
    'deepseek-ai/DeepSeek-V3.2': yuan(SILICONFLOW, [0, 2, 3]),
  },
  stepfun: {
    'step-3.5-flash': yuan(STEPFUN, [0, 0.7, 2.1, 0.14]),
    'step-3.5-flash-2603': yuan(STEPFUN, [0, 0.7, 2.1, 0.14]),
    'step-3.7-flash': yuan(STEPFUN, [0, 1.35, 8.1, 0.27]),
  },
  zai: { 'glm-5.3-flash': usd(ZAI, 0, 0.15, 0.5, 0.03) },
  zhipu: {
    'glm-4-air': yuan(BIGMODEL_DATA, [0, 0.5, 0.5, 0.25]),
    'glm-4-airx': yuan(BIGMODEL_DATA, [0, 10, 10]),
    'glm-4-flashx-250414': yuan(BIGMODEL_DATA, [0, 0.1, 0.1, 0.05]),
    'glm-4-long': yuan(BIGMODEL_DATA, [0, 1, 1, 0.5]),
    'glm-4-plus': yuan(BIGMODEL_DATA, [0, 5, 5, 2.5]),
    'glm-4.5-air': yuan(BIGMODEL_COPIES, [0, 0.8, 6, 0.16], [32_000, 1.2, 8, 0.24]),
    'glm-4.7': yuan(BIGMODEL_COPIES, [0, 3, 14, 0.6], [32_000, 4, 16, 0.8]),
    'glm-4.7-flashx': yuan(BIGMODEL_DATA, [0, 0.5, 3, 0.1]),
    'glm-5': yuan(BIGMODEL_COPIES, [0, 4, 18, 1], [32_000, 6, 22, 1.5]),
    'glm-5-turbo': yuan(BIGMODEL_COPIES, [0, 5, 22, 1.2], [32_000, 7, 26, 1.8]),
    'glm-5.1': yuan(BIGMODEL_COPIES, [0, 6, 24, 1.3], [32_000, 8, 28, 2]),
    'glm-5.2': yuan(BIGMODEL_DATA, [0, 8, 28, 2]),
    'glm-5.3': yuan(BIGMODEL, [0, 8, 28, 2]),
    'glm-5.3-flash': yuan(BIGMODEL, [0, 0.8, 2.8, 0.23]),
  },
}
