// JSON that was parsed and not checked yet.

export type Json = Readonly<Record<string, unknown>>
