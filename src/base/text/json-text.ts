/** A JSON value as text, for names in messages. `String` throws for a value such as `{"toString": 0}`. */
export const jsonText = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined')
