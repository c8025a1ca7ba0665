// What a follower of an answer keeps in memory while the answer arrives.

import { expect, test } from 'bun:test'
import type { AnswerTarget, Protocol } from '../../protocols/protocol.ts'
import { protocols } from '../../protocols/protocols.ts'
import type { AttemptContext } from './translation.ts'
import { followStream } from './translation.ts'

test('a follower does not keep the request, and still repeats its fields at the end', () => {
  const { codec, ...rest } = protocols['openai-responses']!
  const json = { model: 'p/m', input: 'x'.repeat(1_000), instructions: 'Be short.' }
  let kept: AnswerTarget | undefined
  const protocol: Protocol = {
    ...rest,
    codec: {
      ...codec!,
      followStream(target, isCollected) {
        kept = target
        return codec!.followStream(target, isCollected)
      },
    },
  }
  const context = {
    hold: { call: { model: 'p/m', wantsUsage: true, choices: 1, json } },
    exchange: {
      requestId: 'r',
      createdMs: 1,
      startedMs: 1,
      attempt: {},
      protocol,
      storage: {},
      timings: { nowMs: () => 1 },
    },
  } as unknown as AttemptContext
  const follower = followStream(context, false)!
  expect(kept?.json).toEqual({})
  expect(context.hold.call.json).toBe(json) // another attempt may need it
  expect(follower.endEarly({ input: 1, output: 1 }, 'balance_too_low').toString()).toContain(
    '"instructions":"Be short."',
  )
})
