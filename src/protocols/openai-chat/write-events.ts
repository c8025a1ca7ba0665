// Writes neutral events as the chunks of a chat stream, in the form that the strictest clients accept: each choice has
// its role once, in its first chunk. Calls have their own index and have their type once. Each chunk has choices. Usage
// has its own chunk, only for callers that asked for it.

import { bounds } from '../../base/bounds.ts'
import type { Usage } from '../../base/money/usage.ts'
import type { AnswerEvent, EventWriter, Finish, PartOpening } from '../neutral/answer.ts'
import type { Citation } from '../neutral/conversation.ts'
import { CUT_ARGUMENTS } from '../neutral/cut-call.ts'
import { addFinishLoss } from '../neutral/finish-reasons.ts'
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
import { CITATIONS_MAX, writeAnnotation } from './citations.ts'
import type { ChatFlavour } from './flavour.ts'
import { writeLogprobs } from './logprobs.ts'
import { writeReasoningState } from './reasoning-state.ts'
import { writeUsage } from './write-usage.ts'

interface ChoiceState {
  readonly index: number
  hasRole: boolean
  calls: number
  hasRefusal: boolean
  hasThoughts: boolean
  /** How many reasoning states were written. */
  states: number
  /** In UTF-16 code units, for citations. */
  textLength: number
  finish: Finish
  readonly steps: ChatStep[]
  readonly annotations: object[]
  images: number
  /** Chat has one text, one refusal and one field for thoughts, so parts of the same kind are written one by one. */
  readonly queues: Readonly<Record<PartOpening['part'], PartState[]>>
}

interface PartState {
  readonly choice: ChoiceState
  readonly opening: PartOpening
  readonly step: ChatStep | undefined
  /** The index of a call among the calls of its choice. */
  readonly call: number
  /** The open parts of the same kind in the choice. Only the first one is written. Calls do not wait. */
  readonly queue: PartState[]
  /** Events that wait until this part is the first in the queue. */
  held: PartEvent[]
  /** The start of the part in the text of the choice. */
  start: number
  wrote: boolean
  /** From the first citation of the whole text on, citations wait for the end of the text. */
  readonly waiting: Citation[]
}

type PartEvent = EventOf<'delta'> | EventOf<'cite'> | EventOf<'close'>

type EventOf<Kind extends AnswerEvent['kind']> = AnswerEvent & { readonly kind: Kind }

/** Adds to the thoughts of a step. Thoughts that are too long are not stored, so they need not be buffered further. */
function addToStep(step: ChatStep, more: string): void {
  const { text = '', chars = 0 } = step
  step.chars = chars + more.length
  if (text.length <= bounds.reasoningStateBytesMax) step.text = text + more
}

export class ChatEventWriter implements EventWriter {
  readonly #target: AnswerTarget
  readonly #flavour: ChatFlavour
  readonly #isLegacy: boolean
  /** The start and the end of each chunk. */
  readonly #head: string
  readonly #tail: string
  readonly #choices: ChoiceState[] = []
  /** The open parts. */
  readonly #parts = new Map<number, PartState>()
  #usage: Usage | undefined
  #tier: string | undefined

  constructor(target: AnswerTarget, flavour: ChatFlavour) {
    this.#target = target
    this.#flavour = flavour
    this.#isLegacy = isLegacy(target)
    const head = {
      id: buildAnswerId(target),
      object: 'chat.completion.chunk',
      created: target.createdS,
      model: target.model,
    }
    this.#head = `data: ${JSON.stringify(head).slice(0, -1)},"choices":[`
    this.#tail = target.wantsUsage ? '],"usage":null}\n\n' : ']}\n\n'
  }

