// Secrets of one kind, the newest first: it makes whatever is made, and what the others made is still accepted. It is
// changed while a gateway runs, so whoever needs a secret asks the ring each time and keeps none.
import { Secret } from './secret.ts'
import { markOf } from './secret-mark.ts'

export class SecretRing {
  #all: readonly Secret[]
  #byMark: ReadonlyMap<string, Secret>

  /** At least one, and no two of one mark. */
  constructor(secrets: readonly Secret[]) {
    this.#all = secrets
    this.#byMark = byMark(secrets)
  }

  get newest(): Secret {
    return this.#all[0]!
  }

  /** The newest first. After a change it is another list. */
  get all(): readonly Secret[] {
    return this.#all
  }

  /** The newest first. */
  get marks(): readonly string[] {
    return [...this.#byMark.keys()]
  }

  get newestMark(): string {
    return this.#byMark.keys().next().value!
  }

  find(mark: string): Secret | undefined {
    return this.#byMark.get(mark)
  }

  replace(secrets: readonly Secret[]): void {
    this.#byMark = byMark(secrets)
    this.#all = secrets
  }
}

export const ringOf = (...texts: readonly string[]): SecretRing => new SecretRing(texts.map(text => new Secret(text)))

const byMark = (secrets: readonly Secret[]): ReadonlyMap<string, Secret> =>
  new Map(secrets.map(secret => [markOf(secret), secret]))
