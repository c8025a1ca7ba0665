// Writes lists of models in the form that Anthropic's clients read.

import type { Effort, ModelTraits } from '../../base/money/model-traits.ts'
import type { ListedModel } from '../listed-model.ts'
import { unknownDate, writesOnce } from '../listed-model.ts'

function buildModelInfo({
  id,
  name,
  contextTokens,
  outputTokensMax,
  traits,
  passthroughDialects,
}: ListedModel): object {
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
    capabilities: traits?.reads === undefined || passthroughDialects ? null : listCapabilities(traits),
    ...(passthroughDialects && { speaks: passthroughDialects }),
  }
}

const capability = (supported: boolean): object => ({ supported })

/** A capability that is not known counts as not supported. */
function listCapabilities(traits: ModelTraits): object {
  const { reads = [], thinking = 'none', efforts = [], searches = false } = traits
  const takesEffort = (effort: Effort): object => capability(efforts.includes(effort))
  return {
    batch: capability(false),
    citations: capability(false),
    code_execution: capability(false),
    context_management: {
      ...capability(false),
      clear_thinking_20251015: null,
      clear_tool_uses_20250919: null,
      compact_20260112: null,
    },
    effort: {
      ...capability(efforts.length > 0),
      low: takesEffort('low'),
      medium: takesEffort('medium'),
      high: takesEffort('high'),
      xhigh: takesEffort('xhigh'),
      max: takesEffort('max'),
    },
    image_input: capability(reads.includes('image')),
    pdf_input: capability(reads.includes('file')),
    server_tools: { ...capability(searches), code_execution: capability(false), web_search: capability(searches) },
    structured_outputs: capability(traits.schema !== false),
    thinking: {
      ...capability(thinking !== 'none'),
      types: {
        adaptive: capability(thinking === 'adaptive' || thinking === 'either'),
        between_tools: capability(false),
        disabled: capability(traits.stopsThinking !== false),
        enabled: capability(thinking !== 'none' && thinking !== 'adaptive'),
      },
    },
  }
}

export const writeModel = writesOnce(buildModelInfo)

export function writeModelList(models: readonly ListedModel[], hasMore: boolean): string {
  const [first, last] = [models[0]?.id ?? null, models.at(-1)?.id ?? null].map(id => JSON.stringify(id))
  return `{"data":[${models.map(writeModel).join()}],"has_more":${hasMore},"first_id":${first},"last_id":${last}}`
}
