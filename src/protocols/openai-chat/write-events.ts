// Neutral events as the chunks of a chat stream, as strict as the strictest client: each choice says its role once and
// first, calls are counted for themselves and say their type once, every chunk has choices, and usage comes in a chunk
// of its own to those alone who asked.

import type { AnswerEvent, EventWriter, Finish, Opening } from '../answer.ts'
import type { Usage } from '../../base/usage.ts'
import type { AnswerAsk } from '../protocol.ts'
import { writeAnnotation } from './citations.ts'
import type { Flavour } from './flavour.ts'
import { writeLogprobs } from './logprobs.ts'
import { writeEncrypted } from './reasoning-state.ts'
import type { Step } from './write-answer.ts'
import { answerId, finishReason, isLegacy, keepState, sealedCall, writeMedia } from './write-answer.ts'
import { asTier } from './write-conversation.ts'
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
}

interface PartState {
  readonly choice: ChoiceState
  readonly opening: Opening
  readonly step: Step | undefined
  /** Of a call among the calls of its choice. */
  readonly call: number
  /** Where its text begins in that of the choice. */
  readonly start: number
  wrote: boolean
}

type Of<Kind extends AnswerEvent['kind']> = AnswerEvent & { readonly kind: Kind }

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
        return this.#grow(event)
      case 'cite':
        return this.#cite(event)
      case 'close':
        return this.#close(event)
      case 'whole':
        return this.#whole(event)
      case 'finish': {
        const choice = this.#choice(event.choice)
        if (choice !== undefined) choice.finish = event.finish
        return ''
      }
      case 'usage':
        this.#usage = event.usage
        return ''
      case 'class':
        this.#tier = asTier(event.serviceClass, this.#flavour)
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
      text += `${this.#begun(choice)}${head}${last}${this.#tail}`
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
      this.#choices.push({ index: this.#choices.length, ...fresh, finish: 'other', steps: [] })
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

  #chunk(choice: ChoiceState, delta: object, logprobs = 'null'): string {
    const begun = this.#begun(choice)
    const said = `"index":${choice.index},"delta":${JSON.stringify(delta)},"logprobs":${logprobs},"finish_reason":null`
    return `${begun}${this.#head}{${said}}${this.#tail}`
  }

  #open(event: Of<'open'>): string {
    const choice = this.#choice(event.choice)
    if (choice === undefined) return ''
    const isCall = event.part === 'call'
    const step: Step | undefined = isCall ? { callId: event.id, sealed: event.sealed } : {}
    const seals = isCall || event.part === 'reasoning'
    if (seals) choice.steps.push(step)
    const call = isCall ? choice.calls++ : 0
    this.#parts.set(event.index, { choice, opening: event, step, call, start: choice.textLength, wrote: false })
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

  #grow({ index, text, logprobs }: Of<'delta'>): string {
    const part = this.#parts.get(index)
    if (part === undefined || (text === '' && logprobs === undefined)) return ''
    const { choice, opening } = part
    const isFirst = !part.wrote
    part.wrote = true
    switch (opening.part) {
      case 'text':
        choice.textLength += text.length
        return this.#chunk(choice, { content: text }, logprobs && JSON.stringify(writeLogprobs(logprobs)))
      case 'refusal':
        if (!this.#flavour.isFull) return this.#chunk(choice, { content: text })
        choice.hasRefusal = true
        return this.#chunk(choice, { refusal: text })
      case 'reasoning': {
        const between = isFirst && choice.hasThoughts ? '\n\n' : ''
        choice.hasThoughts = true
        return this.#chunk(choice, { reasoning_content: between + text })
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

  #cite({ index, citation }: Of<'cite'>): string {
    const part = this.#parts.get(index)
    if (part === undefined) return ''
    const annotation = writeAnnotation(citation, { start: part.start, end: part.choice.textLength })
    if (annotation !== undefined) return this.#chunk(part.choice, { annotations: [annotation] })
    this.#to.losses.add('citations')
    return ''
  }

  #close({ index, sealed }: Of<'close'>): string {
    const part = this.#parts.get(index)
    if (part === undefined) return ''
    this.#parts.delete(index)
    const { choice, opening, step } = part
    if (step !== undefined && sealed !== undefined) step.sealed = sealed
    if (opening.part === 'call') return this.#closeCall(part)
    if (opening.part !== 'reasoning' || sealed === undefined || !this.#flavour.bearsState) return ''
    return this.#chunk(choice, { encrypted_content: writeEncrypted(sealed, choice.states++ === 0) })
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
    return choice === undefined || Object.keys(delta).length === 0 ? '' : this.#chunk(choice, delta)
  }
}
