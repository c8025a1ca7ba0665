// Writes a whole neutral answer as a response object.

import type { Answer } from '../neutral/answer.ts'
import { addFinishLoss } from '../neutral/finish-reasons.ts'
import type { AnswerTarget } from '../protocol.ts'
import type { ResponsesFlavour } from './flavour.ts'
import { markIncomplete, OutputItems, writeOutput } from './output-items.ts'
import {
  readNow,
  readResponseEnd,
  writeRequestFields,
  writeResponseObject,
  writeServiceTier,
} from './response-object.ts'
import { writeUsage } from './usage.ts'

export function writeWholeAnswer(
  { choices, usage, serviceClass }: Answer,
  target: AnswerTarget,
  flavour: ResponsesFlavour,
): string {
  if (choices.length > 1) target.losses.add('choices')
  const [choice = { parts: [], finish: 'other' as const }] = choices
  const { parts, finish } = choice
  const hasRefusal = parts.some(({ kind }) => kind === 'refusal')
  const items = new OutputItems(target, flavour)
  addFinishLoss(target.losses, 'openai-responses', choice)
  const ending = readResponseEnd(finish, hasRefusal)
  const output = writeOutput(parts, items)
  const last = output.length - 1
  return writeResponseObject({
    requestFields: writeRequestFields(target),
    end: ending,
    output: output.map((item, at) =>
      JSON.stringify(at === last && ending.status === 'incomplete' ? markIncomplete(item) : item),
    ),
    usage: usage && writeUsage(usage),
    serviceTier: writeServiceTier(serviceClass, target),
    nowS: readNow(target),
  })
}
