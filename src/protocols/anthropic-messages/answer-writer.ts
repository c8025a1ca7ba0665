// A neutral answer, as a whole message for a caller.

import { noUsage } from '../../base/money/usage.ts'
import type { Answer, AnswerPart } from '../neutral/answer.ts'
import type { ReasoningPart, TextPart } from '../neutral/conversation.ts'
import { addLossOfEnd } from '../neutral/finish-reasons.ts'
import type { AnswerAsk } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import { argumentsObject } from './arguments.ts'
import * as blocks from './blocks-writer.ts'
import { writeStopReason } from './finish.ts'
import { writeUsage } from './usage.ts'

export function writeWhole({ choices, usage, serviceClass }: Answer, to: AnswerAsk): string {
  const { parts = [], finish = 'other', reason, stopSequence } = choices[0] ?? {}
  if (choices.length > 1) to.losses.add('choices')
  const calls = parts.some(part => part.kind === 'call')
  const refused = parts.some(part => part.kind === 'refusal')
  const stopReason = writeStopReason(finish, { calls, refused })
  addLossOfEnd(to.losses, 'anthropic-messages', { finish, reason })
  return JSON.stringify({
    ...blocks.messageHead(to),
    content: writeContent(parts, to),
    stop_reason: stopReason,
    stop_sequence: stopReason === 'stop_sequence' ? (stopSequence ?? null) : null,
    stop_details: blocks.stopDetails(stopReason),
    ...blocks.messageTail,
    usage: writeUsage(usage ?? noUsage, serviceClass, to.losses),
  })
}

function writeContent(parts: readonly AnswerPart[], to: AnswerAsk): readonly Json[] {
  const content = parts.flatMap(part => writePart(part, to))
  const missing = blocks.missingThought(to)
  const first = content.findIndex(({ type }) => type !== 'text')
  if (missing === undefined || content[first]?.type !== 'tool_use') return content
  return content.toSpliced(first, 0, missing)
}

function writePart(part: AnswerPart, to: AnswerAsk): readonly Json[] {
  switch (part.kind) {
    case 'text':
      return writeText(part, to)
    case 'refusal':
      return part.text === '' ? [] : [{ type: 'text', text: part.text, citations: null }]
    case 'reasoning':
      return writeReasoning(part)
    case 'call': {
      const id = blocks.cleanId(part.id)
      const call = blocks.toolUse(id, part.name, argumentsObject(part.arguments, part.custom))
      return part.sealed === undefined ? [call] : [call, blocks.callState(part.sealed, id)]
    }
    case 'native':
      if (part.dialect === 'anthropic-messages') return [part.value as Json]
      to.losses.add(part.what)
      return []
    default:
      to.losses.add(`answer.${part.kind}`)
      return []
  }
}

function writeText({ text, citations = [] }: TextPart, to: AnswerAsk): readonly Json[] {
  const written = text === '' ? [] : citations.map(blocks.writeCitation).filter(citation => citation !== undefined)
  if (written.length < citations.length) to.losses.add('citations')
  return text === '' ? [] : [{ type: 'text', text, citations: written.length === 0 ? null : written }]
}

function writeReasoning({ text, sealed }: ReasoningPart): readonly Json[] {
  if (text !== '') return [{ type: 'thinking', thinking: text, signature: blocks.signatureOf(sealed) }]
  return sealed === undefined ? [] : [blocks.hiddenThought(sealed)]
}
