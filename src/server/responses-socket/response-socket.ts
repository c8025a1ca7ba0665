// One WebSocket of the Responses endpoint: queues its messages, runs each as a call, and writes the answers.
//
// Messages with one stream id, or without any, are answered one after another; those with different stream ids at the
// same time.

import { bounds } from '../../base/bounds.ts'
import type { Deadline, Deadlines } from '../../base/deadlines.ts'
import { errorRows, Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import type { PreviousResponses } from '../../features/stored-responses/previous-response.ts'
import type { BodyBudget, BodyLease } from '../../http/server/body-budget.ts'
import { bodyWriterOf, SSE_TYPE } from '../../http/server/event-stream.ts'
import type { ServerSocket, WebSocketOwner } from '../../http/server/web-socket.ts'
import type { Gate } from '../../limits/gate.ts'
import type { Authenticate } from '../../pipeline/10-authenticate.ts'
import type { LimitRate } from '../../pipeline/20-limit-rate.ts'
import { requestDemand } from '../../pipeline/20-limit-rate.ts'
import type { Caller, StopReason } from '../../pipeline/exchange.ts'
import type { RunCall, Stages } from '../../pipeline/pipeline.ts'
import { findOrRefresh } from '../../pipeline/pipeline.ts'
import { Losses } from '../../protocols/neutral/losses.ts'
import { removeGatewayIds } from '../../protocols/openai-responses/stored-responses.ts'
import { writeWarmUp } from '../../protocols/openai-responses/warm-up.ts'
import { protocols } from '../../protocols/protocols.ts'
import { isObject } from '../../protocols/request/json-body.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { LargeBodyReader } from '../../protocols/request/large-json.ts'
import type { RefusalParts } from '../refusal-response.ts'
import { writeRefusal } from '../refusal-response.ts'
import { mintOrRefusal, NO_ID } from '../request-ids.ts'
import type { CreateMessage } from './create-message.ts'
import { buildBody, inputItems, joinItems, peekStreamId, readMessage } from './create-message.ts'
import { EventSink } from './event-sink.ts'
import type { OpeningRequest } from './message-ingress.ts'
import { MessageIngress } from './message-ingress.ts'
import type { ConnectionTurns } from './turn-memory.ts'

export interface ResponseSocketParts extends RefusalParts, Pick<Stages, 'route' | 'refreshModels' | 'refuseUnread'> {
  readonly runCall: RunCall
  readonly authenticate: Authenticate
  readonly limitRate: LimitRate
  readonly previousResponses: Pick<PreviousResponses, 'find' | 'storedAt' | 'itemsOf'>
  readonly gate: Pick<Gate, 'isClosed' | 'refuse' | 'refuseUnlessAdmissible' | 'measure'>
  readonly bodyBudget: BodyBudget
  readonly largeJson: Pick<LargeBodyReader, 'read'>
  readonly deadlines: Deadlines
  /** Whether the gateway refuses new calls, because it shuts down. */
  readonly drain: { readonly isClosed: boolean }
  /** How long a client may read nothing of what was sent. */
  readonly stallMs: number
  /** How long a connection may be open. */
  readonly socketMs: number
  readonly opening: OpeningRequest
  /** Who opened the connection. Each message is authenticated again. */
  readonly caller: Caller
  readonly turns: ConnectionTurns
  /** Called once, when the connection has closed. */
  onClose(): void
  mintId(): number
}

/** A message that has arrived and waits for its turn. */
interface WaitingMessage {
  stream: string
  /**
   * Bytes until the message is read. A refusal where it is not valid or not admitted: it runs as a call that is refused
   * when its body is read.
   */
  message: Buffer | CreateMessage | Refusal
  /** Counts the bytes of the message until the pipeline has them. */
  readonly lease: BodyLease
}

/** The stream of messages without a stream id. No stream id is empty. */
const NO_STREAM = ''

const notText = new Refusal('json_invalid', 'binary', { hint: hintOf('call_not_text') })

/** The call is ended by the gateway, so that its caller does not pay as one that leaves. */
const memoryShort: StopReason = { outcome: 'gateway_fault', refusal: new Refusal('overloaded', 'memory is short') }

const protocol = protocols['openai-responses']

/** Close codes of RFC 6455 and its registry. */
const [GOING_AWAY, POLICY_VIOLATION, SERVICE_RESTART, TRY_AGAIN_LATER] = [1001, 1008, 1012, 1013]

export class ResponseSocket implements WebSocketOwner {
  readonly #parts: ResponseSocketParts
  readonly #hasComments: boolean
  readonly #bearer: MessageIngress
  #socket: ServerSocket | undefined
  #expiry: Deadline | undefined
  #keyCheck: Deadline | undefined
  #isClosed = false
  /** Messages are read one after another, because reading a large one takes time. */
  #reading: Promise<void> = Promise.resolve()
  /** Messages that have arrived and have not started. */
  #unstarted = 0
  #waiting: readonly WaitingMessage[] = []
  readonly #running = new Map<string, MessageIngress>()
  readonly #streams = new Set<string>()
  /** How many messages may come that need no answer: one for each response, and for the last of another connection. */
  #notes = 1
  /** Running messages that only wait until the client has read their answer. */
  #unread = 0
  #room: PromiseWithResolvers<void> | undefined
  /** Closes the connection of a client that reads nothing. */
  #stall: Deadline | undefined
  readonly #onRead = new Set<() => void>()
  #isEnding = false

  constructor(parts: ResponseSocketParts) {
    this.#parts = parts
    this.#hasComments = parts.opening.headers['x-weir-comments']?.trim().toLowerCase() === 'on'
    const { opening } = parts
    const readBody = (): Promise<Buffer> => Promise.reject(notText)
    const noCall = { callId: 0, requestId: '', idempotencyKey: undefined }
    this.#bearer = new MessageIngress({ ...noCall, opening, readBody, closeConnection() {} })
  }

  onOpen(socket: ServerSocket): void {
    this.#socket = socket
    this.#expiry = this.#parts.deadlines.after(this.#parts.socketMs, () => this.closeIfOver())
    this.#checkKeyLater()
  }

  onMessage(message: string | Uint8Array): void {
    if (this.#isClosed) return
    if (this.#unstarted >= bounds.socketMessagesWaitingMax) {
      return this.#close(POLICY_VIOLATION, `More than ${bounds.socketMessagesWaitingMax} messages are waiting.`)
    }
    this.#unstarted++
    const waiting = this.#receive(message)
    this.#reading = this.#reading.then(() => this.#take(waiting))
  }

  onRoom(): void {
    for (const onRead of this.#onRead) onRead()
    if (this.#socket!.getBufferedAmount() > 0) return this.#stall?.extend(this.#parts.stallMs)
    this.#endStall()
  }

  onClose(): void {
    this.#isClosed = true
    this.#expiry?.cancel()
    this.#keyCheck?.cancel()
    for (const { lease } of this.#waiting) lease.release()
    this.#waiting = []
    for (const ingress of this.#running.values()) ingress.disconnect()
    this.#endStall()
    this.#parts.onClose()
  }

  /** Closes a connection that may not go on, once its responses have ended. */
  closeIfOver(): void {
    if (this.#running.size > 0 || this.#unstarted > 0) return
    if (this.#parts.drain.isClosed) return this.#close(SERVICE_RESTART, 'The gateway is shutting down.')
    if (!this.#isExpired || this.#isEnding) return
    this.#isEnding = true
    void this.#refuse(new Refusal('socket_expired', 'idle')).then(() =>
      this.#close(GOING_AWAY, 'Open a new WebSocket.'),
    )
  }

  /** Whether nothing is generated. The connection may be receiving a large message, or its client does not read. */
  get isIdle(): boolean {
    return this.#running.size === this.#unread
  }

  get accountId(): number {
    return this.#parts.caller.accountId
  }

  closeForMemory(): void {
    for (const ingress of this.#running.values()) ingress.cut(memoryShort)
    this.#close(TRY_AGAIN_LATER, 'The gateway is overloaded.')
  }

  #checkKeyLater(): void {
    this.#keyCheck = this.#parts.deadlines.after(bounds.socketKeyCheckMs, () => void this.#checkKey())
  }

  /** Closes an idle connection whose key has ended. A message is checked when it arrives, and while it runs. */
  async #checkKey(): Promise<void> {
    try {
      if (this.#running.size === 0) await this.#parts.authenticate(this.#bearer)
    } catch (fault) {
      const status = fault instanceof Refusal ? errorRows[fault.code].status : undefined
      if (status === 401 || status === 403) this.#close(POLICY_VIOLATION, 'The API key is not valid.')
    }
    if (!this.#isClosed) this.#checkKeyLater()
  }

  get #isExpired(): boolean {
    return this.#expiry !== undefined && this.#expiry.dueMs <= this.#parts.deadlines.nowMs()
  }

  /** A client that has not read everything does not get the reason: its connection would stay until it reads. */
  #close(code: number, reason: string): void {
    if (this.#isClosed || this.#socket === undefined) return
    if (this.#socket.getBufferedAmount() > 0) this.#socket.terminate()
    else this.#socket.close(code, reason)
  }

  /** Counts the bytes at once. Of a message that is refused for them, or dropped later, only the refusal waits. */
  #receive(message: string | Uint8Array): WaitingMessage {
    const lease = this.#parts.bodyBudget.open({ class: 'caller', name: `account ${this.accountId}` })
    const waiting: WaitingMessage = { stream: NO_STREAM, message: notText, lease }
    if (typeof message !== 'string') return waiting
    waiting.stream = peekStreamId(message) ?? NO_STREAM
    try {
      lease.addBytes(Buffer.byteLength(message))
      waiting.message = Buffer.from(message)
    } catch (fault) {
      waiting.message = asRefusal(fault)
    }
    lease.onDrop(refusal => (waiting.message = refusal))
    return waiting
  }

  async #take(waiting: WaitingMessage): Promise<void> {
    const { lease } = waiting
    if (this.#isClosed) return lease.release()
    const message = await this.#read(waiting).catch(asRefusal)
    if (message === undefined || this.#isClosed) {
      this.#unstarted--
      lease.release()
      return this.closeIfOver()
    }
    if (message instanceof Refusal) lease.release()
    if (!(waiting.message instanceof Refusal)) waiting.message = message
    this.#waiting = [...this.#waiting, waiting]
    this.#startWaiting()
  }

  /** Undefined for a message that needs no answer. */
  async #read(waiting: WaitingMessage): Promise<CreateMessage | undefined> {
    const { message: bytes } = waiting
    if (!Buffer.isBuffer(bytes)) throw bytes
    const isNote = bytes.length <= bounds.socketNoteBytesMax
    if (!isNote) await this.#admit()
    const setStream = (id: string): void => void (waiting.stream = id)
    const message = readMessage(await this.#parse(bytes, () => this.#throwIfClosed()), setStream)
    if (message === undefined && !(isNote && this.#notes-- > 0)) {
      this.#close(POLICY_VIOLATION, 'Send one small response.processed for each response.')
    }
    const { streamId } = message ?? {}
    if (streamId === undefined || this.#streams.has(streamId)) return message
    if (this.#streams.size >= bounds.socketStreamsMax) {
      const hint = hintOf('call_streams_max', { max: bounds.socketStreamsMax })
      throw new Refusal('socket_streams_too_many', 'on one connection', { hint, param: 'stream_id' })
    }
    this.#streams.add(streamId)
    return message
  }

  /** Checks a message before it is parsed, as a call is checked before its body is read. */
  async #admit(): Promise<void> {
    const { authenticate, gate, refuseUnread } = this.#parts
    const caller = await authenticate(this.#bearer)
    const refusal = gate.refuseUnlessAdmissible(caller) ?? refuseUnread(caller)
    if (refusal !== undefined) throw refusal
  }

  /** A large body is parsed in another thread, and counted there for its account. */
  async #parse(body: Buffer, throwIfGone: () => void): Promise<Buffer> {
    if (body.length <= bounds.smallBodyBytesMax) return body
    return await this.#parts.largeJson.read(body, { name: `account ${this.#parts.caller.accountId}`, throwIfGone })
  }

  #throwIfClosed(): void {
    if (this.#isClosed) throw new Refusal('body_too_slow', 'the client has disconnected')
  }

  /** Starts each waiting message whose stream is free. */
  #startWaiting(): void {
    for (const waiting of this.#waiting) {
      if (this.#running.size >= bounds.socketResponsesMax) return
      if (this.#running.has(waiting.stream)) continue
      this.#waiting = this.#waiting.filter(other => other !== waiting)
      this.#unstarted--
      void this.#run(waiting)
    }
  }

  async #run(waiting: WaitingMessage): Promise<void> {
    const { stream, lease } = waiting
    const id = mintOrRefusal(this.#parts.mintId)
    if (id instanceof Refusal) waiting.message = id
    const callId = id instanceof Refusal ? NO_ID : id
    const message = waiting.message as CreateMessage | Refusal
    const requestId = textId('req', callId)
    const previous = this.#previousItems(message)
    const ingress = new MessageIngress({
      opening: this.#parts.opening,
      callId,
      requestId,
      idempotencyKey: message instanceof Refusal ? undefined : message.idempotencyKey,
      readBody: async (_caller, throwIfGone) => {
        // It may have been dropped since the call began.
        if (message instanceof Refusal || waiting.message instanceof Refusal) throw waiting.message
        if (previous !== undefined) {
          lease.addBytes(previous.length)
          // The same message again must be the same request, also when its previous response is not remembered any more.
          const hasKey = message.idempotencyKey !== undefined
          if (hasKey) ingress.claimedBody = await this.#parse(buildBody(message, undefined), throwIfGone)
        }
        const body = await this.#parse(buildBody(message, previous), throwIfGone)
        lease.release()
        return body
      },
      closeConnection: () => this.#socket?.terminate(),
    })
    this.#running.set(stream, ingress)
    const answered = { stream, message, continues: previous !== undefined }
    try {
      const response = await this.#respond(ingress, message).catch(fault => this.#writeRefusal(fault, requestId))
      const last = await this.#write(response, answered)
      if (!(message instanceof Refusal)) await this.#remember(stream, message, { last, previous })
      if (response.status === 401) this.#close(POLICY_VIOLATION, 'The API key is not valid.')
    } catch (fault) {
      await this.#write(this.#writeRefusal(fault, requestId), answered).catch(() => {}) // the socket is closed
    } finally {
      lease.release()
      this.#notes++
      this.#unread++
      await this.#whenRoom()
      this.#unread--
      this.#running.delete(stream)
      this.#startWaiting()
      this.closeIfOver()
    }
  }

  #respond(ingress: MessageIngress, message: CreateMessage | Refusal): Promise<Response> {
    const { drain, runCall } = this.#parts
    if (drain.isClosed) return Promise.reject(new Refusal('draining', 'a message'))
    if (this.#isExpired) return Promise.reject(new Refusal('socket_expired', 'a message'))
    if (message instanceof Refusal && ingress.callId === NO_ID) return Promise.reject(message)
    if (message instanceof Refusal || !message.warmsUp) return runCall(ingress, protocol)
    return this.#warmUp(ingress)
  }

  /**
   * Nothing is generated and nothing is charged. It counts as a request in the limits of the key, and is refused where
   * the call that continues it would be refused: for its model, or for the response before it.
   */
  async #warmUp(ingress: MessageIngress): Promise<Response> {
    const { authenticate, gate, limitRate, previousResponses, route, deadlines, dateMs } = this.#parts
    const sinceMs = deadlines.nowMs()
    let caller: Caller
    try {
      caller = await authenticate(ingress)
    } catch (fault) {
      if (!(fault instanceof Refusal)) throw fault
      const headers = { 'X-Pipeline-Auth': `fail (${Math.round(deadlines.nowMs() - sinceMs)}ms)` }
      throw new Refusal(fault.code, fault.message, { ...fault.extras, headers })
    }
    if (gate.isClosed) throw gate.refuse('shut')
    const permit = await limitRate(caller, requestDemand)
    const call = protocol.readCall(await ingress.readBody('json', caller), ingress)
    const previous = await previousResponses.find(call, permit)
    const storedAt = previousResponses.storedAt(previous)
    await findOrRefresh(() => route(permit, { call, protocol, storedAt }), this.#parts)
    if (previous !== undefined) await previousResponses.itemsOf(previous) // throws where only its upstream stores it
    const { model, json } = call
    const createdS = Math.floor(dateMs() / 1_000)
    const { requestId } = ingress
    const target = { requestId, model, createdS, wantsUsage: true, choices: 1, json, losses: new Losses() }
    const headers = { 'content-type': SSE_TYPE, 'x-request-id': requestId }
    return new Response(writeWarmUp(target), { headers })
  }

  #previousItems(message: CreateMessage | Refusal): Buffer | undefined {
    if (message instanceof Refusal || message.previousId === undefined) return undefined
    return this.#parts.turns.find(message.previousId)
  }

  /**
   * The gateway stores other responses, and finds them by their ids. Without the conversation before it a response is
   * not remembered: its next turn would lose that part.
   */
  async #remember(stream: string, message: CreateMessage, { last, previous }: Answered): Promise<void> {
    if (this.#isClosed || last === undefined || (message.store && !message.warmsUp)) return
    const own = inputItems(message)
    const before = previous ?? (await this.#storedItems(message))
    if (before === undefined || this.#isClosed) return
    const bytes = last.length + own.length + before.length
    const response = bytes > bounds.storedResponseBytesMax ? undefined : endedResponse(last)
    if (response === undefined) return
    const output = response.output.map(item => JSON.stringify(item)).join(',')
    const items = joinItems([before, own, Buffer.from(output)])
    this.#parts.turns.remember(stream, { responseId: response.id, items })
  }

  /** The conversation before a message, from the stored responses. Undefined where it is not stored here. */
  async #storedItems({ previousId }: CreateMessage): Promise<Buffer | undefined> {
    if (previousId === undefined) return Buffer.alloc(0)
    const { previousResponses, caller } = this.#parts
    const found = previousResponses.itemsOf({ accountId: caller.accountId, id: previousId })
    const items = await found.catch(() => undefined)
    return items && Buffer.from(JSON.stringify(removeGatewayIds(items)).slice(1, -1))
  }

  /** Writes a response as messages. Returns the last event of a stream. */
  async #write(response: Response, { stream, message, continues }: AnsweredMessage): Promise<string | undefined> {
    if (this.#isClosed) return void (await bodyWriterOf(response)?.({ write: () => undefined }))
    const previousId = message instanceof Refusal || !continues ? undefined : message.previousId
    const sink = new EventSink({
      socket: this.#socket!,
      streamId: stream === NO_STREAM ? undefined : stream,
      previousId,
      hasComments: this.#hasComments,
      room: () => this.#whenRoom(),
      onRead: this.#onRead,
    })
    const headers = headersOf(response)
    const writeBody = bodyWriterOf(response)
    const isStream = writeBody !== undefined || response.headers.get('content-type')?.startsWith('text/event-stream')
    if (this.#hasComments && isStream) sink.sendHeaders(headers)
    if (writeBody !== undefined) await writeBody(sink)
    else if (isStream) void sink.write(await response.bytes())
    else sink.send(plainEvent(response.status, JSON.parse(await response.text()) as Json, { message, headers }))
    return sink.last
  }

  /** Resolves when the client has read everything, or when the connection has closed. */
  #whenRoom(): Promise<void> | undefined {
    if (this.#isClosed || this.#socket!.getBufferedAmount() === 0) return undefined
    this.#room ??= Promise.withResolvers()
    this.#stall ??= this.#parts.deadlines.after(this.#parts.stallMs, () => this.#socket!.terminate())
    return this.#room.promise
  }

  #endStall(): void {
    this.#stall?.cancel()
    this.#stall = undefined
    this.#room?.resolve()
    this.#room = undefined
  }

  #writeRefusal(fault: unknown, requestId: string): Response {
    return writeRefusal(fault, 'openai-responses', { requestId, headers: { 'x-request-id': requestId } }, this.#parts)
  }

  async #refuse(refusal: Refusal): Promise<void> {
    const id = mintOrRefusal(this.#parts.mintId)
    const requestId = textId('req', id instanceof Refusal ? NO_ID : id)
    const answered = { stream: NO_STREAM, message: refusal, continues: false }
    await this.#write(this.#writeRefusal(refusal, requestId), answered)
    await this.#whenRoom()
  }
}

interface AnsweredMessage {
  readonly stream: string
  readonly message: CreateMessage | Refusal
  /** Whether the connection has put the previous turns into the call. */
  readonly continues: boolean
}

interface Answered {
  readonly last: string | undefined
  readonly previous: Buffer | undefined
}

function asRefusal(fault: unknown): Refusal {
  return fault instanceof Refusal ? fault : new Refusal('gateway_fault', String(fault))
}

/** The headers of an answer as text. The runtime keeps one character for each byte. */
function headersOf({ headers }: Response): Record<string, string> {
  const shown: Record<string, string> = {}
  for (const [name, value] of headers) {
    if (/^(?:retry-|x-(?!accel-))/.test(name)) shown[name] = Buffer.from(value, 'latin1').toString('utf8')
  }
  return shown
}

interface PlainContext {
  readonly message: CreateMessage | Refusal
  readonly headers: Readonly<Record<string, string>>
}

/** Clients look for the headers of an error at both places. */
function plainEvent(status: number, body: Json, { message, headers }: PlainContext): Json {
  if (status < 400) return { type: 'response.completed', sequence_number: 0, response: body }
  const error: Json = { ...(body.error as Json), headers }
  const isLost = error.code === 'response_unknown' && !(message instanceof Refusal) && message.previousId !== undefined
  if (!isLost) return { type: 'error', status, error, headers }
  const code = 'previous_response_not_found'
  return { type: 'error', status: 400, error: { ...error, code, param: 'previous_response_id' }, headers }
}

/** The response in the last event of a stream; undefined where the response cannot be continued. */
function endedResponse(last: string): { readonly id: string; readonly output: readonly Json[] } | undefined {
  const event = JSON.parse(last) as Json
  const { response } = event
  if (event.type !== 'response.completed' && event.type !== 'response.incomplete') return undefined
  if (!isObject(response) || typeof response.id !== 'string') return undefined
  return { id: response.id, output: removeGatewayIds((response.output ?? []) as readonly Json[]) }
}
