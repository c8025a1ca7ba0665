// What a right answer is: the very bytes that the upstream sent, or the same words in another dialect.

/** Says what is wrong with a body; undefined for nothing. */
export type Check = (body: Buffer) => string | undefined

/** To the byte, but for comments between events, in which Weir tells how the time of a stream was spent. */
export function exactly(text: string): Check {
  const expected = Buffer.from(text)
  return body => {
    if (body.equals(expected) || withoutComments(body) === expected.toString('latin1')) return undefined
    let at = 0
    while (at < body.length && body[at] === expected[at]) at++
    return `${body.length} bytes instead of ${expected.length}, different from byte ${at}: ${shown(body, at)}`
  }
}

const withoutComments = (body: Buffer): string => body.toString('latin1').replace(/^:[^\n]*\n\n/gm, '')

const shown = (body: Buffer, at: number): string =>
  JSON.stringify(body.toString('utf8', Math.max(0, at - 20), at + 200))

/** The same words in a plain answer of Chat Completions, whatever else its writer has added or moved. */
export function answering(text: string): Check {
  const expected = contentOf(text)
  return body => {
    const answer = body.toString('utf8')
    return contentOf(answer) === expected ? undefined : `not the words of the upstream: ${answer.slice(0, 200)}`
  }
}

interface PlainAnswer {
  readonly choices?: readonly { readonly message?: { readonly content?: string } }[]
}

function contentOf(answer: string): string | undefined {
  try {
    return (JSON.parse(answer) as PlainAnswer | null)?.choices?.[0]?.message?.content
  } catch {
    return undefined
  }
}

export interface Said {
  /** All that its events say, one after the other. */
  readonly text: string
  /** What one event adds to that. */
  textOf(event: unknown): string | undefined
  /** What stands in the last events of a stream that is whole. */
  readonly end: string
}

/** Names and times are made for each answer, so that its bytes are not known before. */
export function saying({ text, textOf, end }: Said): Check {
  return body => {
    const stream = body.toString('utf8')
    const said = [...stream.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => textOf(JSON.parse(data!)) ?? '').join('')
    if (said !== text) return `said ${JSON.stringify(said.slice(0, 200))} …, ${said.length} letters of ${text.length}`
    return stream.includes(end, stream.length - 2_000 - 2 * text.length) ? undefined : `no end: ${stream.slice(-200)}`
  }
}
