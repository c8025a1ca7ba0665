// Compresses and encrypts bodies, and back.

import { Seal } from '../../base/secrets/seal.ts'
import { Secret } from '../../base/secrets/secret.ts'
import { SecretRing } from '../../base/secrets/secret-ring.ts'
import type { ResealKeys } from '../secrets/resealed-rows.ts'
import type { BodiesToStore, BodyPart, CallBodies } from './bodies-messages.ts'

type Column = 'request' | 'answer'

export interface BodyRow {
  readonly request: Uint8Array
  readonly request_truncated: bigint
  readonly answer: Uint8Array
  readonly answer_truncated: bigint
}

export interface SealedBodies {
  readonly callId: number
  readonly accountId: number
  /** The values of the columns, in the order of BodyRow. */
  readonly values: readonly [request: Buffer, requestTruncated: number, answer: Buffer, answerTruncated: number]
  readonly bytes: number
}

const secretsOf = (texts: readonly string[]): readonly Secret[] => texts.map(text => new Secret(text))

export class BodySeal {
  readonly #ring: SecretRing
  readonly #seal: Seal

  /** Newest first. */
  constructor(secrets: readonly string[]) {
    this.#ring = new SecretRing(secretsOf(secrets))
    this.#seal = new Seal(this.#ring)
  }

  replaceSecrets(secrets: readonly string[]): void {
    this.#ring.replace(secretsOf(secrets))
  }

  /** Another list after each replacement. */
  get secrets(): unknown {
    return this.#ring.all
  }

  get resealKeys(): ResealKeys {
    return { seal: this.#seal, newest: this.#ring.newestFingerprint }
  }

  seal({ callId, accountId, bytes, requestBytes, truncated }: BodiesToStore): SealedBodies {
    const sealPart = (column: Column, part: Uint8Array): Buffer =>
      this.#seal.seal({ table: 'body', row: callId, column }, Bun.zstdCompressSync(part))
    const request = sealPart('request', bytes.subarray(0, requestBytes))
    const answer = sealPart('answer', bytes.subarray(requestBytes))
    const values = [request, truncated[0] ? 1 : 0, answer, truncated[1] ? 1 : 0] as const
    return { callId, accountId, values, bytes: request.length + answer.length }
  }

  open(callId: number, row: BodyRow): CallBodies {
    const openPart = (column: Column): BodyPart => ({
      bytes: Bun.zstdDecompressSync(this.#seal.open({ table: 'body', row: callId, column }, row[column])),
      truncated: row[`${column}_truncated`] === 1n,
    })
    return { request: openPart('request'), answer: openPart('answer') }
  }
}
