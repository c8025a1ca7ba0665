// Models that do not chat: their dialects, and their prices if the price data has them.

import type { ModelInfo, ModelPrice, Provider } from '@pydantic/genai-prices'
import { formatUsd, nanos } from '../../src/base/money/money.ts'
import { dataRates, listedRate } from '../../src/billing/price-check.ts'
import { CNY } from './hand.ts'
import type { FilePrice } from './prices.ts'
import type { FileModel } from './sources.ts'

interface Side {
  /** The provider in the price data; absent if the data has none of these models. */
  readonly from?: string
  readonly models: readonly (readonly [dialects: readonly string[], ids: readonly string[]])[]
  /** Prices that are missing in the price data. */
  readonly prices?: Readonly<Record<string, FilePrice>>
  /** Models that are free according to their provider. */
  readonly free?: readonly string[]
}

const pictures = ['openai-images', 'openai-image-edits']

/** Models whose cost depends on sound, size or images in a way that a price cannot express. */
const films = [
  ...['doubao-seedance-1-0-lite-i2v-250428', 'doubao-seedance-1-0-lite-t2v-250428', 'doubao-seedance-1-0-pro-250528'],
  ...['doubao-seedance-1-0-pro-fast-251015', 'doubao-seedance-1-5-pro-251215', 'doubao-seedance-2-0-260128'],
  'doubao-seedance-2-0-fast-260128',
]

const sides: Readonly<Record<string, Side>> = {
  openai: {
    from: 'openai',
    models: [
      [['openai-completions'], ['gpt-3.5-turbo-instruct']],
      [['openai-embeddings'], ['text-embedding-3-large', 'text-embedding-3-small', 'text-embedding-ada-002']],
      [pictures, ['gpt-image-1', 'gpt-image-1-mini', 'gpt-image-1.5', 'gpt-image-2']],
      [['openai-speech'], ['gpt-4o-mini-tts']],
      [['openai-transcription'], ['gpt-4o-mini-transcribe', 'gpt-4o-transcribe', 'whisper-1']],
      [['openai-moderations'], ['omni-moderation-latest']],
    ],
    free: ['omni-moderation-latest'],
  },
  google: { from: 'google', models: [[['gemini-batch-embed', 'gemini-embed'], ['gemini-embedding-001']]] },
  groq: { from: 'groq', models: [[['openai-transcription'], ['whisper-large-v3', 'whisper-large-v3-turbo']]] },
  mistral: { from: 'mistral', models: [[['openai-embeddings'], ['mistral-embed']]] },
  // Most have no price. An operator who knows one can set it.
  ark: {
    prices: {
      'doubao-embedding-large-text-250515': {
        input: '0.7',
        output: '0',
        currency: CNY,
        source: "volcengine.com, Ark's page of this model, by a public copy of it; read 2026-11-17",
      },
      'doubao-embedding-vision-250615': {
        input: '0.7',
        output: '0',
        inputImage: '1.8',
        currency: CNY,
        source: "volcengine.com, Ark's page of this model, by a public copy of it; read 2026-11-16",
      },
    },
    models: [
      [['ark-embeddings'], ['doubao-embedding-large-text-250515']],
      [['ark-multimodal-embeddings'], ['doubao-embedding-vision-250615']],
      [['ark-images'], ['doubao-seedream-4-0-250828']],
      [['ark-tasks'], films],
    ],
  },
}

export interface SideModel extends FileModel {
  readonly speaks: readonly string[]
  readonly free?: boolean
}

/** The models of a provider file that do not chat. */
export function sideModels(id: string, priceData: ReadonlyMap<string, Provider>): readonly SideModel[] {
  const side = sides[id]
  if (side === undefined) return []
  const known = side.from === undefined ? [] : (priceData.get(side.from)?.models ?? [])
  return side.models.flatMap(([speaks, ids]) =>
    ids.map(model => {
      const found = known.find(one => one.id === model)
      const price = side.prices?.[model] ?? (found && priceOf(found))
      const isFree = side.free?.includes(model) === true
      return {
        id: model,
        ...(found?.context_window !== undefined && { contextTokens: found.context_window }),
        speaks,
        ...(isFree && { free: true }),
        ...(price && !isFree && { price }),
      }
    }),
  )
}

/** Output of models that only read is free. Prices per hour of sound become prices per second. */
function priceOf({ prices }: ModelInfo): FilePrice | undefined {
  if (Array.isArray(prices)) return undefined
  const rates: Record<string, string> = {}
  for (const [name, value] of Object.entries(prices as ModelPrice)) {
    if (name === 'audio_hours') continue // the same as the rate of audio input; a price never has both
    const rate = dataRates[name]
    if (rate === undefined || typeof value !== 'number') return undefined
    rates[rate[0]] = formatUsd(nanos(listedRate(value / rate[1])))
  }
  return Object.keys(rates).length === 0 ? undefined : { input: '0.00', output: '0.00', ...rates }
}
