// The type of a group of operation handlers. An operation takes plain data, returns plain data, and runs inside the
// transaction that the writer has open.

interface OperationShape {
  readonly input: unknown
  readonly result: unknown
}

/** One handler function for each operation of a group. */
export type HandlersOf<Group extends { readonly [Name in keyof Group]: OperationShape }> = {
  readonly [Name in keyof Group]: (input: Group[Name]['input']) => Group[Name]['result']
}
