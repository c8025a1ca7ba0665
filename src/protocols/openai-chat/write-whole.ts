// Writes a whole neutral answer as a chat completion.

import type { Answer, AnswerChoice, AnswerPart } from '../neutral/answer.ts'
import type { CallPart } from '../neutral/conversation.ts'
import { addLossOfEnd } from '../neutral/finish-reasons.ts'
import { servedTier } from '../neutral/service-tier.ts'
import type { AnswerAsk } from '../protocol.ts'
import { writeAnnotation } from './citations.ts'
import type { Flavour } from './flavour.ts'
import { writeLogprobs } from './logprobs.ts'
import { writeEncrypted } from './reasoning-state.ts'
import type { Step } from './write-answer.ts'
import { answerId, finishReason, isLegacy, keepState, sealedCall, withText, writeMedia } from './write-answer.ts'
import { writeUsage } from './write-usage.ts'

export function writeWhole(answer: Answer, target: AnswerAsk, flavour: Flavour): string {
  const { usage, serviceClass } = answer
  const tier = serviceClass === undefined ? undefined : servedTier(serviceClass, flavour.servedTiers, target.losses)
  if (answer.choices.length > target.choices) target.losses.add('choices')
  return JSON.stringify({
    id: answerId(target),
    object: 'chat.completion',
    created: target.createdS,
    model: target.model,
    choices: answer.choices
      .slice(0, target.choices)
      .map((choice, index) => writeChoice(choice, index, target, flavour)),
    ...(usage && { usage: writeUsage(usage) }),
    ...(tier !== undefined && { service_tier: tier }),
  })
}

function writeChoice(choice: AnswerChoice, index: number, target: AnswerAsk, flavour: Flavour): object {
  const { parts, finish } = choice
  addLossOfEnd(target.losses, 'openai-chat', choice)
  const legacy = isLegacy(target)
  const calls = parts.filter(part => part.kind === 'call')
  const refusalText = parts.map(part => (part.kind === 'refusal' ? part.text : '')).join('')
  const refusal = flavour.isFull && refusalText !== '' ? refusalText : null
  const texts = parts.filter(part => part.kind === 'text')
  const logprobs = texts.flatMap(part => part.logprobs ?? [])
  const content = texts.map(part => part.text).join('') + (flavour.isFull ? '' : refusalText)
  keepState(parts.flatMap(stepOf), target)
  const hasNoText = texts.length === 0 && flavour.isFull && (calls.length > 0 || refusal !== null)
  return {
    index,
    message: {
      role: 'assistant',
      content: hasNoText ? null : content,
      ...(flavour.isFull && { refusal }),
      ...writeThoughts(parts, flavour),
      ...writeAnnotations(parts, target),
      ...(calls.length > 0 && writeCalls(calls, target, legacy)),
      ...writeMediaFields(parts, target),
    },
    logprobs: logprobs.length === 0 ? null : writeLogprobs(logprobs),
    finish_reason: finishReason(finish, { calls: calls.length > 0, refusal: refusal !== null, legacy }),
  }
}

function stepOf(part: AnswerPart): Step[] {
  if (part.kind === 'call') return [{ callId: part.id, sealed: part.sealed }]
  return part.kind === 'reasoning' && part.sealed !== undefined ? [{ sealed: part.sealed, text: part.text }] : []
}

function writeThoughts(parts: readonly AnswerPart[], { bearsState }: Flavour): object {
  const thoughts = parts.filter(part => part.kind === 'reasoning')
  const text = thoughts
    .map(part => part.text)
    .filter(part => part !== '')
    .join('\n\n')
  const sealed = bearsState ? thoughts.filter(part => part.sealed !== undefined) : []
  const states = sealed.map(part => withText(part.sealed!, part.text))
  const encrypted = states.map((state, index) => writeEncrypted(state, index === 0)).join('')
  return { ...(text !== '' && { reasoning_content: text }), ...(encrypted !== '' && { encrypted_content: encrypted }) }
}

function writeAnnotations(parts: readonly AnswerPart[], target: AnswerAsk): object {
  const annotations: object[] = []
  let start = 0
  for (const part of parts) {
    if (part.kind !== 'text') continue
    const end = start + part.text.length
    for (const citation of part.citations ?? []) {
      const annotation = writeAnnotation(citation, { start, end })
      if (annotation === undefined) target.losses.add('citations')
      else annotations.push(annotation)
    }
    start = end
  }
  return annotations.length === 0 ? {} : { annotations }
}

function writeCalls(calls: readonly CallPart[], target: AnswerAsk, legacy: boolean): object {
  const [first, ...others] = calls
  if (legacy) {
    if (others.length > 0) target.losses.add('tool_calls')
    return { function_call: { name: first!.name, arguments: first!.arguments || '{}' } }
  }
  const written = calls.map(({ id, name, arguments: text, custom, sealed }) => ({
    id,
    ...(custom
      ? { type: 'custom', custom: { name, input: text } }
      : { type: 'function', function: { name, arguments: text || '{}' } }),
    ...sealedCall(sealed),
  }))
  return { tool_calls: written }
}

function writeMediaFields(parts: readonly AnswerPart[], target: AnswerAsk): object {
  const fields: Record<string, unknown> = {}
  for (const part of parts) {
    if (!('source' in part) && part.kind !== 'native') continue
    const { images, ...rest } = writeMedia(part, target)
    if (Array.isArray(images)) fields.images = [...((fields.images as unknown[] | undefined) ?? []), ...images]
    Object.assign(fields, rest)
  }
  return fields
}
