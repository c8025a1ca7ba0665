// Reads a whole message of an upstream into the neutral answer.

import { Refusal } from '../../base/errors.ts'
import type { Answer, AnswerPart } from '../neutral/answer.ts'
import { NO_ARGUMENTS, readArgumentObject } from '../neutral/call-arguments.ts'
import { endsEarly, isWholeObject } from '../neutral/cut-call.ts'
import { readChoiceEnd, readFinish } from '../neutral/finish-reasons.ts'
import type { AnswerSource } from '../protocol.ts'
import { addLostFields } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { addLostBlockFields, answerFields, lostIn, readExplanation, readStopReason } from './answer-fields.ts'
import { unwrapInput } from './arguments.ts'
import { readCitations } from './read-messages.ts'
import { contentOf } from './response.ts'
import { readServedClass, readUsage } from './usage.ts'

export function readWholeAnswer(json: unknown, source: AnswerSource): Answer {
  const content = isObject(json) ? contentOf(json) : undefined
  if (!isObject(json) || content === undefined) throw new Refusal('upstream_unusable', 'not a message')
  const { losses } = source.notes
  addLostFields(json, answerFields, { path: '', losses })
  const isEarly = endsEarly(readFinish('anthropic-messages', readStopReason(json)))
  const parts = content.flatMap((block, at) =>
    isObject(block) ? readBlock(block, { source, isCut: isEarly && at === content.length - 1 }) : [],
  )
  const explanation = readExplanation(json.stop_details, losses)
  if (explanation !== undefined) parts.push({ kind: 'refusal', text: explanation })
  const { id, model, usage: report, stop_sequence: stopSequence } = json
  const usage = readUsage(report)
  const serviceClass = readServedClass(report)
  const lost = parts.map(part =>
    part.kind === 'native' && !source.notes.isNative ? lostIn(part.value as Json) : undefined,
  )
  const contains = {
    calls: parts.some(({ kind }) => kind === 'call'),
    words: parts.some(({ kind }) => kind === 'text'),
    lost: lost.includes('call') ? 'call' : lost.find(one => one !== undefined),
  } as const
  const ended = readChoiceEnd('anthropic-messages', readStopReason(json), contains, source.notes)
  return {
    ...(typeof id === 'string' && { id }),
    ...(typeof model === 'string' && { model }),
    choices: [{ parts, ...ended, ...(typeof stopSequence === 'string' && { stopSequence }) }],
    ...(usage !== undefined && usage !== 'nonsense' && { usage }),
    ...(serviceClass !== undefined && { serviceClass }),
  }
}

interface BlockReading {
  readonly source: AnswerSource
  /** The answer ended early in this block. */
  readonly isCut: boolean
}

function readBlock(block: Json, { source, isCut }: BlockReading): AnswerPart[] {
  const { origin, notes } = source
  addLostBlockFields(block, notes.losses)
  switch (block.type) {
    case 'text': {
      const citations = readCitations(block.citations, notes.losses)
      const text = toText(block.text)
      return text === '' ? [] : [{ kind: 'text', text, ...(citations && { citations }) }]
    }
    case 'thinking': {
      const [text, value] = [toText(block.thinking), toText(block.signature)]
      if (text === '' && value === '') return []
      return [{ kind: 'reasoning', text, ...(value !== '' && { sealed: { origin, form: 'signature', value } }) }]
    }
    case 'redacted_thinking': {
      const value = toText(block.data)
      return value === '' ? [] : [{ kind: 'reasoning', text: '', sealed: { origin, form: 'redacted', value } }]
    }
    case 'tool_use': {
      const name = toText(block.name)
      const input = readArgumentObject(block.input)
      if (name === '') return [buildNativePart(block)]
      // The input is an object here, so that an upstream may write an empty one for input that it cannot parse.
      const isMissing = isCut && input === NO_ARGUMENTS
      if (name === notes.schemaTool) return isMissing ? [] : [{ kind: 'text', text: input }]
      const call = buildCall(name, input, source)
      const isUnread = isMissing || (isCut && call.custom === true && !isWholeObject(input))
      const cut = isUnread ? { arguments: '', isCut } : isCut && call.custom !== true ? { isCut } : {}
      return [{ kind: 'call', id: toText(block.id) || source.mintCallId(), ...call, ...cut }]
    }
    default:
      return [buildNativePart(block)]
  }
}

const buildNativePart = (block: Json): AnswerPart => ({
  kind: 'native',
  dialect: 'anthropic-messages',
  what: toText(block.type) || 'block',
  value: block,
})

const toText = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Restores the caller's name of the tool, and the free text of a custom tool. */
function buildCall(name: string, input: string, { notes }: AnswerSource) {
  const custom = notes.wrapped?.has(name) === true
  return {
    name: notes.renamed.get(name) ?? name,
    arguments: custom ? unwrapInput(input) : input,
    ...(custom && { custom }),
  }
}
