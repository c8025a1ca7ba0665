// Writes a whole neutral answer as a chat completion.

import type { Answer, AnswerChoice, AnswerPart } from '../neutral/answer.ts'
import type { CallPart, MediaPart } from '../neutral/conversation.ts'
import { addFinishLoss } from '../neutral/finish-reasons.ts'
import type { Losses } from '../neutral/losses.ts'
import { translateServedTier } from '../neutral/service-tier.ts'
import type { AnswerTarget } from '../protocol.ts'
import type { ChatStep } from './answer-parts.ts'
import {
  addThoughts,
  buildAnswerId,
  chooseFinishReason,
  isLegacy,
  storeReasoningState,
  writeCallState,
  writeMedia,
} from './answer-parts.ts'
import { writeAnnotation } from './citations.ts'
import type { ChatFlavour } from './flavour.ts'
import { writeLogprobs } from './logprobs.ts'
import { writeReasoningState } from './reasoning-state.ts'
import { writeUsage } from './write-usage.ts'

export function writeWholeAnswer(answer: Answer, target: AnswerTarget, flavour: ChatFlavour): string {
  const { usage, serviceClass } = answer
  const tier =
    serviceClass === undefined ? undefined : translateServedTier(serviceClass, flavour.servedTiers, target.losses)
  if (answer.choices.length > target.choices) target.losses.add('choices')
  return JSON.stringify({
    id: buildAnswerId(target),
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

function writeChoice(choice: AnswerChoice, index: number, target: AnswerTarget, flavour: ChatFlavour): object {
  const { parts, finish, stopSequence } = choice
  if (stopSequence !== undefined) target.losses.add('stop_sequence')
  addFinishLoss(target.losses, 'openai-chat', choice)
  const legacy = isLegacy(target)
  // A call none of whose arguments has arrived says nothing, and some clients would run it.
  const calls = parts.filter(part => part.kind === 'call').filter(({ isCut, arguments: text }) => !isCut || text !== '')
  const refusalText = parts.map(part => (part.kind === 'refusal' ? part.text : '')).join('')
  const refusal = flavour.hasOpenaiAdditions && refusalText !== '' ? refusalText : null
  const texts = parts.filter(part => part.kind === 'text')
  const logprobs = texts.flatMap(part => part.logprobs ?? [])
  const content = texts.map(part => part.text).join('') + (flavour.hasOpenaiAdditions ? '' : refusalText)
  storeReasoningState(parts.flatMap(stepOf), target)
  const hasNoText = texts.length === 0 && flavour.hasOpenaiAdditions && (calls.length > 0 || refusal !== null)
  return {
    index,
    message: {
      role: 'assistant',
      content: hasNoText ? null : content,
      ...(flavour.hasOpenaiAdditions && { refusal }),
      ...writeThoughts(parts, flavour, target.losses),
      ...writeAnnotations(parts, target),
      ...(calls.length > 0 && writeCalls(calls, target, legacy)),
      ...writeMediaFields(parts, target),
    },
    logprobs: logprobs.length === 0 ? null : writeLogprobs(logprobs),
    finish_reason: chooseFinishReason(finish, { calls: calls.length > 0, refusal: refusal !== null, legacy }),
  }
}

function stepOf(part: AnswerPart): ChatStep[] {
  if (part.kind === 'call') return [{ callId: part.id, sealed: part.sealed }]
  return part.kind === 'reasoning' && part.sealed !== undefined ? [{ sealed: part.sealed, text: part.text }] : []
}

function writeThoughts(parts: readonly AnswerPart[], { carriesReasoningState }: ChatFlavour, losses: Losses): object {
  const thoughts = parts.filter(part => part.kind === 'reasoning')
  const text = thoughts
    .map(part => part.text)
    .filter(part => part !== '')
    .join('\n\n')
  const sealed = carriesReasoningState ? thoughts.filter(part => part.sealed !== undefined) : []
  const states = sealed.map(part => addThoughts(part.sealed!, part, losses))
  const encrypted = states.map((state, index) => writeReasoningState(state, index === 0)).join('')
  return { ...(text !== '' && { reasoning_content: text }), ...(encrypted !== '' && { encrypted_content: encrypted }) }
}

function writeAnnotations(parts: readonly AnswerPart[], target: AnswerTarget): object {
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

function writeCalls(calls: readonly CallPart[], target: AnswerTarget, legacy: boolean): object {
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
    ...writeCallState(sealed),
  }))
  return { tool_calls: written }
}

type Sound = MediaPart & { readonly source: { readonly at: 'inline' } }

const isSound = (part: AnswerPart): part is Sound => part.kind === 'audio' && part.source.at === 'inline'

/** A message has one audio. Pieces of raw samples are joined; of several files only the first can be sent. */
function joinSounds(parts: readonly AnswerPart[], losses: Losses): readonly AnswerPart[] {
  const sounds = parts.filter(isSound)
  const [first] = sounds
  if (first === undefined || sounds.length === 1) return parts
  const { mime } = first.source
  const isRaw = /^audio\/(?:l16|pcm)\b/i.test(mime) && sounds.every(({ source }) => source.mime === mime)
  if (!isRaw) losses.add('audio')
  const samples = (isRaw ? sounds : [first]).map(({ source }) => Buffer.from(source.base64, 'base64'))
  const joined = { ...first, source: { ...first.source, base64: Buffer.concat(samples).toString('base64') } }
  return [...parts.filter(part => !isSound(part)), joined]
}

function writeMediaFields(parts: readonly AnswerPart[], target: AnswerTarget): object {
  const fields: Record<string, unknown> = {}
  for (const part of joinSounds(parts, target.losses)) {
    if (!('source' in part) && part.kind !== 'native') continue
    const { images, ...rest } = writeMedia(part, target)
    if (Array.isArray(images)) fields.images = [...((fields.images as unknown[] | undefined) ?? []), ...images]
    Object.assign(fields, rest)
  }
  return fields
}
