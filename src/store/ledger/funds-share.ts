// How much of the remaining money one call may reserve at a time, where calls reserve their money in slices.

/** One call reserves no more than this part of what is left, so that calls that run at the same time get a share each. */
export const FUNDS_SHARE = 20n

/** `amount`, but no more than a share of each of `rooms`, and no less than `least`, which fits into each of them. */
export const grantShare = (amount: bigint, least: bigint, rooms: readonly bigint[]): bigint =>
  rooms.reduce((most, room) => {
    const share = room / FUNDS_SHARE
    return most <= share ? most : share > least ? share : least
  }, amount)
