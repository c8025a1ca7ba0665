// The kinds of secrets that the gateway itself needs.

export type SecretKind = (typeof secretKinds)[number]

export const secretKinds = ['pepper', 'jwt', 'encryption'] as const
