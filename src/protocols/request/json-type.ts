// The type of a parsed JSON object whose fields are not checked yet.

export type Json = Readonly<Record<string, unknown>>
