// Writes neutral events as a stream of this dialect for a caller. This dialect has one block open at a time, and counts
// blocks from 0 without gaps. Content for other parts is held meanwhile and written in the order in which the parts were
// opened.

import { answerTooLarge } from '../../base/answer-too-large.ts'
import { bounds } from '../../base/bounds.ts'
import type { Usage } from '../../base/money/usage.ts'
import { noUsage } from '../../base/money/usage.ts'
import { writeJson } from '../../base/text/long-integers.ts'
import type { AnswerEvent, CallOpening, EventWriter, PartOpening } from '../neutral/answer.ts'
import type { Citation, MediaPart, NativePart } from '../neutral/conversation.ts'
import { CUT_ARGUMENTS, isWholeObject } from '../neutral/cut-call.ts'
import { addFinishLoss } from '../neutral/finish-reasons.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { SERVED_TIER_LOSS } from '../neutral/service-tier.ts'
import { ThoughtPings } from '../neutral/thought-pings.ts'
import type { AnswerTarget } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import { mayBeObject, parseArguments } from './arguments.ts'
import { writeStopReason } from './finish-reason.ts'
import { HiddenReasoning, hidesReasoning } from './hidden-reasoning.ts'
import { writeServiceTier, writeTotals, writeUsage } from './usage.ts'
import * as blocks from './write-blocks.ts'

type FinishEvent = AnswerEvent & { readonly kind: 'finish' }
type PartContent = { readonly text: string } | { readonly citation: Citation }

interface OpenPart {
  readonly opening: PartOpening
  readonly held: PartContent[]
  /** Citations that arrived before the text. */
  readonly early: Json[]
  /** The block is started. An empty part never becomes a block. */
  started: boolean
  closed: boolean
  isCut: boolean
  sealed: ReasoningState | undefined
  /** The arguments of a call, or the free text of a custom tool, which is written as one argument when it is complete. */
  input: string
  /** The arguments begin as an object, and are written as they arrive. */
  passesInput: boolean
}

/** A block that arrives in one piece. */
interface WholeBlock {
  readonly whole: Json
}

const findCallState = (opening: PartOpening): ReasoningState | undefined =>
  opening.part === 'call' ? opening.sealed : undefined

const formatEvent = (json: Json): string => `event: ${json.type as string}\ndata: ${writeJson(json)}\n\n`

/** The input of a call that was not written as it arrived. Input that was cut must not be valid JSON. */
function writeRemainder({ custom }: CallOpening, input: string, isCut: boolean): string {
  if (custom !== true) return isCut ? CUT_ARGUMENTS : writeJson(parseArguments(input))
  const json = JSON.stringify({ input })
  return isCut ? json.slice(0, -'"}'.length) : json
}

const DELTA_START = 'event: content_block_delta\ndata: {"type":"content_block_delta","index":'

export class MessageEventWriter implements EventWriter {
  readonly #request: AnswerTarget
  /** The placeholder for missing thinking before a call, if the caller needs one. */
  readonly #missingThought: Json | undefined
  /** The reasoning, if the caller did not ask for thinking. */
  readonly #hidden: HiddenReasoning | undefined
  readonly #pings: ThoughtPings
  /** Parts that are not completely written, in the order of their opening. The first is written as it arrives. */
  readonly #parts = new Map<number, OpenPart | WholeBlock>()
  #heldChars = 0
  #blockIndex = 0
  /** A block of another type than text has started. */
  #hasOtherThanText = false
  #text = ''
  #started = false
  #ended = false
  #hasCalls = false
  #hasRefusal = false
  /** SDKs repair the arguments of a call that are no valid JSON, and would run it without some of them. */
  #hasBadCall = false
  #finish: FinishEvent | undefined
  #usage: Usage | undefined
  #serviceClass: string | undefined

  constructor(request: AnswerTarget) {
    this.#request = request
    this.#missingThought = blocks.buildMissingThinking(request)
    this.#hidden = hidesReasoning(request) ? new HiddenReasoning() : undefined
    this.#pings = new ThoughtPings(request)
  }

