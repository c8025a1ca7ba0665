// How long before the same is tried again.

export const backoffMs = (attempts: number, chance: number): number => chance * 250 * 2 ** attempts
