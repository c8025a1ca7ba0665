// Tests collecting events into answers, turning answers into events, and the order of events.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { anyAnswer, anyEvents } from '../../../test/support/answers.ts'
import { assertCompleteStream } from '../../../test/support/complete-stream.ts'
import { expectCheap } from '../../../test/support/cpu.ts'
import type { Answer, AnswerEvent } from './answer.ts'
import { AnswerCollector, collectAnswer, toEvents } from './answer-collector.ts'

const start: AnswerEvent = { kind: 'start', id: 'a' }
const open: AnswerEvent = { kind: 'open', index: 0, choice: 0, part: 'text' }
const close: AnswerEvent = { kind: 'close', index: 0 }
const finish: AnswerEvent = { kind: 'finish', choice: 0, finish: 'stop' }
const delta: AnswerEvent = { kind: 'delta', index: 0, text: 'x' }
const call: AnswerEvent = { kind: 'open', index: 0, choice: 0, part: 'call', id: 'c', name: 'f' }

describe('an answer', () => {
  test('is unchanged after it is turned into events and collected', () => {
    fc.assert(fc.property(anyAnswer(), answer => expect(collectAnswer(toEvents(answer))).toEqual(answer)))
  })

  test('has events in the right order', () => {
    fc.assert(fc.property(anyAnswer(), answer => expect(() => assertCompleteStream(toEvents(answer))).not.toThrow()))
  })

  test('is the same for deltas of any size', () => {
    fc.assert(
      fc.property(anyEvents(), events => {
        assertCompleteStream(events)
        const collected = collectAnswer(events)
        expect(collectAnswer(toEvents(collected))).toEqual(collected)
      }),
    )
  })

  test('contains what has arrived so far', () => {
    const collector = new AnswerCollector()
    for (const event of [start, open, delta]) collector.add(event)
    const parts = [{ kind: 'text', text: 'x' }]
    expect(collector.answer()).toEqual({ id: 'a', choices: [{ parts, finish: 'other' }] } as Answer)
    collector.add({ kind: 'usage', usage: { input: 1, output: 1 } })
    collector.add({ kind: 'usage', usage: { input: 1, output: 2 } })
    expect(collector.answer().usage).toEqual({ input: 1, output: 2 })
  })

  test('with many deltas is collected fast enough', async () => {
    await expectCheap(1_000, () => {
      const collector = new AnswerCollector()
      for (const event of [start, open]) collector.add(event)
      for (let count = 0; count < 100_000; count++) collector.add(delta)
      expect(collector.answer().choices[0]?.parts).toEqual([{ kind: 'text', text: 'x'.repeat(100_000) }])
    })
  })
})

describe('the order of events', () => {
  const seal = { form: 'thought', value: 'v' } as const
  const cite: AnswerEvent = { kind: 'cite', index: 0, citation: {} }
  const broken: readonly (readonly [string, readonly AnswerEvent[]])[] = [
    ['no event', []],
    ['no start', [open, close, finish]],
    ['two starts', [start, start, finish]],
    ['a part that is not closed', [start, open]],
    ['a finish while a part is open', [start, open, finish, close]],
    ['a delta before its part is opened', [start, delta, open, close, finish]],
    ['a delta after its part is closed', [start, open, close, delta, finish]],
    ['a part that is closed twice', [start, open, close, close, finish]],
    ['a part that is opened twice', [start, open, close, open, close, finish]],
    ['a part out of order', [start, { ...open, index: 1 } as AnswerEvent, { ...close, index: 1 }, finish]],
    ['a part after the finish', [start, finish, open, close]],
    ['two finishes', [start, open, close, finish, finish]],
    ['no finish', [start, open, close]],
    ['a choice without a finish before another choice', [start, { kind: 'finish', choice: 1, finish: 'stop' }]],
    ['a call without a name', [start, { ...call, name: '' } as AnswerEvent, close, finish]],
    ['a citation of a call', [start, call, cite, close, finish]],
    ['probabilities of a call', [start, call, { ...delta, logprobs: [] }, close, finish]],
    ['reasoning state of a text part', [start, open, { ...close, sealed: seal }, finish]],
  ]

  test.each(broken)('is violated by %s', (_name, events) => {
    expect(() => assertCompleteStream(events)).toThrow('assertion failed')
  })

  test('is met by valid events', () => {
    const usage = { kind: 'usage', usage: { input: 1, output: 1 } } as const
    const completeStreams = [
      [start, open, delta, cite, close, finish],
      [start, call, { ...close, sealed: seal }, finish, usage],
      [start],
    ]
    for (const events of completeStreams) expect(() => assertCompleteStream(events)).not.toThrow()
  })
})
