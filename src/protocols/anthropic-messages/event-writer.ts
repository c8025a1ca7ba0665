// Neutral events, as a stream of this dialect for a caller. It has one block open at a time, counted from 0 without a
// gap: what comes for another part meanwhile is held, and follows in the order in which the parts were opened.

import { bounds } from '../../base/bounds.ts'
import { beyondBound } from '../../base/errors.ts'
import type { Usage } from '../../base/money/usage.ts'
import { noUsage } from '../../base/money/usage.ts'
import type { AnswerEvent, EventWriter, Opening } from '../neutral/answer.ts'
import type { Citation, MediaPart, NativePart } from '../neutral/conversation.ts'
import { addLossOfEnd } from '../neutral/finish-reasons.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import { SERVED_TIER_LOSS } from '../neutral/service-tier.ts'
import type { AnswerAsk } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import * as blocks from './blocks-writer.ts'
import { writeStopReason } from './finish.ts'
import { tierOf, writeTotals, writeUsage } from './usage.ts'

type Finished = AnswerEvent & { readonly kind: 'finish' }
type Growth = { readonly text: string } | { readonly citation: Citation }

interface Part {
  readonly opening: Opening
  readonly held: Growth[]
  /** Citations of a text that has not begun. */
  readonly early: Json[]
  /** Its block is there: what stays empty never is one. */
  started: boolean
  closed: boolean
  sealed: Sealed | undefined
  /** The free text of a tool, which travels as one argument once it is whole. */
  input: string
}

/** A block that comes in one piece. */
interface Whole {
  readonly whole: Json
}

const sealedAt = (opening: Opening): Sealed | undefined => (opening.part === 'call' ? opening.sealed : undefined)

const sse = (json: Json): string => `event: ${json.type as string}\ndata: ${JSON.stringify(json)}\n\n`

const DELTA_HEAD = 'event: content_block_delta\ndata: {"type":"content_block_delta","index":'

export class MessageEventWriter implements EventWriter {
  readonly #to: AnswerAsk
  /** What holds the place of thoughts before a call. */
  readonly #missing: Json | undefined
  /** Opened and not yet written to their end, in the order of opening; the first one is written as it grows. */
  readonly #parts = new Map<number, Part | Whole>()
  #heldBytes = 0
  #blocks = 0
  /** Something else than text has begun. */
  #thought = false
  #text = ''
  #started = false
  #ended = false
  #calls = false
  #refused = false
  #finish: Finished | undefined
  #usage: Usage | undefined
  #serviceClass: string | undefined

  constructor(to: AnswerAsk) {
    this.#to = to
    this.#missing = blocks.missingThought(to)
  }

