// Creates a webhook: checks its URL, creates its secret and encrypts it.

import type { WebhookSecretText } from '../../identity/webhook-secret.ts'
import { mintWebhookSecret, sealWebhookSecret } from '../../identity/webhook-secret.ts'
import type { By } from '../../store/audit-log/audited.ts'
import type { Result } from '../../store/engine/operations.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { OperatorParts } from '../command.ts'

export interface WantedWebhook {
  /** Null: a webhook of the site. */
  readonly accountId: number | null
  readonly scope: Scope | null
  readonly url: string
  readonly events: readonly string[]
}

/** The URL cannot be used for a webhook; the message says why. */
export class BadWebhook extends Error {}

export interface MadeWebhook {
  readonly id: number
  /** Shown once. */
  readonly secret: WebhookSecretText
  readonly result: Result<'createWebhook'>
}

/** The origin of the URL, which may be shown to everybody: path and query may contain secrets. */
export function originOf({ webhooks }: Pick<OperatorParts, 'webhooks'>, url: string): string {
  const problem = webhooks.outside.problemOf(url)
  if (problem !== undefined) throw new BadWebhook(problem)
  return new URL(url).origin
}

export async function makeWebhook(parts: OperatorParts, wanted: WantedWebhook, by: By): Promise<MadeWebhook> {
  const { accountId, scope, url, events } = wanted
  const [id, secret] = [parts.mintId(), mintWebhookSecret()]
  const sealed = sealWebhookSecret(parts.seal, id, secret)
  const fields = { url, origin: originOf(parts, url), events: events.join(), secret: sealed, author: by.actor }
  return { id, secret, result: await parts.writer.run('createWebhook', { id, accountId, scope, ...fields }, by) }
}
