// A whole answer for a caller of this dialect.

import type { Answer } from '../answer.ts'
import type { AnswerAsk } from '../protocol.ts'
import type { Flavour } from './flavour.ts'
import { endingOf, writeBody, writeEcho } from './response-body.ts'
import { writeUsage } from './usage.ts'
import { OutputItems, writeOutput } from './write-output.ts'

export function writeWhole({ choices, usage, serviceClass }: Answer, ask: AnswerAsk, flavour: Flavour): string {
  if (choices.length > 1) ask.losses.add('choices')
  const [choice = { parts: [], finish: 'other' as const }] = choices
  const { parts, finish } = choice
  const refused = parts.some(({ kind }) => kind === 'refusal')
  const items = new OutputItems(ask.requestId, ask.losses, flavour)
  ask.losses.addEnd('openai-responses', choice)
  return writeBody({
    echo: writeEcho(ask),
    ending: endingOf(finish, refused),
    output: writeOutput(parts, items).map(item => JSON.stringify(item)),
    usage: usage && writeUsage(usage),
    serviceClass,
  })
}
