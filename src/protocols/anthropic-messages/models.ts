// Lists of models, as Anthropic's clients read them.

import type { Effort, Traits } from '../../base/money/model-traits.ts'
import type { ListedModel } from '../listed-model.ts'
import { unknownDate } from '../listed-model.ts'

export function modelInfo({ id, name, contextTokens, outputTokensMax, traits, sideOnly }: ListedModel): object {
  return {
    type: 'model',
    id,
    display_name: name,
    created_at: unknownDate.text,
    lifecycle: 'active',
    line: null,
    max_input_tokens: contextTokens ?? null,
    max_tokens: outputTokensMax ?? null,
    deprecated_at: null,
    retires_at: null,
    capabilities: traits?.reads === undefined || sideOnly ? null : capabilitiesOf(traits),
    ...(sideOnly && { speaks: sideOnly }),
  }
}

const can = (supported: boolean): object => ({ supported })

/** What nobody knows is not promised. */
function capabilitiesOf(traits: Traits): object {
  const { reads = [], thinking = 'none', efforts = [], searches = false } = traits
  const knows = (effort: Effort): object => can(efforts.includes(effort))
  return {
    batch: can(false),
    citations: can(false),
    code_execution: can(false),
    context_management: {
      ...can(false),
      clear_thinking_20251015: null,
      clear_tool_uses_20250919: null,
      compact_20260112: null,
    },
    effort: {
      ...can(efforts.length > 0),
      low: knows('low'),
      medium: knows('medium'),
      high: knows('high'),
      xhigh: knows('xhigh'),
      max: knows('max'),
    },
    image_input: can(reads.includes('image')),
    pdf_input: can(reads.includes('file')),
    server_tools: { ...can(searches), code_execution: can(false), web_search: can(searches) },
    structured_outputs: can(traits.schema !== false),
    thinking: {
      ...can(thinking !== 'none'),
      types: {
        adaptive: can(thinking === 'adaptive' || thinking === 'either'),
        between_tools: can(false),
        disabled: can(traits.stopsThinking !== false),
        enabled: can(thinking !== 'none' && thinking !== 'adaptive'),
      },
    },
  }
}

export function writeModelList(models: readonly ListedModel[], hasMore: boolean): string {
  return JSON.stringify({
    data: models.map(modelInfo),
    has_more: hasMore,
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
  })
}
