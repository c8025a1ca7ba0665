// Writes a neutral answer as a whole message for a caller.

import { noUsage } from '../../base/money/usage.ts'
import { writeJson } from '../../base/text/long-integers.ts'
import type { Answer, AnswerPart } from '../neutral/answer.ts'
import type { ReasoningPart, TextPart } from '../neutral/conversation.ts'
import { isWholeObject } from '../neutral/cut-call.ts'
import { addFinishLoss } from '../neutral/finish-reasons.ts'
import type { AnswerTarget } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import { parseArguments } from './arguments.ts'
import { writeStopReason } from './finish-reason.ts'
import { HiddenReasoning, hidesReasoning } from './hidden-reasoning.ts'
import { writeUsage } from './usage.ts'
import * as blocks from './write-blocks.ts'

export function writeWholeAnswer({ choices, usage, serviceClass }: Answer, request: AnswerTarget): string {
  const { parts = [], finish = 'other', reason, stopSequence } = choices[0] ?? {}
  if (choices.length > 1) request.losses.add('choices')
  const hasCalls = parts.some(part => part.kind === 'call')
  const hasRefusal = parts.some(part => part.kind === 'refusal')
  const stopReason = writeStopReason(finish, { calls: hasCalls, refused: hasRefusal })
  addFinishLoss(request.losses, 'anthropic-messages', { finish, reason })
  return writeJson({
    ...blocks.buildMessageHead(request),
    content: writeContent(parts, request),
    stop_reason: stopReason,
    stop_sequence: stopReason === 'stop_sequence' ? (stopSequence ?? null) : null,
    stop_details: blocks.buildStopDetails(stopReason),
    ...blocks.messageTail,
    usage: writeUsage(usage ?? noUsage, serviceClass, request.losses),
  })
}

function writeContent(parts: readonly AnswerPart[], request: AnswerTarget): readonly Json[] {
  const shownParts = hidesReasoning(request) ? hideReasoning(parts, request) : parts
  const content = shownParts.flatMap(part => writePart(part, request))
  const missing = blocks.buildMissingThinking(request)
  const firstOther = content.findIndex(({ type }) => type !== 'text')
  if (missing === undefined || content[firstOther]?.type !== 'tool_use') return content
  return content.toSpliced(firstOther, 0, missing)
}

function hideReasoning(parts: readonly AnswerPart[], request: AnswerTarget): readonly AnswerPart[] {
  const hidden = new HiddenReasoning()
  const shownParts = hidden.takeParts(parts)
  hidden.store(request)
  return shownParts
}

function writePart(part: AnswerPart, request: AnswerTarget): readonly Json[] {
  switch (part.kind) {
    case 'text':
      return writeText(part, request)
    case 'refusal':
      return part.text === '' ? [] : [{ type: 'text', text: part.text, citations: null }]
    case 'reasoning':
      return writeReasoning(part)
    case 'call': {
      // The input is an object, so that it must be whole.
      if (part.isCut && (part.custom || !isWholeObject(part.arguments))) return []
      const id = blocks.cleanId(part.id)
      const call = blocks.buildToolUse(id, part.name, parseArguments(part.arguments, part.custom))
      return part.sealed === undefined ? [call] : [call, blocks.buildCallState(part.sealed, id)]
    }
    case 'native':
      if (part.dialect === 'anthropic-messages') return [part.value as Json]
      request.losses.add(part.what)
      return []
    default:
      request.losses.add(`answer.${part.kind}`)
      return []
  }
}

function writeText({ text, citations = [] }: TextPart, request: AnswerTarget): readonly Json[] {
  if (text === '') {
    if (citations.length > 0) request.losses.add('citations')
    return []
  }
  const written = citations.flatMap(citation => blocks.writeCitation(citation, request.losses) ?? [])
  return [{ type: 'text', text, citations: written.length === 0 ? null : written }]
}

function writeReasoning({ text, sealed }: ReasoningPart): readonly Json[] {
  if (text !== '') return [{ type: 'thinking', thinking: text, signature: blocks.buildSignature(sealed) }]
  return sealed === undefined ? [] : [blocks.buildRedactedThinking(sealed)]
}
