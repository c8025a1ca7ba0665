// Hashes passwords with argon2id. The runtime computes the hash outside the thread that serves calls.

export interface PasswordCost {
  readonly memoryKib: number
  readonly passes: number
}

/** The minimum that OWASP recommends: 19 MiB and two passes. */
export const passwordCost: PasswordCost = { memoryKib: 19_456, passes: 2 }

export const buildPasswordHasher = ({ memoryKib, passes }: PasswordCost) => ({
  hash: (password: string) =>
    Bun.password.hash(password, { algorithm: 'argon2id', memoryCost: memoryKib, timeCost: passes }),
  matches: (password: string, hash: string) => Bun.password.verify(password, hash, 'argon2id'),
})
