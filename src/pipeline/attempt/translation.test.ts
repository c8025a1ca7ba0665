// What a follower of an answer keeps in memory while the answer arrives.

import { expect, test } from 'bun:test'
import { Losses } from '../../protocols/neutral/losses.ts'
import type { AnswerTarget } from '../../protocols/protocol.ts'
import { protocols } from '../../protocols/protocols.ts'
import { openFollower } from './translation.ts'
import type { Translation } from './translation-types.ts'

test('a follower does not keep the request, and still repeats its fields at the end', () => {
  const codec = protocols['openai-responses']!.codec!
  const json = { model: 'p/m', input: 'x'.repeat(1_000), instructions: 'Be short.' }
  let kept: AnswerTarget | undefined
  const callerCodec: Translation['callerCodec'] = {
    ...codec,
    openEventWriter(ask) {
      kept = ask
      return codec.openEventWriter(ask)
    },
  }
  const notes = { losses: new Losses(), renamed: new Map<string, string>() }
  const ask = { requestId: 'r', model: 'p/m', createdS: 1, wantsUsage: true, choices: 1, json, losses: notes.losses }
  const source = { origin: 'o', notes, mintCallId: () => 'call_1' }
  const follower = openFollower({ upstreamCodec: codec, source, callerCodec, ask }, { items: [] })
  expect(kept?.json).toEqual({})
  expect(ask.json).toBe(json) // another attempt may need it
  expect(follower.end().toString()).toContain('"instructions":"Be short."')
})