  write(event: AnswerEvent): string {
    switch (event.kind) {
      case 'open':
        return this.#open(event)
      case 'delta':
      case 'cite':
      case 'close':
        return this.#take(event)
      case 'whole':
        return this.#whole(event)
      case 'finish': {
        const choice = this.#choice(event.choice)
        if (choice === undefined) return ''
        choice.finish = event.finish
        if (event.stopSequence !== undefined) this.#target.losses.add('stop_sequence')
        addFinishLoss(this.#target.losses, 'openai-chat', event)
        return ''
      }
      case 'usage':
        this.#usage = event.usage
        return ''
      case 'class':
        this.#tier = translateServedTier(event.serviceClass, this.#flavour.servedTiers, this.#target.losses)
        return ''
      case 'start':
        return ''
    }
  }

  end(): string {
    this.#choice(0)
    let text = ''
    const tier = this.#tier === undefined ? '' : `"service_tier":${JSON.stringify(this.#tier)},`
    const head = this.#head.replace('"choices":[', () => `${tier}"choices":[`)
    for (const choice of this.#choices) {
      storeReasoningState(choice.steps, this.#target)
      const has = { calls: choice.calls > 0, refusal: choice.hasRefusal, legacy: this.#isLegacy }
      const reason = chooseFinishReason(choice.finish, has)
      const last = `{"index":${choice.index},"delta":{},"logprobs":null,"finish_reason":"${reason}"}`
      const { annotations } = choice
      text += annotations.length === 0 ? this.#writeRole(choice) : this.#chunk(choice, { annotations })
      text += `${head}${last}${this.#tail}`
    }
    const usage = this.#target.wantsUsage ? this.#usage : undefined
    if (usage !== undefined) text += `${head}],"usage":${JSON.stringify(writeUsage(usage))}}\n\n`
    return `${text}data: [DONE]\n\n`
  }

  /** Undefined for a choice beyond the number that the caller asked for. */
  #choice(index: number): ChoiceState | undefined {
    if (index >= this.#target.choices) {
      this.#target.losses.add('choices')
      return undefined
    }
    while (this.#choices.length <= index) {
      this.#choices.push({
        index: this.#choices.length,
        hasRole: false,
        calls: 0,
        hasRefusal: false,
        hasThoughts: false,
        states: 0,
        textLength: 0,
        finish: 'other',
        steps: [],
        annotations: [],
        images: 0,
        queues: { text: [], refusal: [], reasoning: [], call: [] },
      })
    }
    return this.#choices[index]
  }

