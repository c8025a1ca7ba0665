// Any conversation of another dialect is written as a request that Anthropic accepts.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Refusal } from '../../src/base/errors.ts'
import type { ModelTraits } from '../../src/base/money/model-traits.ts'
import { efforts, thinkingModes } from '../../src/base/money/model-traits.ts'
import { anthropicMessages } from '../../src/protocols/anthropic-messages/dialect.ts'
import type { Conversation, ConversationMessage, ConversationPart } from '../../src/protocols/neutral/conversation.ts'
import { Losses } from '../../src/protocols/neutral/losses.ts'
import { findMessagesProblem } from '../../tools/fake-upstream/anthropic-messages/problem.ts'
import type { ReceivedRequest } from '../../tools/fake-upstream/request.ts'

const { constantFrom, constant, record, array, oneof, option } = fc
const word = constantFrom('', ' ', 'words', 'x y')
const id = constantFrom('a', 'b', 'c:1', 'é', '')
const name = constantFrom('f', 'g', 'a.b', 'a:b', 'a_b')

const text = record({ kind: constant('text' as const), text: word })
const image = constant<ConversationPart>({ kind: 'image', source: { at: 'inline', base64: 'AAAA', mime: 'image/png' } })
const visible = oneof(text, image as fc.Arbitrary<never>)
const call = record({
  kind: constant('call' as const),
  id,
  name,
  arguments: constantFrom('', '{}', '{"a":1}', '[1]', '{"', 'null'),
})
const result = record({ kind: constant('result' as const), callId: id, parts: array(visible, { maxLength: 2 }) })
const thought = record({
  kind: constant('reasoning' as const),
  text: word,
  sealed: record({
    form: constantFrom('signature', 'encrypted', 'thought'),
    value: constant('v'),
    origin: constant('there'),
  }),
})
const refusal = record({ kind: constant('refusal' as const), text: word })

const few = { maxLength: 4 }
const turn: fc.Arbitrary<ConversationMessage> = oneof(
  record({ role: constantFrom('user', 'system', 'developer'), parts: array(text, few) }),
  record({ role: constant('user' as const), parts: array(visible, few) }),
  record({ role: constant('assistant' as const), parts: array(oneof(text, call, thought, refusal), few) }),
  record({ role: constant('tool' as const), parts: array(result, few) }),
)

const tool = oneof(
  record({ kind: constant('function' as const), name, strict: fc.boolean() }),
  record({ kind: constant('custom' as const), name }),
)

const conversation = record(
  {
    messages: array(turn, { minLength: 1, maxLength: 8 }),
    tools: fc.uniqueArray(tool, { maxLength: 3, selector: each => each.name }),
    toolChoice: record(
      { mode: constantFrom('auto', 'none', 'required'), names: array(name, { minLength: 1, maxLength: 2 }) },
      { requiredKeys: ['mode'] },
    ),
    parallelCalls: fc.boolean(),
    format: constantFrom({ kind: 'json' }, { kind: 'schema', schema: { type: 'object', minProperties: 1 } }),
    reasoning: record(
      { effort: constantFrom(...efforts), budget: fc.nat(9_000), adaptive: fc.boolean() },
      { requiredKeys: [] },
    ),
    settings: record(
      {
        stream: fc.boolean(),
        topP: constantFrom(0.5, 0.99, 1),
        temperature: fc.double({ min: 0, max: 2, noNaN: true }),
      },
      { requiredKeys: ['stream'] },
    ),
    lostFields: constant([]),
  },
  { requiredKeys: ['messages', 'tools', 'settings', 'lostFields'] },
) as fc.Arbitrary<Conversation>

const traits: fc.Arbitrary<ModelTraits> = record(
  {
    thinking: constantFrom(...thinkingModes),
    stopsThinking: fc.boolean(),
    sampling: fc.boolean(),
    forcedTool: fc.boolean(),
    schema: fc.boolean(),
    richResults: fc.boolean(),
    system: fc.boolean(),
  },
  { requiredKeys: [] },
)

test('P26, P28, P29: any conversation is written as a valid request, or refused by the gateway', () => {
  fc.assert(
    fc.property(conversation, traits, option(fc.integer({ min: 1, max: 9_000 })), (input, model, cap) => {
      let body: string
      try {
        body = anthropicMessages.codec.writeConversation(input, {
          model: 'claude',
          traits: model,
          outputTokensMax: 8_000,
          cap: cap ?? undefined,
          capField: 'max_tokens',
          askUsage: true,
          origin: 'here',
          media: new Map(),
          notes: { losses: new Losses(), renamed: new Map() },
        })
      } catch (fault) {
        expect(fault).toBeInstanceOf(Refusal)
        return
      }
      const request = { headers: new Map(), body: Buffer.from(body), json: () => JSON.parse(body) as unknown }
      expect(findMessagesProblem(request as unknown as ReceivedRequest)).toBeUndefined()
    }),
    { numRuns: 3_000 },
  )
})
