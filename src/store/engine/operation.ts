// The shape of an operation: data in, data out, inside the transaction that the writer has open.

interface OperationShape {
  readonly input: unknown
  readonly result: unknown
}

/** The functions that carry out a group of operations, one for each name. */
export type Runs<Group extends { readonly [Name in keyof Group]: OperationShape }> = {
  readonly [Name in keyof Group]: (input: Group[Name]['input']) => Group[Name]['result']
}
