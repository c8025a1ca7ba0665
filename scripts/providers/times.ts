// How long models may take that are known to take longer than others, by family: rules over their ids, of which the
// first that fits holds. Only where a vendor says so itself.
//
// OpenAI: the guide to its background mode has reasoning models think for several minutes, and its guide to deep
// research lets a client wait for an hour. Anthropic: its API reference wants streams for what may take longer than ten
// minutes, and thoughts that are not shown are not sent. xAI: the examples of its guide to reasoning wait for an hour.
// Perplexity: its page of the model has a research take minutes. What holds for all models of a provider (DeepSeek lets
// calls wait ten minutes for their turn, Ollama loads a model for up to five) stands in the head of its file.

import type { FileModel, FileTimes } from './sources.ts'

/** In seconds, as provider files have them. */
type Rule = readonly [family: RegExp, times: FileTimes | undefined]

/** Thinks unseen, and again between two things that it says. */
const thinking: FileTimes = { firstContentSeconds: 300, betweenChunksSeconds: 300, totalSeconds: 1_800 }
const researching: FileTimes = { firstContentSeconds: 1_800, betweenChunksSeconds: 1_800, totalSeconds: 3_600 }
const thinkingLong: FileTimes = { firstContentSeconds: 900, betweenChunksSeconds: 900, totalSeconds: 3_600 }

const openai: readonly Rule[] = [
  [/deep-research/, researching],
  [/^(o\d|gpt-\d(\.\d)?)-pro/, thinkingLong],
  [/chat-latest|nano/, undefined],
  [/^(o\d|gpt-[56])/, thinking],
]

/** Its streams tell that they live while it thinks. */
const claude: readonly Rule[] = [
  [/(opus|sonnet)-(4[-.][5-9]|5)|fable-5/, { firstContentSeconds: 300, totalSeconds: 1_800 }],
]

const families: Readonly<Record<string, readonly Rule[]>> = {
  anthropic: claude,
  bedrock: claude,
  openai,
  openrouter: [
    [/^perplexity\/sonar-deep-research/, researching],
    [/^anthropic\/claude-(opus|sonnet)-(4\.[5-9]|5)/, thinking],
    ...openai.map(([family, times]): Rule => [new RegExp(family.source.replace(/^\^/, '^openai/')), times]),
  ],
  perplexity: [[/deep-research/, researching]],
  'vertex-anthropic': claude,
  xai: [
    [/non-reasoning|fast/, undefined],
    [/^grok-(4|latest)/, thinkingLong],
  ],
}

export function withTimes({ times: found, ...model }: FileModel, provider: string): FileModel {
  const times = families[provider]?.find(([family]) => family.test(model.id))?.[1] ?? found
  return { ...model, ...(times && { times }) }
}
