// A whole answer for a caller of this dialect.

import type { Answer } from '../neutral/answer.ts'
import { addLossOfEnd } from '../neutral/finish-reasons.ts'
import type { AnswerAsk } from '../protocol.ts'
import type { Flavour } from './flavour.ts'
import { endingOf, nowOf, tierOf, writeBody, writeEcho } from './response-body.ts'
import { writeUsage } from './usage.ts'
import { asIncomplete, OutputItems, writeOutput } from './write-output.ts'

export function writeWhole({ choices, usage, serviceClass }: Answer, ask: AnswerAsk, flavour: Flavour): string {
  if (choices.length > 1) ask.losses.add('choices')
  const [choice = { parts: [], finish: 'other' as const }] = choices
  const { parts, finish } = choice
  const refused = parts.some(({ kind }) => kind === 'refusal')
  const items = new OutputItems(ask.requestId, ask.losses, flavour)
  addLossOfEnd(ask.losses, 'openai-responses', choice)
  const ending = endingOf(finish, refused)
  const output = writeOutput(parts, items)
  const last = output.length - 1
  return writeBody({
    echo: writeEcho(ask),
    ending,
    output: output.map((item, at) =>
      JSON.stringify(at === last && ending.status === 'incomplete' ? asIncomplete(item) : item),
    ),
    usage: usage && writeUsage(usage),
    serviceTier: tierOf(serviceClass, ask),
    nowS: nowOf(ask),
  })
}
