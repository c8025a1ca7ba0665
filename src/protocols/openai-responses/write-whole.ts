// Writes a whole neutral answer as a response object.

import type { Answer } from '../neutral/answer.ts'
import { addLossOfEnd } from '../neutral/finish-reasons.ts'
import type { AnswerAsk } from '../protocol.ts'
import type { Flavour } from './flavour.ts'
import { endingOf, nowOf, tierOf, writeBody, writeEcho } from './response-body.ts'
import { writeUsage } from './usage.ts'
import { asIncomplete, OutputItems, writeOutput } from './write-output.ts'

export function writeWhole({ choices, usage, serviceClass }: Answer, target: AnswerAsk, flavour: Flavour): string {
  if (choices.length > 1) target.losses.add('choices')
  const [choice = { parts: [], finish: 'other' as const }] = choices
  const { parts, finish } = choice
  const hasRefusal = parts.some(({ kind }) => kind === 'refusal')
  const items = new OutputItems(target.requestId, target.losses, flavour)
  addLossOfEnd(target.losses, 'openai-responses', choice)
  const ending = endingOf(finish, hasRefusal)
  const output = writeOutput(parts, items)
  const last = output.length - 1
  return writeBody({
    echo: writeEcho(target),
    ending,
    output: output.map((item, at) =>
      JSON.stringify(at === last && ending.status === 'incomplete' ? asIncomplete(item) : item),
    ),
    usage: usage && writeUsage(usage),
    serviceTier: tierOf(serviceClass, target),
    nowS: nowOf(target),
  })
}