  write(event: AnswerEvent): string {
    if (this.#ended) return ''
    this.#readEvent(event)
    return this.#takeText()
  }

  end(): string {
    if (this.#ended) return ''
    this.#start()
    for (const part of this.#parts.values()) if ('opening' in part) part.closed = true
    this.#writeReady()
    this.#hidden?.store(this.#request)
    this.#ended = true
    const { finish: given = 'other', reason, stopSequence } = this.#finish ?? {}
    const finish = this.#hasBadCall && (given === 'calls' || given === 'stop') ? 'malformed' : given
    if (this.#hasBadCall) this.#request.losses.add('tool_arguments')
    addFinishLoss(this.#request.losses, 'anthropic-messages', { finish, reason })
    const stopReason = writeStopReason(finish, { calls: this.#hasCalls, refused: this.#hasRefusal })
    this.#writeEvent({
      type: 'message_delta',
      delta: {
        stop_reason: stopReason,
        stop_sequence: stopReason === 'stop_sequence' ? (stopSequence ?? null) : null,
        stop_details: blocks.buildStopDetails(stopReason),
        container: null,
      },
      usage: writeTotals(this.#usage ?? noUsage),
    })
    this.#writeEvent({ type: 'message_stop' })
    return this.#takeText()
  }

  #takeText(): string {
    const text = this.#text
    this.#text = ''
    return text
  }

  #writeEvent(json: Json): void {
    this.#text += formatEvent(json)
  }

  #readEvent(event: AnswerEvent): void {
    if (event.kind !== 'usage' && event.kind !== 'class') this.#start()
    if (this.#hidden?.take(event)) {
      if (event.kind === 'delta' && this.#pings.isDue()) this.#writeEvent({ type: 'ping' })
      return
    }
    switch (event.kind) {
      case 'open':
        return this.#openPart(event)
      case 'delta':
        return this.#addContent(event.index, { text: event.text })
      case 'cite':
        return this.#addContent(event.index, { citation: event.citation })
      case 'close':
        return this.#close(event)
      case 'whole':
        return this.#addWholePart(event)
      case 'finish':
        if (event.choice === 0) this.#finish = event
        return
      case 'usage':
        this.#usage = event.usage
        return
      case 'class':
        this.#serviceClass = event.serviceClass
        // Only the start event has a field for the service tier.
        if (this.#started && writeServiceTier(event.serviceClass, this.#request.losses) !== 'standard') {
          this.#request.losses.add(SERVED_TIER_LOSS)
        }
    }
  }

  /** Writes the start event. The input tokens are usually not known yet; the last event reports them. */
  #start(): void {
    if (this.#started) return
    this.#started = true
    const message = {
      ...blocks.buildMessageHead(this.#request),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      ...blocks.messageTail,
      usage: writeUsage(this.#usage ?? noUsage, this.#serviceClass, this.#request.losses),
    }
    this.#writeEvent({ type: 'message_start', message })
  }

  #openPart(event: AnswerEvent & { readonly kind: 'open' }): void {
    if (event.choice !== 0) return this.#request.losses.add('choices')
    if (event.part === 'call') this.#hasCalls = true
    if (event.part === 'refusal') this.#hasRefusal = true
    const part: OpenPart = {
      opening: event,
      held: [],
      early: [],
      started: false,
      closed: false,
      isCut: false,
      sealed: findCallState(event),
      input: '',
      passesInput: false,
    }
    this.#parts.set(event.index, part)
    this.#writeReady()
  }

  #addWholePart({ index, choice, part }: { index: number; choice: number; part: MediaPart | NativePart }): void {
    if (choice !== 0) return this.#request.losses.add('choices')
    if (part.kind !== 'native') return this.#request.losses.add(`answer.${part.kind}`)
    if (part.dialect !== 'anthropic-messages') return this.#request.losses.add(part.what)
    this.#parts.set(index, { whole: part.value as Json })
    this.#writeReady()
  }

  #addContent(index: number, content: PartContent): void {
    const part = this.#parts.get(index) as OpenPart | undefined
    if (part === undefined) return // a part of another choice
    if (part === this.#parts.values().next().value) return this.#writeContent(part, content)
    this.#heldChars += 'text' in content ? content.text.length : JSON.stringify(content.citation).length
    if (this.#heldChars > bounds.idempotentAnswerBytesMax) throw answerTooLarge('Too much of it must wait for its end.')
    part.held.push(content)
  }

  #close({ index, sealed, isCut = false }: AnswerEvent & { readonly kind: 'close' }): void {
    const part = this.#parts.get(index) as OpenPart | undefined
    if (part === undefined) return
    part.closed = true
    part.isCut = isCut
    part.sealed = sealed ?? part.sealed
    this.#writeReady()
  }

  /** Writes all complete parts, and the content so far of the first open part. */
  #writeReady(): void {
    for (const [index, part] of this.#parts) {
      if ('whole' in part) this.#writeBlock(part.whole)
      else if (!this.#writePart(part)) return
      this.#parts.delete(index)
    }
  }

  /** Writes what is held of a part. Returns whether the part is complete. */
  #writePart(part: OpenPart): boolean {
    const { opening, held } = part
    if (opening.part === 'call') this.#startCall(part)
    for (const content of held.splice(0)) this.#writeContent(part, content)
    if (part.closed) this.#endBlock(part)
    return part.closed
  }

  #writeContent(part: OpenPart, content: PartContent): void {
    const { opening } = part
    if ('citation' in content) {
      const citation = blocks.writeCitation(content.citation, this.#request.losses)
      if (citation === undefined) return
      if (part.started) this.#writeDelta({ type: 'citations_delta', citation })
      else part.early.push(citation)
      return
    }
    const { text } = content
    if (text === '') return
    if (opening.part === 'call') return this.#writeInput(part, text, opening.custom === true)
    this.#startBlock(part)
    if (opening.part === 'reasoning') this.#writeTextDelta('"thinking_delta","thinking"', text)
    else this.#writeTextDelta('"text_delta","text"', text)
  }

  #writeInput(part: OpenPart, text: string, isCustom: boolean): void {
    part.input += text
    const isBegun = part.passesInput
    part.passesInput ||= !isCustom && mayBeObject(part.input)
    if (part.passesInput) this.#writeTextDelta('"input_json_delta","partial_json"', isBegun ? text : part.input)
  }

  #startCall(part: OpenPart): void {
    if (!this.#hasOtherThanText && this.#missingThought !== undefined) this.#writeBlock(this.#missingThought)
    this.#startBlock(part)
  }

  #startBlock(part: OpenPart): void {
    if (part.started) return
    part.started = true
    const { opening } = part
    if (opening.part === 'call')
      this.#writeBlockStart(blocks.buildToolUse(blocks.cleanId(opening.id), opening.name, {}))
    else if (opening.part === 'reasoning') this.#writeBlockStart({ type: 'thinking', thinking: '', signature: '' })
    else this.#writeBlockStart({ type: 'text', text: '', citations: null })
    for (const citation of part.early.splice(0)) this.#writeDelta({ type: 'citations_delta', citation })
  }

  #endBlock({ opening, early, started, input, passesInput, sealed, isCut }: OpenPart): void {
    if (early.length > 0) this.#request.losses.add('citations')
    if (opening.part === 'call') {
      const remainder = passesInput ? '' : writeRemainder(opening, input, isCut)
      if (remainder !== '') this.#writeDelta({ type: 'input_json_delta', partial_json: remainder })
      if (passesInput && !isCut && !isWholeObject(input)) this.#hasBadCall = true
    }
    if (opening.part === 'reasoning' && started) {
      this.#writeDelta({ type: 'signature_delta', signature: blocks.buildSignature(sealed) })
    }
    if (started) this.#writeBlockStop()
    if (sealed === undefined || this.#hidden !== undefined) return
    if (opening.part === 'call') this.#writeBlock(blocks.buildCallState(sealed, blocks.cleanId(opening.id)))
    else if (!started) this.#writeBlock(blocks.buildRedactedThinking(sealed))
  }

  #writeBlock(block: Json): void {
    this.#writeBlockStart(block)
    this.#writeBlockStop()
  }

  #writeBlockStart(block: Json): void {
    this.#hasOtherThanText ||= block.type !== 'text'
    this.#writeEvent({ type: 'content_block_start', index: this.#blockIndex, content_block: block })
  }

  #writeDelta(delta: Json): void {
    this.#writeEvent({ type: 'content_block_delta', index: this.#blockIndex, delta })
  }

  /** The same as `#writeDelta`, but faster, because there are hundreds of text deltas: only the text is serialized. */
  #writeTextDelta(typeAndField: string, text: string): void {
    const delta = `{"type":${typeAndField}:${JSON.stringify(text)}}`
    this.#text += `${DELTA_START}${this.#blockIndex},"delta":${delta}}\n\n`
  }

  #writeBlockStop(): void {
    this.#writeEvent({ type: 'content_block_stop', index: this.#blockIndex++ })
  }
}
