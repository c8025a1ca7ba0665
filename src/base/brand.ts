// Branded types. The brand has no value at run time, so only a cast creates such a type, and one file owns that cast.

declare const brand: unique symbol

export type Brand<T, Name extends string> = T & { readonly [brand]: Name }
