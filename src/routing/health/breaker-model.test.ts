// Compares the breaker with a simple model that keeps every event and counts them again each time.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ChannelUse } from './health.ts'
import { Health } from './health.ts'

interface Outcome {
  readonly second: number
  readonly isBad: boolean
}

class Model {
  isOpen = false
  untilMs = 0
  #forMs = 0
  #openedAfter = 0
  #begun = 0
  #inRow = 0
  #happened: Outcome[] = []
  #probe: number | undefined

  passes(nowMs: number): boolean {
    return !this.isOpen || (nowMs >= this.untilMs && this.#probe === undefined)
  }

  begin(nowMs: number): number {
    const id = ++this.#begun
    if (this.isOpen && this.passes(nowMs)) this.#probe = id
    return id
  }

  succeeded(id: number, nowMs: number): void {
    this.#happened.push({ second: Math.floor(nowMs / 1_000), isBad: false })
    if (!this.isOpen) this.#inRow = 0
    else if (id > this.#openedAfter) {
      this.isOpen = false
      this.#probe = undefined
      this.#inRow = 0
      this.#happened = []
    }
  }

  ended(id: number): void {
    if (this.#probe === id) this.#probe = undefined
  }

  failed(id: number, nowMs: number): void {
    const isProbe = this.#probe === id
    this.ended(id)
    this.#happened.push({ second: Math.floor(nowMs / 1_000), isBad: true })
    this.#inRow++
    if (this.isOpen && !isProbe) this.untilMs = Math.max(this.untilMs, nowMs + this.#forMs)
    else if (this.isOpen) this.#open(nowMs, Math.min(60_000, this.#forMs * 2))
    else {
      const recent = this.#happened.filter(({ second }) => second > Math.floor(nowMs / 1_000) - 10)
      const bad = recent.filter(({ isBad }) => isBad).length
      if (this.#inRow >= 5 || (recent.length >= 20 && bad * 2 >= recent.length)) this.#open(nowMs, 1_000)
    }
  }

  #open(nowMs: number, forMs: number): void {
    this.untilMs = Math.max(this.isOpen ? this.untilMs : 0, nowMs + forMs)
    this.isOpen = true
    this.#forMs = forMs
    this.#openedAfter = this.#begun
  }
}

test('the breaker does the same as the model, step by step', () => {
  const stepOf = <Kind extends string>(weight: number, ...kinds: readonly Kind[]) => ({
    weight,
    arbitrary: fc.record({ kind: fc.constantFrom(...kinds), argument: fc.nat(5) }),
  })
  const waitMs = fc.constantFrom(0, 1, 300, 999, 4_000)
  const stepArb = fc.oneof(
    stepOf(4, 'begin'),
    stepOf(5, 'broken'),
    stepOf(3, 'answered', 'too_slow', 'left', 'first'),
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait' as const), argument: waitMs }) },
  )
  const property = fc.property(fc.array(stepArb, { maxLength: 300 }), steps => {
    const [health, model] = [new Health({ caps: {}, random: () => 0.5 }), new Model()]
    const uses: { readonly use: ChannelUse; readonly id: number; answered: boolean }[] = []
    let nowMs = 0
    for (const { kind, argument } of steps) {
      if (kind === 'wait') nowMs += argument
      else if (kind === 'begin' || uses.length === 0) {
        uses.push({ use: health.begin(1, nowMs), id: model.begin(nowMs), answered: false })
      } else if (kind === 'first') {
        const used = uses[argument % uses.length]!
        used.use.noteAnswer({ firstContentMs: 10 }, nowMs)
        if (!used.answered) model.succeeded(used.id, nowMs)
        used.answered = true
      } else {
        const [used] = uses.splice(argument % uses.length, 1)
        used!.use.end({ verdict: kind }, nowMs)
        if (kind === 'answered' && !used!.answered) model.succeeded(used!.id, nowMs)
        if (kind === 'broken' || kind === 'too_slow') model.failed(used!.id, nowMs)
        else model.ended(used!.id)
      }
      const openForMs = model.passes(nowMs) ? undefined : Math.max(0, model.untilMs - nowMs)
      expect(health.breakerOpenMs(nowMs)).toEqual(openForMs)
      expect(health.activeCalls).toBe(uses.length)
    }
  })
  fc.assert(property, { numRuns: 1_000 })
})

test('the breaker stays open for its time, a fifth more or less, for every random number', () => {
  const chances = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 12, maxLength: 12 })
  fc.assert(
    fc.property(chances, chancesOf => {
      let drawn = 0
      const health = new Health({ caps: {}, random: () => chancesOf[drawn++ % chancesOf.length]! })
      let nowMs = 0
      for (let time = 0; time < 5; time++) health.begin(1, nowMs).end({ verdict: 'broken' }, nowMs)
      for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
        const leftMs = health.breakerOpenMs(nowMs)!
        expect(leftMs >= seconds * 800 - 1e-6 && leftMs <= seconds * 1_200 + 1e-6).toBe(true)
        nowMs += leftMs
        health.begin(1, nowMs).end({ verdict: 'broken' }, nowMs)
      }
    }),
  )
})
