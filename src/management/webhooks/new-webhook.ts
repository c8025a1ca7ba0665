// Creates a webhook: checks its URL, creates its secret and encrypts it.

import { HintedError } from '../../base/hints.ts'
import { Secret } from '../../base/secrets/secret.ts'
import type { WebhookSecretText } from '../../identity/webhook-secret.ts'
import { markWebhookSecret, mintWebhookSecret, sealWebhookSecret } from '../../identity/webhook-secret.ts'
import type { AuditActor } from '../../store/audit-log/audited-operations.ts'
import type { OperationResult } from '../../store/engine/operations.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { ManagementParts } from '../management-parts.ts'

export interface WebhookInput {
  /** Null: a webhook of the site. */
  readonly accountId: number | null
  readonly scope: Scope | null
  readonly url: string
  readonly events: readonly string[]
  readonly disabled?: boolean | undefined
  /** Undefined: a generated secret. */
  readonly secret?: string | undefined
  readonly secretFrom?: string | null | undefined
}

/** The URL cannot be used for a webhook; the message says why. */
export class InvalidWebhookUrl extends HintedError {}

export interface CreatedWebhook {
  readonly id: number
  /** Shown once. */
  readonly secret: WebhookSecretText
  readonly result: OperationResult<'createWebhook'>
}

/** The origin of the URL, which may be shown to everybody: path and query may contain secrets. */
export function webhookOrigin({ webhooks }: Pick<ManagementParts, 'webhooks'>, url: string): string {
  const problem = webhooks.outside.checkUrl(url)
  if (problem !== undefined) throw new InvalidWebhookUrl(problem)
  return new URL(url).origin
}

export async function insertWebhook(
  parts: ManagementParts,
  wanted: WebhookInput,
  by: AuditActor,
): Promise<CreatedWebhook> {
  const { accountId, scope, url, events, disabled } = wanted
  const [id, secret] = [parts.mintId(), (wanted.secret as WebhookSecretText | undefined) ?? mintWebhookSecret()]
  const sealed = sealWebhookSecret(parts.seal, id, secret)
  const address = { url, origin: webhookOrigin(parts, url) }
  const fields = { ...address, events: events.join(), disabled, secret: sealed, author: by.actor }
  const input = { id, accountId, scope, ...fields, ...originOf(wanted) }
  return { id, secret, result: await parts.writer.run('createWebhook', input, by) }
}

/** What is kept about a secret that a configuration file has given. */
export const originOf = ({ secret, secretFrom = null }: Pick<WebhookInput, 'secret' | 'secretFrom'>) =>
  secret === undefined
    ? { secretFrom: null, secretMark: null }
    : { secretFrom, secretMark: markWebhookSecret(new Secret(secret)) }
