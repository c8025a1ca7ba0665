// A list from which anything can be taken out at once, in the order in which it was put in.
//
// For what comes and goes with every call. A Set would do, but the engine's Sets keep what was deleted until they are
// rebuilt, and as old objects they make every young one that passes through them old, too: measured, a third of the
// time of a plain call went into collecting that.

export interface Place<Value> {
  readonly value: Value
  before: Place<Value> | undefined
  after: Place<Value> | undefined
}

export class Ring<Value> {
  #first: Place<Value> | undefined
  #last: Place<Value> | undefined
  #size = 0

  get size(): number {
    return this.#size
  }

  get first(): Value | undefined {
    return this.#first?.value
  }

  get last(): Value | undefined {
    return this.#last?.value
  }

  add(value: Value): Place<Value> {
    const place: Place<Value> = { value, before: this.#last, after: undefined }
    if (this.#last === undefined) this.#first = place
    else this.#last.after = place
    this.#last = place
    this.#size++
    return place
  }

  /** Before all others. */
  addFirst(value: Value): Place<Value> {
    const place: Place<Value> = { value, before: undefined, after: this.#first }
    if (this.#first === undefined) this.#last = place
    else this.#first.before = place
    this.#first = place
    this.#size++
    return place
  }

  /** Only once for each place. */
  remove(place: Place<Value>): void {
    if (place.before === undefined) this.#first = place.after
    else place.before.after = place.after
    if (place.after === undefined) this.#last = place.before
    else place.after.before = place.before
    place.before = place.after = undefined
    this.#size--
  }

  /** In order. What is visited may be removed meanwhile. */
  *[Symbol.iterator](): Generator<Value> {
    for (let place = this.#first; place !== undefined; ) {
      const { after } = place
      yield place.value
      place = after
    }
  }
}
