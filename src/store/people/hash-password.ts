// Passwords as they are kept: argon2id, computed by the runtime beside the thread that serves calls.

export interface PasswordCost {
  readonly memoryKib: number
  readonly passes: number
}

/** What OWASP asks for at least: 19 MiB, twice over. */
export const passwordCost: PasswordCost = { memoryKib: 19_456, passes: 2 }

export const hashingAt = ({ memoryKib, passes }: PasswordCost) => ({
  hash: (password: string) =>
    Bun.password.hash(password, { algorithm: 'argon2id', memoryCost: memoryKib, timeCost: passes }),
  matches: (password: string, hash: string) => Bun.password.verify(password, hash, 'argon2id'),
})
