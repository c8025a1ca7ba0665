// Neutral events as the chunks of a chat stream, as strict as the strictest client: each choice says its role once and
// first, calls are counted for themselves and say their type once, every chunk has choices, and usage comes in a chunk
// of its own to those alone who asked.

import { bounds } from '../../base/bounds.ts'
import type { Usage } from '../../base/money/usage.ts'
import type { AnswerEvent, EventWriter, Finish, Opening } from '../neutral/answer.ts'
import { addLossOfEnd } from '../neutral/finish-reasons.ts'
import { servedTier } from '../neutral/service-tier.ts'
import type { AnswerAsk } from '../protocol.ts'
import { CITATIONS_MAX, writeAnnotation } from './citations.ts'
import type { Flavour } from './flavour.ts'
import { writeLogprobs } from './logprobs.ts'
import { writeEncrypted } from './reasoning-state.ts'
import type { Step } from './write-answer.ts'
import { answerId, finishReason, isLegacy, keepState, sealedCall, withText, writeMedia } from './write-answer.ts'
import { writeUsage } from './write-usage.ts'

interface ChoiceState {
  readonly index: number
  isBegun: boolean
  calls: number
  hasRefusal: boolean
  hasThoughts: boolean
  /** How many states of thoughts were written. */
  states: number
  /** In UTF-16 units, for citations. */
  textLength: number
  finish: Finish
  readonly steps: Step[]
  /** Of all that was said, in order. */
  readonly annotations: object[]
  images: number
  /** Texts, thoughts and refusals: chat has one of each, so that one part of a kind is told after the other. */
  readonly queues: Readonly<Record<Opening['part'], PartState[]>>
}

interface PartState {
  readonly choice: ChoiceState
  readonly opening: Opening
  readonly step: Step | undefined
  /** Of a call among the calls of its choice. */
  readonly call: number
  /** Of its kind in its choice, those that are not done; the first of them speaks, calls all at once. */
  readonly queue: PartState[]
  /** What waits until it is its turn. */
  held: Growth[]
  /** Where its text begins in that of the choice. */
  start: number
  wrote: boolean
}

type Growth = Of<'delta'> | Of<'cite'> | Of<'close'>

type Of<Kind extends AnswerEvent['kind']> = AnswerEvent & { readonly kind: Kind }

/** Thoughts that are too long are not kept, so nothing more of them need be held. */
const joinedWithin = (held: string, more: string): string =>
  held.length > bounds.keptReasoningBytesMax ? held : held + more

type Own = Pick<ChoiceState, 'queues' | 'annotations' | 'images'>

const own = (): Own => ({ queues: { text: [], refusal: [], reasoning: [], call: [] }, annotations: [], images: 0 })

export class ChatEventWriter implements EventWriter {
  readonly #to: AnswerAsk
  readonly #flavour: Flavour
  readonly #isLegacy: boolean
  /** What all chunks begin and end with. */
  readonly #head: string
  readonly #tail: string
  readonly #choices: ChoiceState[] = []
  /** Those that are open. */
  readonly #parts = new Map<number, PartState>()
  #usage: Usage | undefined
  #tier: string | undefined

  constructor(to: AnswerAsk, flavour: Flavour) {
    this.#to = to
    this.#flavour = flavour
    this.#isLegacy = isLegacy(to)
    const head = { id: answerId(to), object: 'chat.completion.chunk', created: to.createdS, model: to.model }
    this.#head = `data: ${JSON.stringify(head).slice(0, -1)},"choices":[`
    this.#tail = to.wantsUsage ? '],"usage":null}\n\n' : ']}\n\n'
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
        addLossOfEnd(this.#to.losses, 'openai-chat', event)
        return ''
      }
      case 'usage':
        this.#usage = event.usage
        return ''
      case 'class':
        this.#tier = servedTier(event.serviceClass, this.#flavour.servedTiers, this.#to.losses)
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
      keepState(choice.steps, this.#to)
      const has = { calls: choice.calls > 0, refusal: choice.hasRefusal, legacy: this.#isLegacy }
      const reason = finishReason(choice.finish, has)
      const last = `{"index":${choice.index},"delta":{},"logprobs":null,"finish_reason":"${reason}"}`
      const { annotations } = choice
      text += annotations.length === 0 ? this.#begun(choice) : this.#chunk(choice, { annotations })
      text += `${head}${last}${this.#tail}`
    }
    const usage = this.#to.wantsUsage ? this.#usage : undefined
    if (usage !== undefined) text += `${head}],"usage":${JSON.stringify(writeUsage(usage))}}\n\n`
    return `${text}data: [DONE]\n\n`
  }

  /** Undefined for a choice that nobody asked for. */
  #choice(index: number): ChoiceState | undefined {
    if (index >= this.#to.choices) {
      this.#to.losses.add('choices')
      return undefined
    }
    while (this.#choices.length <= index) {
      const fresh = { isBegun: false, calls: 0, hasRefusal: false, hasThoughts: false, states: 0, textLength: 0 }
      this.#choices.push({ index: this.#choices.length, ...fresh, finish: 'other', steps: [], ...own() })
    }
    return this.#choices[index]
  }

