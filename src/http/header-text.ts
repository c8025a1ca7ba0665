// Writes any text as a header value. Node and Bun refuse characters beyond latin1 in a header value, but accept the
// bytes of the UTF-8 form as latin1 characters.

export function utf8HeaderValue(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}
