// The secrets of one kind. The newest one seals and signs; older ones are still accepted. Secrets are rotated while the
// gateway runs, so users of a ring read it each time and keep no secret.
import { Secret } from './secret.ts'
import { fingerprintOf } from './secret-fingerprint.ts'

export class SecretRing {
  #all: readonly Secret[]
  #byMark: ReadonlyMap<string, Secret>

  /** Needs at least one secret, and no two with the same fingerprint. */
  constructor(secrets: readonly Secret[]) {
    this.#all = secrets
    this.#byMark = byMark(secrets)
  }

  get newest(): Secret {
    return this.#all[0]!
  }

  /** The newest first. After a rotation this is another array, so that a cache can compare it. */
  get all(): readonly Secret[] {
    return this.#all
  }

  /** The newest first. */
  get fingerprints(): readonly string[] {
    return [...this.#byMark.keys()]
  }

  get newestFingerprint(): string {
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

export const buildSecretRing = (...texts: readonly string[]): SecretRing =>
  new SecretRing(texts.map(text => new Secret(text)))

const byMark = (secrets: readonly Secret[]): ReadonlyMap<string, Secret> =>
  new Map(secrets.map(secret => [fingerprintOf(secret), secret]))