  /** The role, once and before all else. */
  #begun(choice: ChoiceState): string {
    if (choice.isBegun) return ''
    choice.isBegun = true
    const refusal = this.#flavour.isFull ? { refusal: null } : {}
    return this.#chunk(choice, { role: 'assistant', content: '', ...refusal })
  }

  #chunk(choice: ChoiceState, delta: object): string {
    return this.#chunkOf(choice, JSON.stringify(delta))
  }

  #chunkOf(choice: ChoiceState, delta: string, logprobs = 'null'): string {
    const begun = this.#begun(choice)
    const said = `"index":${choice.index},"delta":${delta},"logprobs":${logprobs},"finish_reason":null`
    return `${begun}${this.#head}{${said}}${this.#tail}`
  }

  /** A chunk of one text, of which there are hundreds: nothing else is turned into JSON. */
  #textChunk(choice: ChoiceState, field: 'content' | 'refusal' | 'reasoning_content', text: string): string {
    return this.#chunkOf(choice, `{"${field}":${JSON.stringify(text)}}`)
  }

  #open(event: Of<'open'>): string {
    const choice = this.#choice(event.choice)
    if (choice === undefined) return ''
    const isCall = event.part === 'call'
    const step: Step | undefined = isCall ? { callId: event.id, sealed: event.sealed } : {}
    const seals = isCall || event.part === 'reasoning'
    if (seals) choice.steps.push(step)
    const call = isCall ? choice.calls++ : 0
    const queue = isCall ? [] : choice.queues[event.part]
    const part = { choice, opening: event, step, call, queue, held: [], start: choice.textLength, wrote: false }
    queue.push(part)
    this.#parts.set(event.index, part)
    return event.part === 'call' ? this.#openCall(choice, event, call) : ''
  }

  #openCall(choice: ChoiceState, opening: Opening & { readonly part: 'call' }, index: number): string {
    const { id, name, custom, sealed } = opening
    if (this.#isLegacy) {
      if (index === 0) return this.#chunk(choice, { function_call: { name, arguments: '' } })
      this.#to.losses.add('tool_calls')
      return ''
    }
    const said = custom ? { custom: { name, input: '' } } : { function: { name, arguments: '' } }
    const type = custom ? 'custom' : 'function'
    return this.#chunk(choice, { tool_calls: [{ index, id, type, ...said, ...sealedCall(sealed) }] })
  }

  #take(event: Growth): string {
    const part = this.#parts.get(event.index)
    if (part === undefined) return ''
    if (part.queue[0] !== part) {
      part.held.push(event)
      return ''
    }
    let text = this.#tell(part, event)
    // Whoever waited for its turn has it.
    for (let [next] = part.queue; next !== undefined && next.held.length > 0; [next] = part.queue) {
      const { held } = next
      next.held = []
      for (const waiting of held) text += this.#tell(next, waiting)
    }
    return text
  }

  #tell(part: PartState, event: Growth): string {
    if (event.kind === 'delta') return this.#grow(part, event)
    return event.kind === 'cite' ? this.#cite(part, event) : this.#close(part, event)
  }

  #grow(part: PartState, { text, logprobs }: Of<'delta'>): string {
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
        if (!this.#flavour.isFull) return this.#textChunk(choice, 'content', text)
        choice.hasRefusal = true
        return this.#textChunk(choice, 'refusal', text)
      case 'reasoning': {
        if (part.step !== undefined) part.step.text = joinedWithin(part.step.text ?? '', text)
        const between = isFirst && choice.hasThoughts ? '\n\n' : ''
        choice.hasThoughts = true
        return this.#textChunk(choice, 'reasoning_content', between + text)
      }
      case 'call':
        return this.#growCall(part, text)
    }
  }

  #growCall({ choice, call: index, opening }: PartState, text: string): string {
    if (this.#isLegacy) return index === 0 ? this.#chunk(choice, { function_call: { arguments: text } }) : ''
    const isCustom = opening.part === 'call' && opening.custom
    const said = isCustom ? { custom: { input: text } } : { function: { arguments: text } }
    return this.#chunk(choice, { tool_calls: [{ index, ...said }] })
  }

  /** All of a choice go out at once before its end: clients take the last list for all, or refuse a second one. */
  #cite({ start, choice }: PartState, { citation }: Of<'cite'>): string {
    const { annotations } = choice
    const annotation = writeAnnotation(citation, { start, end: choice.textLength })
    if (annotation === undefined || annotations.length >= CITATIONS_MAX) this.#to.losses.add('citations')
    else annotations.push(annotation)
    return ''
  }

  #close(part: PartState, { index, sealed }: Of<'close'>): string {
    this.#parts.delete(index)
    const { choice, opening, step, queue } = part
    queue.shift()
    if (queue[0] !== undefined) queue[0].start = choice.textLength
    if (step !== undefined && sealed !== undefined) step.sealed = sealed
    if (opening.part === 'call') return this.#closeCall(part)
    if (opening.part !== 'reasoning' || sealed === undefined || !this.#flavour.bearsState) return ''
    const packed = withText(sealed, step?.text ?? '')
    return this.#chunk(choice, { encrypted_content: writeEncrypted(packed, choice.states++ === 0) })
  }

  /** A call without arguments has an object without fields. A signature that came late still goes out. */
  #closeCall(part: PartState): string {
    const { opening, step, choice, call: index } = part
    if (opening.part !== 'call') return ''
    const text = part.wrote || opening.custom ? '' : this.#growCall(part, '{}')
    const late = opening.sealed === undefined ? sealedCall(step?.sealed) : {}
    if (this.#isLegacy || Object.keys(late).length === 0) return text
    const said = opening.custom ? { custom: { input: '' } } : { function: { arguments: '' } }
    return text + this.#chunk(choice, { tool_calls: [{ index, ...said, ...late }] })
  }

  #whole({ choice: index, part }: Of<'whole'>): string {
    const choice = this.#choice(index)
    const delta = choice === undefined ? {} : writeMedia(part, this.#to)
    // Clients put the lists of several pieces together by the index of their members.
    if (choice !== undefined && Array.isArray(delta.images)) {
      delta.images = delta.images.map((image: object) => ({ index: choice.images++, ...image }))
    }
    return choice === undefined || Object.keys(delta).length === 0 ? '' : this.#chunk(choice, delta)
  }
}
