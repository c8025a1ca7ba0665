// The kinds of secrets that the gateway keeps for itself.

export type SecretKind = (typeof secretKinds)[number]

export const secretKinds = ['pepper', 'jwt', 'encryption'] as const
