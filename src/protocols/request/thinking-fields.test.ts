// Tests that thinking counts as switched off only if no other field requests it.

import { expect, test } from 'bun:test'
import { ark } from '../ark/dialect.ts'
import { gemini } from '../gemini/dialect.ts'
import { openaiChat } from '../openai-chat/dialect.ts'
import type { Protocol } from '../protocol.ts'
import { protocols } from '../protocols.ts'

const openaiResponses = protocols['openai-responses']

const thinkingConfig = (config: object): object => ({ generationConfig: { thinkingConfig: config } })

const rows: readonly (readonly [Protocol, object, false | undefined])[] = [
  [openaiChat, { reasoning_effort: 'none' }, false],
  [openaiChat, { reasoning_effort: 'none', reasoning: { effort: 'none' }, thinking: { type: 'disabled' } }, false],
  [openaiChat, { reasoning_effort: 'none', enable_thinking: false, include_reasoning: true }, false],
  [openaiChat, { reasoning_effort: 'none', reasoning: { effort: 'high' } }, undefined],
  [openaiChat, { reasoning_effort: 'none', reasoning: { max_tokens: 4_000 } }, undefined],
  [openaiChat, { reasoning_effort: 'none', thinking: { type: 'enabled' } }, undefined],
  [openaiChat, { reasoning_effort: 'none', enable_thinking: true }, undefined],
  [openaiChat, { reasoning_effort: 'none', chat_template_kwargs: { enable_thinking: true } }, undefined],
  [openaiResponses, { reasoning: { effort: 'none' } }, false],
  [openaiResponses, { reasoning: { effort: 'none' }, reasoning_effort: 'high' }, undefined],
  [ark, { thinking: { type: 'disabled' } }, false],
  [ark, { thinking: { type: 'disabled' }, reasoning_effort: 'high' }, undefined],
  [gemini, thinkingConfig({ thinkingBudget: 0 }), false],
  [gemini, thinkingConfig({ thinkingBudget: 0, thinkingLevel: 'HIGH' }), undefined],
  [gemini, thinkingConfig({ thinking_budget: 0, thinking_level: 'HIGH' }), undefined],
]

test.each(rows)('row %#: thinking is switched off only if no field of %j requests it', (protocol, json, thinks) => {
  expect(protocol.asksForThinking!(json as never)).toBe(thinks as never)
})
