// How a provider wants to see its key, one row each.

import type { Secret } from '../base/secret.ts'

export const signers = {
  'bearer': key => ({ authorization: `Bearer ${key.reveal()}` }),
  'api-key': key => ({ 'api-key': key.reveal() }),
  'x-api-key': key => ({ 'x-api-key': key.reveal() }),
  'x-goog-api-key': key => ({ 'x-goog-api-key': key.reveal() }),
  'none': () => ({}),
} as const satisfies Record<string, (key: Secret) => Record<string, string>>

export type Signer = keyof typeof signers

export function isSigner(name: string): name is Signer {
  return Object.hasOwn(signers, name)
}
