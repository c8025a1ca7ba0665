// Finds what the Anthropic API would refuse, in its order and nearly in its words, so that tests find a bad translation.

import type { Json } from '../body-fields.ts'
import { bodyOf, has, recordOf, recordsOf, stringOf } from '../body-fields.ts'
import type { Problem } from '../dialect.ts'
import type { ReceivedRequest } from '../request.ts'
import { isRecord } from '../request.ts'
import { blocksOf, isIssuedBlock, readMessagesRequest } from './request.ts'

const fields = new Set([
  'model',
  'messages',
  'max_tokens',
  'cache_control',
  'container',
  'diagnostics',
  'inference_geo',
  'metadata',
  'output_config',
  'service_tier',
  'speed',
  'stop_sequences',
  'stream',
  'system',
  'thinking',
  'tool_choice',
  'tools',
  'temperature',
  'top_p',
  'top_k',
  'compaction',
  'context_management',
  'fallbacks',
  'mcp_servers',
  'fallback_credit_token',
  'output_format',
  'thread',
])
const SAMPLING_FIELDS = ['temperature', 'top_p', 'top_k']
const VERSION_WITHOUT_SAMPLING = '2026-10-21'
const THINKING_BUDGET_MIN = 1024

const createProblem = (message: string): Problem => ({ message })

export function findMessagesProblem(request: ReceivedRequest): Problem | undefined {
  const body = bodyOf(request)
  if (!isRecord(body)) return createProblem('The request body is not valid JSON.')
  if (!Number.isInteger(body.max_tokens)) {
    return createProblem(
      has(body.max_tokens) ? 'max_tokens: Input should be a valid integer' : 'max_tokens: Field required',
    )
  }
  return findCountProblem(request) ?? findThinkingProblem(body)
}

/** The checks that also apply to the counting of tokens. */
export function findCountProblem(request: ReceivedRequest): Problem | undefined {
  const body = bodyOf(request)
  if (!isRecord(body)) return createProblem('The request body is not valid JSON.')
  if (typeof body.model !== 'string') return createProblem('model: Field required')
  if (!Array.isArray(body.messages)) return createProblem('messages: Field required')
  if (body.messages.length === 0) return createProblem('messages: at least one message is required')
  const extra = Object.keys(body).find(name => !fields.has(name))
  if (extra !== undefined) return createProblem(`${extra}: Extra inputs are not permitted`)
  const sampler = SAMPLING_FIELDS.find(name => has(body[name]))
  if (sampler !== undefined && request.headers.get('anthropic-version') === VERSION_WITHOUT_SAMPLING) {
    return createProblem(`${sampler}: this parameter is not supported in API version ${VERSION_WITHOUT_SAMPLING}`)
  }
  if (Number(body.temperature ?? 0) > 1) return createProblem('temperature: range: 0..1')
  return findToolsProblem(body) ?? findSystemProblem(body.system) ?? findTurnsProblem(request, recordsOf(body.messages))
}

function findToolsProblem(body: Json): Problem | undefined {
  for (const [at, tool] of recordsOf(body.tools).entries()) {
    if (has(tool.type) && tool.type !== 'custom') continue
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(stringOf(tool.name))) {
      return createProblem(`tools.${at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`)
    }
    if (recordOf(tool.input_schema).type !== 'object') {
      return createProblem(`tools.${at}.custom.input_schema.type: Input should be 'object'`)
    }
  }
  if (has(body.tool_choice) && !['auto', 'any', 'tool', 'none'].includes(stringOf(recordOf(body.tool_choice).type))) {
    return createProblem(
      "tool_choice: Input tag does not match any of the expected tags: 'auto', 'any', 'tool', 'none'",
    )
  }
  return undefined
}

function findSystemProblem(system: unknown): Problem | undefined {
  const blocks = recordsOf(system)
  const at = blocks.findIndex(block => stringOf(block.text) === '')
  return at < 0 ? undefined : createProblem('system: text content blocks must be non-empty')
}

function findTurnsProblem(request: ReceivedRequest, messages: readonly Json[]): Problem | undefined {
  const turns = mergeTurns(messages)
  if (turns[0]?.role !== 'user') return createProblem('messages: first message must use the "user" role')
  for (const [at, { role, blocks }] of turns.entries()) {
    const where = `messages.${at}`
    if (!['user', 'assistant', 'system'].includes(role)) {
      return createProblem(`${where}: Unexpected role "${role}". Allowed roles are "user" or "assistant"`)
    }
    if (blocks.length === 0 && at < turns.length - 1)
      return createProblem(`${where}: all messages must have non-empty content`)
    const problem =
      findBlockProblem(blocks, where, request.ordinal) ??
      findOrderProblem(blocks, { where, next: turns[at + 1], before: turns[at - 1] })
    if (problem) return problem
  }
  return readMessagesRequest(request).media.some(media => media.broken)
    ? createProblem('messages: Could not process image: invalid base64 data')
    : undefined
}