  write(event: AnswerEvent): string {
    if (this.#ended) return ''
    this.#take(event)
    return this.#told()
  }

  end(): string {
    if (this.#ended) return ''
    this.#start()
    for (const part of this.#parts.values()) if ('opening' in part) part.closed = true
    this.#advance()
    this.#ended = true
    const { finish = 'other', reason, stopSequence } = this.#finish ?? {}
    addLossOfEnd(this.#to.losses, 'anthropic-messages', { finish, reason })
    const stopReason = writeStopReason(finish, { calls: this.#calls, refused: this.#refused })
    this.#tell({
      type: 'message_delta',
      delta: {
        stop_reason: stopReason,
        stop_sequence: stopReason === 'stop_sequence' ? (stopSequence ?? null) : null,
        stop_details: blocks.stopDetails(stopReason),
        container: null,
      },
      usage: writeTotals(this.#usage ?? noUsage),
    })
    this.#tell({ type: 'message_stop' })
    return this.#told()
  }

  #told(): string {
    const text = this.#text
    this.#text = ''
    return text
  }

  #tell(json: Json): void {
    this.#text += sse(json)
  }

  #take(event: AnswerEvent): void {
    if (event.kind !== 'usage' && event.kind !== 'class') this.#start()
    switch (event.kind) {
      case 'open':
        return this.#open(event)
      case 'delta':
        return this.#grow(event.index, { text: event.text })
      case 'cite':
        return this.#grow(event.index, { citation: event.citation })
      case 'close':
        return this.#close(event.index, event.sealed)
      case 'whole':
        return this.#whole(event)
      case 'finish':
        if (event.choice === 0) this.#finish = event
        return
      case 'usage':
        this.#usage = event.usage
        return
      case 'class':
        this.#serviceClass = event.serviceClass
        // Only the first event has a place for it.
        if (this.#started && tierOf(event.serviceClass, this.#to.losses) !== 'standard') {
          this.#to.losses.add(SERVED_TIER_LOSS)
        }
    }
  }

  /** What was read nobody knows yet; the end of the stream tells. */
  #start(): void {
    if (this.#started) return
    this.#started = true
    const message = {
      ...blocks.messageHead(this.#to),
      content: [],
      ...{ stop_reason: null, stop_sequence: null, stop_details: null },
      ...blocks.messageTail,
      usage: writeUsage(this.#usage ?? noUsage, this.#serviceClass, this.#to.losses),
    }
    this.#tell({ type: 'message_start', message })
  }

  #open(event: AnswerEvent & { readonly kind: 'open' }): void {
    if (event.choice !== 0) return this.#to.losses.add('choices')
    if (event.part === 'call') this.#calls = true
    if (event.part === 'refusal') this.#refused = true
    const part: Part = {
      ...{ opening: event, held: [], early: [], started: false, closed: false, sealed: sealedAt(event), input: '' },
    }
    this.#parts.set(event.index, part)
    this.#advance()
  }

  #whole({ index, choice, part }: { index: number; choice: number; part: MediaPart | NativePart }): void {
    if (choice !== 0) return this.#to.losses.add('choices')
    if (part.kind !== 'native') return this.#to.losses.add(`answer.${part.kind}`)
    if (part.dialect !== 'anthropic-messages') return this.#to.losses.add(part.what)
    this.#parts.set(index, { whole: part.value as Json })
    this.#advance()
  }

  #grow(index: number, growth: Growth): void {
    const part = this.#parts.get(index) as Part | undefined
    if (part === undefined) return // of another choice
    if (part === this.#parts.values().next().value) return this.#writeGrowth(part, growth)
    this.#heldBytes += 'text' in growth ? growth.text.length : JSON.stringify(growth.citation).length
    if (this.#heldBytes > bounds.keptAnswerBytesMax) throw beyondBound('Too much of it must wait for its end.')
    part.held.push(growth)
  }

  #close(index: number, sealed: Sealed | undefined): void {
    const part = this.#parts.get(index) as Part | undefined
    if (part === undefined) return
    part.closed = true
    part.sealed = sealed ?? part.sealed
    this.#advance()
  }

  /** Writes what can be written: all of the first part that is there, and of the next ones once it is done. */
  #advance(): void {
    for (const [index, part] of this.#parts) {
      if ('whole' in part) this.#block(part.whole)
      else if (!this.#writePart(part)) return
      this.#parts.delete(index)
    }
  }

  /** Whether it is done. */
  #writePart(part: Part): boolean {
    const { opening, held } = part
    if (opening.part === 'call') this.#startCall(part)
    for (const growth of held.splice(0)) this.#writeGrowth(part, growth)
    if (part.closed) this.#endBlock(part)
    return part.closed
  }

  #writeGrowth(part: Part, growth: Growth): void {
    const { opening } = part
    if ('citation' in growth) {
      const citation = blocks.writeCitation(growth.citation)
      if (citation === undefined) return this.#to.losses.add('citations')
      if (part.started) this.#delta({ type: 'citations_delta', citation })
      else part.early.push(citation)
      return
    }
    const { text } = growth
    if (text === '') return
    if (opening.part === 'call' && opening.custom === true) {
      part.input += text
      return
    }
    this.#startBlock(part)
    if (opening.part === 'reasoning') this.#textDelta('"thinking_delta","thinking"', text)
    else if (opening.part !== 'call') this.#textDelta('"text_delta","text"', text)
    else {
      part.input = text
      this.#textDelta('"input_json_delta","partial_json"', text)
    }
  }

  #startCall(part: Part): void {
    if (!this.#thought && this.#missing !== undefined) this.#block(this.#missing)
    this.#startBlock(part)
  }

  #startBlock(part: Part): void {
    if (part.started) return
    part.started = true
    const { opening } = part
    if (opening.part === 'call') this.#blockStart(blocks.toolUse(blocks.cleanId(opening.id), opening.name, {}))
    else if (opening.part === 'reasoning') this.#blockStart({ type: 'thinking', thinking: '', signature: '' })
    else this.#blockStart({ type: 'text', text: '', citations: null })
    for (const citation of part.early.splice(0)) this.#delta({ type: 'citations_delta', citation })
  }

  #endBlock({ opening, early, started, input, sealed }: Part): void {
    if (early.length > 0) this.#to.losses.add('citations')
    if (opening.part === 'call') {
      const whole = opening.custom === true ? JSON.stringify({ input }) : input === '' ? '{}' : undefined
      if (whole !== undefined) this.#delta({ type: 'input_json_delta', partial_json: whole })
    }
    if (opening.part === 'reasoning' && started) {
      this.#delta({ type: 'signature_delta', signature: blocks.signatureOf(sealed) })
    }
    if (started) this.#blockStop()
    if (sealed === undefined) return
    if (opening.part === 'call') this.#block(blocks.callState(sealed, blocks.cleanId(opening.id)))
    else if (!started) this.#block(blocks.hiddenThought(sealed))
  }

  #block(block: Json): void {
    this.#blockStart(block)
    this.#blockStop()
  }

  #blockStart(block: Json): void {
    this.#thought ||= block.type !== 'text'
    this.#tell({ type: 'content_block_start', index: this.#blocks, content_block: block })
  }

  #delta(delta: Json): void {
    this.#tell({ type: 'content_block_delta', index: this.#blocks, delta })
  }

  /** As `#delta` writes it, for what there are hundreds of: only the text is turned into JSON. */
  #textDelta(typeAndField: string, text: string): void {
    const delta = `{"type":${typeAndField}:${JSON.stringify(text)}}`
    this.#text += `${DELTA_HEAD}${this.#blocks},"delta":${delta}}\n\n`
  }

  #blockStop(): void {
    this.#tell({ type: 'content_block_stop', index: this.#blocks++ })
  }
}
