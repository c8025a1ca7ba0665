// The near side of the desk thread, which is there from the first question on. It is asked one thing after the other:
// a question that takes too long is ended with its thread, and the next one begins another, none the worse for it.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { FromDesk, ToDesk } from './query-thread.ts'
import type { ReadInput, ReadName, ReadResult } from './reads.ts'

interface Question {
  readonly name: ReadName
  /** JSON. */
  readonly input: string
  resolve(result: unknown): void
  reject(fault: Error): void
  timer: ReturnType<typeof setTimeout> | undefined
}

interface Asked {
  readonly id: number
  readonly question: Question
}

/** Questions that take as long as they may, before whoever waits for them gives up. */
const WAITED_FOR = 2

export class Desk {
  readonly #path: string
  readonly #msMax: number
  #thread: Worker | undefined
  readonly #line: Question[] = []
  #asked: Asked | undefined
  #last = 0

  constructor(path: string, { msMax }: { readonly msMax: number } = { msMax: bounds.deskMsMax }) {
    this.#path = path
    this.#msMax = msMax
  }

  ask<Name extends ReadName>(name: Name, input: ReadInput<Name>): Promise<ReadResult<Name>> {
    if (this.#line.length >= bounds.deskQuestionsMax) return Promise.reject(tooMuch())
    return new Promise((resolve, reject) => {
      const question: Question = {
        ...{ name, input: JSON.stringify(input), reject, resolve: resolve as Question['resolve'] },
        timer: setTimeout(() => this.#giveUp(question), WAITED_FOR * this.#msMax),
      }
      this.#line.push(question)
      this.#goOn()
    })
  }

  close(): void {
    const line = this.#line.splice(0)
    this.#drop('closed')
    for (const question of line) refuse(question, away('closed'))
  }

  #goOn(): void {
    if (this.#asked !== undefined) return
    const question = this.#line.shift()
    if (question === undefined) return
    clearTimeout(question.timer)
    question.timer = setTimeout(() => this.#drop(`${question.name} took too long`), this.#msMax)
    const { name, input } = question
    const asked = { id: ++this.#last, question }
    this.#asked = asked
    const thread = (this.#thread ??= this.#open())
    thread.postMessage({ id: asked.id, name, input } satisfies ToDesk)
  }

  /** It has waited for others, who are not to blame each by itself. */
  #giveUp(question: Question): void {
    const at = this.#line.indexOf(question)
    if (at >= 0) this.#line.splice(at, 1)
    question.reject(tooMuch())
  }

  #open(): Worker {
    const thread = new Worker(new URL('./query-thread.ts', import.meta.url).href)
    thread.onmessage = (event: MessageEvent<FromDesk>) => this.#receive(event.data)
    thread.onerror = event => {
      if (thread === this.#thread) this.#drop(event.message)
    }
    thread.unref()
    thread.postMessage({ open: this.#path } satisfies ToDesk)
    return thread
  }

  #receive({ id, result, fault }: FromDesk): void {
    if (this.#asked?.id !== id) return
    const { question } = this.#asked
    this.#asked = undefined
    clearTimeout(question.timer)
    if (result !== undefined) question.resolve(JSON.parse(result))
    else question.reject(new Error(fault))
    this.#goOn()
  }

  /** Whoever asked is told so, and the thread is ended, once its query is: SQLite cannot be interrupted from here. */
  #drop(detail: string): void {
    this.#thread?.terminate()
    this.#thread = undefined
    const asked = this.#asked
    this.#asked = undefined
    if (asked !== undefined) refuse(asked.question, away(detail))
    this.#goOn()
  }
}

const tooMuch = (): Refusal => new Refusal('overloaded', 'too much is being looked at', { retryAfterMs: 1_000 })
const away = (detail: string): Refusal => new Refusal('storage_away', detail, { retryAfterMs: 1_000 })

function refuse({ reject, timer }: Question, refusal: Refusal): void {
  clearTimeout(timer)
  reject(refusal)
}
