// Keeps reasoning away from callers that did not ask for thinking: they read the first block as the answer. The state
// that the provider wants back is stored under the ids of the tool calls, and put back when the caller sends the calls
// again.

import type { AnswerEvent, AnswerPart } from '../neutral/answer.ts'
import type { Call } from '../neutral/call.ts'
import type { CallPart, ConversationMessage, ConversationPart, ReasoningPart } from '../neutral/conversation.ts'
import type { Losses } from '../neutral/losses.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { fitsStorage, groupByCall, STORED_TEXT_BYTES_MAX } from '../neutral/stored-reasoning.ts'
import type { AnswerTarget } from '../protocol.ts'
import { isObject } from '../request/json-body.ts'
import { cleanId } from './write-blocks.ts'

/** Where the state is not kept for the caller, the answer is in its upstream's own dialect, and stays as it is. */
export function hidesReasoning({ json: { thinking }, keep }: AnswerTarget): boolean {
  const isRequested = isObject(thinking) && thinking.type !== 'disabled'
  return !isRequested && keep !== undefined
}

/** A tool call or thoughts, in the order of opening. */
interface Step {
  readonly callId?: string
  sealed: ReasoningState | undefined
  /** The thoughts. Only their start, if they are too long to be stored. */
  text: string
}

/** Collects the reasoning of one answer. */
export class HiddenReasoning {
  readonly #steps: Step[] = []
  readonly #open = new Map<number, Step>()

  /** Returns whether the event is about thoughts, so that the caller must not see it. */
  take(event: AnswerEvent): boolean {
    if (event.kind === 'open') return this.#openStep(event)
    const step = event.kind === 'delta' || event.kind === 'close' ? this.#open.get(event.index) : undefined
    if (step === undefined) return false
    if (event.kind === 'close') {
      this.#open.delete(event.index)
      step.sealed = event.sealed ?? step.sealed
    } else if (event.kind === 'delta' && step.callId === undefined && step.text.length <= STORED_TEXT_BYTES_MAX) {
      step.text += event.text
    }
    return step.callId === undefined
  }

  #openStep(event: AnswerEvent & { readonly kind: 'open' }): boolean {
    const isThought = event.part === 'reasoning'
    if (event.choice !== 0 || (!isThought && event.part !== 'call')) return false
    const step: Step = isThought
      ? { sealed: undefined, text: '' }
      : { callId: cleanId(event.id), sealed: event.sealed, text: '' }
    this.#steps.push(step)
    this.#open.set(event.index, step)
    return isThought
  }

  /** Returns the parts that the caller may see. */
  takeParts(parts: readonly AnswerPart[]): readonly AnswerPart[] {
    return parts.flatMap((part): readonly AnswerPart[] => {
      if (part.kind === 'reasoning') this.#steps.push({ sealed: part.sealed, text: part.text })
      if (part.kind !== 'call') return part.kind === 'reasoning' ? [] : [part]
      const { sealed, ...call } = part
      this.#steps.push({ callId: cleanId(part.id), sealed, text: '' })
      return [call]
    })
  }

  /** Stores the state of thoughts with the call after them, or else with the last call. */
  store({ keep, losses }: AnswerTarget): void {
    if (keep === undefined) return
    const steps = this.#steps.map(({ callId, sealed, text }) => ({
      callId,
      state: sealed === undefined || text === '' ? sealed : { ...sealed, text },
    }))
    for (const { callId, states } of groupByCall(steps)) {
      const stored = withinLimit(states, losses)
      if (stored.length > 0) keep(callId, stored)
    }
  }
}

/** Where the thoughts are too long, only the states that are of use without them are stored. */
function withinLimit(states: readonly ReasoningState[], losses: Losses): readonly ReasoningState[] {
  if (fitsStorage(states)) return states
  losses.add('reasoning_state')
  return states.flatMap(({ text, ...state }) => {
    const needsText = text !== undefined && (state.form === 'signature' || state.form === 'shown')
    return needsText ? [] : [state]
  })
}

type Recall = NonNullable<Call['recall']>

/** Puts stored state back into the messages of the assistant. */
export function restoreReasoning(
  messages: readonly ConversationMessage[],
  recall: Call['recall'],
): readonly ConversationMessage[] {
  if (recall === undefined) return messages
  return messages.map(message =>
    message.role === 'assistant' ? { ...message, parts: restoreParts(message.parts, recall) } : message,
  )
}

/** The thoughts before the first call go before all text: the provider that signed them requires this. */
function restoreParts(parts: readonly ConversationPart[], recall: Recall): readonly ConversationPart[] {
  const hasState = parts.some(part => (part.kind === 'reasoning' || part.kind === 'call') && part.sealed !== undefined)
  if (hasState) return parts
  const front: ReasoningPart[] = []
  let calls = 0
  const restored = parts.flatMap((part): readonly ConversationPart[] => {
    if (part.kind !== 'call') return [part]
    const { call, thoughts } = restoreCall(part, recall(part.id))
    if (calls++ > 0) return [...thoughts, call]
    front.push(...thoughts)
    return [call]
  })
  return [...front, ...restored]
}

interface RestoredCall {
  readonly call: CallPart
  readonly thoughts: readonly ReasoningPart[]
}

/** A signature of a part belongs to the call itself, if it is the last state. */
function restoreCall(call: CallPart, states: readonly ReasoningState[]): RestoredCall {
  const own = states.at(-1)?.form === 'thought' ? states.at(-1) : undefined
  const thoughts = (own === undefined ? states : states.slice(0, -1)).map(
    ({ text = '', ...sealed }): ReasoningPart => ({ kind: 'reasoning', text, sealed }),
  )
  return { call: own === undefined ? call : { ...call, sealed: own }, thoughts }
}