interface Turn {
  readonly role: string
  readonly blocks: readonly Json[]
}

/** The API treats neighbouring messages of one role as one turn. */
function mergeTurns(messages: readonly Json[]): readonly Turn[] {
  const turns: { role: string; blocks: Json[] }[] = []
  for (const message of messages) {
    const [last, role] = [turns.at(-1), stringOf(message.role)]
    if (last?.role === role) last.blocks.push(...blocksOf(message))
    else turns.push({ role, blocks: [...blocksOf(message)] })
  }
  return turns
}

function findBlockProblem(blocks: readonly Json[], where: string, ordinal: number): Problem | undefined {
  for (const [at, block] of blocks.entries()) {
    const here = `${where}.content.${at}`
    if (block.type === 'text' && stringOf(block.text) === '') {
      return createProblem(`${where}: text content blocks must be non-empty`)
    }
    if (block.type === 'tool_use') {
      const problem = findCallProblem(block, here)
      if (problem) return problem
    }
    if ((block.type === 'thinking' || block.type === 'redacted_thinking') && !isIssuedBlock(block, ordinal)) {
      const field = block.type === 'thinking' ? 'signature' : 'data'
      return createProblem(`${here}: Invalid \`${field}\` in \`${block.type}\` block`)
    }
  }
  return undefined
}

function findCallProblem(block: Json, here: string): Problem | undefined {
  if (!/^[a-zA-Z0-9_-]+$/.test(stringOf(block.id))) {
    return createProblem(`${here}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`)
  }
  return isRecord(block.input) ? undefined : createProblem(`${here}.tool_use.input: Input should be a valid dictionary`)
}

const listIds = (blocks: readonly Json[], type: string, field: string): readonly string[] =>
  blocks.filter(block => block.type === type).map(block => stringOf(block[field]))

function findOrderProblem(
  blocks: readonly Json[],
  { where, next, before }: { where: string; next: Turn | undefined; before: Turn | undefined },
): Problem | undefined {
  const calls = listIds(blocks, 'tool_use', 'id')
  const answered = new Set(listIds(next?.blocks ?? [], 'tool_result', 'tool_use_id'))
  const missing = calls.filter(id => !answered.has(id))
  if (missing.length > 0) {
    const ids = missing.slice(0, 8).join(', ')
    return createProblem(
      `${where}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids}. Each ` +
        '`tool_use` block must have a corresponding `tool_result` block in the next message.',
    )
  }
  if (new Set(calls).size < calls.length) return createProblem(`${where}: \`tool_use\` ids must be unique`)
  const results = listIds(blocks, 'tool_result', 'tool_use_id')
  const known = new Set(listIds(before?.blocks ?? [], 'tool_use', 'id'))
  const stray = results.find(id => !known.has(id))
  if (stray !== undefined)
    return createProblem(`${where}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray}`)
  if (new Set(results).size < results.length) return createProblem(`${where}: each tool_use must have a single result`)
  const isLate = results.length > 0 && blocks.slice(0, results.length).some(block => block.type !== 'tool_result')
  return isLate ? createProblem(`${where}: \`tool_result\` blocks must come before any other content`) : undefined
}

function findThinkingProblem(body: Json): Problem | undefined {
  const thinking = recordOf(body.thinking)
  if (thinking.type !== 'enabled') return undefined
  const budget = thinking.budget_tokens
  if (!Number.isInteger(budget) || Number(budget) < THINKING_BUDGET_MIN) {
    return createProblem(
      `thinking.enabled.budget_tokens: Input should be greater than or equal to ${THINKING_BUDGET_MIN}`,
    )
  }
  if (Number(body.max_tokens) <= Number(budget)) {
    return createProblem('`max_tokens` must be greater than `thinking.budget_tokens`')
  }
  if (['any', 'tool'].includes(stringOf(recordOf(body.tool_choice).type))) {
    return createProblem('Thinking may not be enabled when tool_choice forces tool use.')
  }
  if (has(body.temperature) && body.temperature !== 1) {
    return createProblem('`temperature` may only be set to 1 when thinking is enabled.')
  }
  const turns = mergeTurns(recordsOf(body.messages))
  const [calling, last] = [turns.at(-2), turns.at(-1)]
  const first = calling?.blocks[0]?.type
  const inLoop = last?.blocks[0]?.type === 'tool_result' && first !== 'thinking' && first !== 'redacted_thinking'
  return inLoop
    ? createProblem(
        `messages.${turns.length - 2}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, ` +
          `but found \`${stringOf(first)}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with ` +
          'a thinking block.',
      )
    : undefined
}
