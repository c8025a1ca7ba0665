// A type that only one place can make: the brand has no value, so nothing but a cast yields it.

declare const brand: unique symbol

export type Brand<T, Name extends string> = T & { readonly [brand]: Name }
