// Tests that reasoning stays away from a caller that did not ask for it, and comes back to its provider.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { anyEvents } from '../../../test/support/answers.ts'
import { askOf, assembled, framesOf, writeAll } from '../../../test/support/anthropic-answers.ts'
import { bounds } from '../../base/bounds.ts'
import type { Answer, AnswerPart } from '../neutral/answer.ts'
import { collectAnswer, toEvents } from '../neutral/answer-collector.ts'
import { Losses } from '../neutral/losses.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import type { AnswerTarget } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import { codec } from './codec.ts'
import { restoreReasoning } from './hidden-reasoning.ts'

const thoughts = (text: string, value: string): AnswerPart => ({
  kind: 'reasoning',
  text,
  sealed: { form: 'signature', value, origin: 'o' },
})
const call = (id: string): AnswerPart => ({ kind: 'call', id, name: 'f', arguments: '{}' })
const signed: AnswerPart = {
  kind: 'call',
  id: 'd',
  name: 'f',
  arguments: '{}',
  sealed: { form: 'thought', value: 'S4', origin: 'o' },
}
const parts: readonly AnswerPart[] = [
  thoughts('first', 'S1'),
  thoughts('second', 'S2'),
  { kind: 'text', text: 'Hello' },
  call('a'),
  thoughts('third', 'S3'),
  call('b'),
  call('c'),
  signed,
]
const answerOf = (given: readonly AnswerPart[]): Answer => ({ choices: [{ parts: given, finish: 'calls' }] })

interface KeepingTarget extends AnswerTarget {
  readonly kept: Map<string, readonly ReasoningState[]>
}

function keeping(): KeepingTarget {
  const kept = new Map<string, readonly ReasoningState[]>()
  return { ...askOf(), kept, keep: (id, states) => void kept.set(id, states) }
}

const wholeOf = (answer: Answer, target: AnswerTarget): Json =>
  JSON.parse(codec.writeWholeAnswer(answer, target)) as Json

describe.each(['whole', 'streamed'] as const)('an answer, %s', form => {
  const contentOf = (answer: Answer, target: AnswerTarget): unknown =>
    form === 'whole' ? wholeOf(answer, target).content : assembled(framesOf(writeAll(toEvents(answer), target))).content

  test('has no block of reasoning, and the state is restored at its position', () => {
    const target = keeping()
    const content = contentOf(answerOf(parts), target) as Json[]
    expect(content.map(({ type }) => type)).toEqual(['text', 'tool_use', 'tool_use', 'tool_use', 'tool_use'])
    expect([...target.kept.keys()]).toEqual(['a', 'b', 'd'])
    const sent = [{ kind: 'text', text: 'Hello' } as const, call('a'), call('b'), call('c'), call('d')]
    const messages = [{ role: 'assistant' as const, parts: sent as never }]
    const [restored] = restoreReasoning(messages, id => target.kept.get(id) ?? [])
    expect(restored!.parts as unknown).toEqual(parts)
  })

  test('stores the state under the id that the caller gets', () => {
    const target = keeping()
    contentOf(answerOf([thoughts('x', 'S'), call('call:1')]), target)
    expect([...target.kept.keys()]).toEqual(['call_1'])
  })

  test('stores only the states that are of use without thoughts that are too long', () => {
    const target = { ...keeping(), losses: new Losses() }
    const long = 'x'.repeat(bounds.reasoningStateBytesMax)
    const encrypted: ReasoningState = { form: 'encrypted', value: 'E', origin: 'o' }
    contentOf(answerOf([thoughts(long, 'S'), { kind: 'reasoning', text: 'x', sealed: encrypted }, call('a')]), target)
    expect([...target.kept]).toEqual([['a', [encrypted]]])
    expect(target.losses.codes).toEqual(['reasoning_state'])
  })

  test('shows the reasoning if the caller asks for thinking, or if the state cannot be kept', () => {
    const asking = { ...keeping(), json: { thinking: { type: 'adaptive' } } }
    for (const target of [asking, askOf()]) {
      const content = contentOf(answerOf(parts.slice(0, 4)), target) as Json[]
      expect(content.map(({ type }) => type)).toEqual(['thinking', 'thinking', 'text', 'tool_use'])
    }
    expect(asking.kept.size).toBe(0)
  })
})

test('P3: a stream has the content of the whole answer, in whatever order the parts arrive', () => {
  fc.assert(
    fc.property(anyEvents(1), events => {
      const answer = collectAnswer(events)
      const all = answer.choices[0]?.parts ?? []
      fc.pre(all.every(part => part.kind !== 'call' || part.custom === true || /^\s*\{/.test(part.arguments)))
      const [target, streamTarget] = [keeping(), keeping()]
      const whole = wholeOf(answer, target)
      expect(assembled(framesOf(writeAll(events, streamTarget))).content).toEqual(whole.content)
      expect(JSON.stringify(whole.content)).not.toContain('thinking')
      expect(streamTarget.kept).toEqual(target.kept)
    }),
    { numRuns: 300 },
  )
})

test('state that the caller sends back is not added again', () => {
  const sent = [{ ...signed, id: 'a' }]
  const messages = [{ role: 'assistant' as const, parts: sent as never }]
  expect(restoreReasoning(messages, () => [{ form: 'encrypted', value: 'E' }])).toEqual(messages)
  expect(restoreReasoning(messages, undefined)).toEqual(messages)
})
