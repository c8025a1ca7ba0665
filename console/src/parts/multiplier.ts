// A price multiplier as people write it, such as 0.85. The gateway takes whole thousandths.

/** Not rounded: the gateway refuses a part of a thousandth, where a rounded price would be another one than was written. */
export const thousandthsOf = (multiplier: number): number => Number((multiplier * 1_000).toFixed(6))