  /** Returns the chunk with the role, if it is not written yet. */
  #writeRole(choice: ChoiceState): string {
    if (choice.hasRole) return ''
    choice.hasRole = true
    const refusal = this.#flavour.hasOpenaiAdditions ? { refusal: null } : {}
    return this.#chunk(choice, { role: 'assistant', content: '', ...refusal })
  }

  #chunk(choice: ChoiceState, delta: object): string {
    return this.#chunkOf(choice, JSON.stringify(delta))
  }

  #chunkOf(choice: ChoiceState, delta: string, logprobs = 'null'): string {
    const role = this.#writeRole(choice)
    const fields = `"index":${choice.index},"delta":${delta},"logprobs":${logprobs},"finish_reason":null`
    return `${role}${this.#head}{${fields}}${this.#tail}`
  }

  /** Writes a chunk with text. There are hundreds of them, so only the text is converted to JSON. */
  #textChunk(choice: ChoiceState, field: 'content' | 'refusal' | 'reasoning_content', text: string): string {
    return this.#chunkOf(choice, `{"${field}":${JSON.stringify(text)}}`)
  }

  #open(event: EventOf<'open'>): string {
    const choice = this.#choice(event.choice)
    if (choice === undefined) return ''
    const isCall = event.part === 'call'
    const step: ChatStep | undefined = isCall ? { callId: event.id, sealed: event.sealed } : {}
    const hasState = isCall || event.part === 'reasoning'
    if (hasState) choice.steps.push(step)
    const call = isCall ? choice.calls++ : 0
    const queue = isCall ? [] : choice.queues[event.part]
    const part: PartState = {
      choice,
      opening: event,
      step,
      call,
      queue,
      held: [],
      start: choice.textLength,
      wrote: false,
      waiting: [],
    }
    queue.push(part)
    this.#parts.set(event.index, part)
    return event.part === 'call' ? this.#openCall(choice, event, call) : ''
  }

  #openCall(choice: ChoiceState, opening: PartOpening & { readonly part: 'call' }, index: number): string {
    const { id, name, custom, sealed } = opening
    if (this.#isLegacy) {
      if (index === 0) return this.#chunk(choice, { function_call: { name, arguments: '' } })
      this.#target.losses.add('tool_calls')
      return ''
    }
    const inner = custom ? { custom: { name, input: '' } } : { function: { name, arguments: '' } }
    const type = custom ? 'custom' : 'function'
    return this.#chunk(choice, { tool_calls: [{ index, id, type, ...inner, ...writeCallState(sealed) }] })
  }

  #take(event: PartEvent): string {
    const part = this.#parts.get(event.index)
    if (part === undefined) return ''
    if (part.queue[0] !== part) {
      part.held.push(event)
      return ''
    }
    let text = this.#writePartEvent(part, event)
    // If the first part is done, the next one is written.
    for (let [next] = part.queue; next !== undefined && next.held.length > 0; [next] = part.queue) {
      const { held } = next
      next.held = []
      for (const heldEvent of held) text += this.#writePartEvent(next, heldEvent)
    }
    return text
  }

  #writePartEvent(part: PartState, event: PartEvent): string {
    if (event.kind === 'delta') return this.#writeDelta(part, event)
    if (event.kind === 'close') return this.#close(part, event)
    const { citation } = event
    const { waiting } = part
    // Some upstreams cite a text before they write it.
    const waits = waiting.length > 0 || citation.start === undefined || citation.end === undefined
    if (waits && waiting.length < CITATIONS_MAX) waiting.push(citation)
    else this.#cite(part, citation)
    return ''
  }

  #writeDelta(part: PartState, { text, logprobs }: EventOf<'delta'>): string {
    if (text === '' && logprobs === undefined) return ''
    const { choice, opening } = part
    const isFirst = !part.wrote
    part.wrote = true
    switch (opening.part) {
      case 'text':
        choice.textLength += text.length
        if (logprobs === undefined) return this.#textChunk(choice, 'content', text)
        return this.#chunkOf(choice, JSON.stringify({ content: text }), JSON.stringify(writeLogprobs(logprobs)))
      case 'refusal':
        if (!this.#flavour.hasOpenaiAdditions) return this.#textChunk(choice, 'content', text)
        choice.hasRefusal = true
        return this.#textChunk(choice, 'refusal', text)
      case 'reasoning': {
        if (part.step !== undefined) addToStep(part.step, text)
        const between = isFirst && choice.hasThoughts ? '\n\n' : ''
        choice.hasThoughts = true
        return this.#textChunk(choice, 'reasoning_content', between + text)
      }
      case 'call':
        return this.#writeArguments(part, text)
    }
  }

  #writeArguments({ choice, call: index, opening }: PartState, text: string): string {
    if (this.#isLegacy) return index === 0 ? this.#chunk(choice, { function_call: { arguments: text } }) : ''
    const isCustom = opening.part === 'call' && opening.custom
    const inner = isCustom ? { custom: { input: text } } : { function: { arguments: text } }
    return this.#chunk(choice, { tool_calls: [{ index, ...inner }] })
  }

  /**
   * Collects citations. A choice sends them once, before its end: clients keep only the last list, or refuse a second.
   */
  #cite({ start, choice }: PartState, citation: Citation): void {
    const { annotations } = choice
    const annotation = writeAnnotation(citation, { start, end: choice.textLength })
    if (annotation === undefined || annotations.length >= CITATIONS_MAX) this.#target.losses.add('citations')
    else annotations.push(annotation)
  }

  #close(part: PartState, { index, sealed, isCut = false }: EventOf<'close'>): string {
    this.#parts.delete(index)
    const { choice, opening, step, queue } = part
    for (const citation of part.waiting) this.#cite(part, citation)
    queue.shift()
    if (queue[0] !== undefined) queue[0].start = choice.textLength
    if (step !== undefined && sealed !== undefined) step.sealed = sealed
    if (opening.part === 'call') return this.#closeCall(part, isCut)
    if (opening.part !== 'reasoning' || sealed === undefined || !this.#flavour.carriesReasoningState) return ''
    const packed = addThoughts(sealed, step ?? {}, this.#target.losses)
    return this.#chunk(choice, { encrypted_content: writeReasoningState(packed, choice.states++ === 0) })
  }

  /** Writes `{}` for a call without arguments, and a signature that was not known when the call was opened. */
  #closeCall(part: PartState, isCut: boolean): string {
    const { opening, step, choice, call: index } = part
    if (opening.part !== 'call') return ''
    const text = part.wrote || opening.custom ? '' : this.#writeArguments(part, isCut ? CUT_ARGUMENTS : '{}')
    const signature = opening.sealed === undefined ? writeCallState(step?.sealed) : {}
    if (this.#isLegacy || Object.keys(signature).length === 0) return text
    const inner = opening.custom ? { custom: { input: '' } } : { function: { arguments: '' } }
    return text + this.#chunk(choice, { tool_calls: [{ index, ...inner, ...signature }] })
  }

  #whole({ choice: index, part }: EventOf<'whole'>): string {
    const choice = this.#choice(index)
    const delta = choice === undefined ? {} : writeMedia(part, this.#target)
    // Clients merge the lists of several chunks by the index of the entries.
    if (choice !== undefined && Array.isArray(delta.images)) {
      delta.images = delta.images.map((image: object) => ({ index: choice.images++, ...image }))
    }
    return choice === undefined || Object.keys(delta).length === 0 ? '' : this.#chunk(choice, delta)
  }
}
