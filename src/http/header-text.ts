// Both Node and Bun refuse characters beyond latin1 in a header value. The bytes of their UTF-8 form pass when they
// are given as latin1 characters.

export function utf8HeaderValue(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}
