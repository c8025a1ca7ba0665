// Signs what a webhook is told, so that whoever is told knows that it is from us, and when it was said.

import { createHmac, randomBytes } from 'node:crypto'
import type { Seal } from '../../base/seal.ts'
import { Secret } from '../../base/secret.ts'

export const SIGNATURE_HEADER = 'X-Weir-Signature'

/** There is no webhook without one: nobody else could sign with it. */
export const mintWebhookSecret = (random: (bytes: number) => Uint8Array = randomBytes): Secret =>
  new Secret(`whsec_${Buffer.from(random(32)).toString('base64url')}`)

export function signatureOf(secret: Secret, body: string, atMs: number): string {
  const seconds = Math.floor(atMs / 1_000)
  const digest = createHmac('sha256', secret.reveal()).update(`${seconds}.${body}`).digest('hex')
  return `t=${seconds},v1=${digest}`
}

const placeOf = (webhookId: number) => ({ table: 'webhook', row: webhookId, column: 'secret' })

/** In base64. */
export const sealSecret = (seal: Pick<Seal, 'close'>, webhookId: number, secret: Secret): string =>
  seal.close(placeOf(webhookId), Buffer.from(secret.reveal())).toString('base64')

export const openSecret = (seal: Pick<Seal, 'open'>, webhookId: number, sealed: Uint8Array): Secret =>
  new Secret(seal.open(placeOf(webhookId), sealed).toString())
