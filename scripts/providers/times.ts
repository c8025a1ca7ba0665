// Timeouts of models that take longer than others, by family: rules over their ids; the first rule that matches
// applies. Only models about which the vendor says so.
//
// OpenAI: according to the guide to background mode, reasoning models think for several minutes; in the guide to deep
// research a client waits for an hour. Anthropic: the API reference recommends streams for calls of more than ten
// minutes, and hidden thoughts are not sent. xAI: the examples of the guide to reasoning wait for an hour. Perplexity:
// according to the page of the model, a research takes minutes. Timeouts of all models of a provider (DeepSeek queues
// calls for up to ten minutes, Ollama loads a model for up to five) are in the head of its file.

import type { FileModel, FileTimes } from './sources.ts'

/** In seconds, like in provider files. */
type Rule = readonly [family: RegExp, times: FileTimes | undefined]

/** Models whose thoughts are hidden, also between two parts of the answer. */
const thinking: FileTimes = { firstContentSeconds: 300, betweenChunksSeconds: 300, totalSeconds: 1_800 }
const researching: FileTimes = { firstContentSeconds: 1_800, betweenChunksSeconds: 1_800, totalSeconds: 3_600 }
const thinkingLong: FileTimes = { firstContentSeconds: 900, betweenChunksSeconds: 900, totalSeconds: 3_600 }

const openai: readonly Rule[] = [
  [/deep-research/, researching],
  [/^(o\d|gpt-\d(\.\d)?)-pro/, thinkingLong],
  [/chat-latest|nano/, undefined],
  [/^(o\d|gpt-[56])/, thinking],
]

/** Models whose streams send keep-alive events while they think. */
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
