// Checks of answers: they must have the bytes that the upstream sent, or its text in another dialect.

/** Returns the problem of a body; undefined if it is right. */
export type Check = (body: Buffer) => string | undefined

/** Compares bytes, except for comments between events, in which Weir sends the times of a stream. */
export function checkBytes(text: string): Check {
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

/** Compares the text of plain answers of Chat Completions. Other fields may differ. */
export function checkAnswerText(text: string): Check {
  const expected = contentOf(text)
  return body => {
    const answer = body.toString('utf8')
    return contentOf(answer) === expected ? undefined : `not the text of the upstream: ${answer.slice(0, 200)}`
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

export interface ExpectedStream {
  /** The text of all events. */
  readonly text: string
  /** The text of one event. */
  textOf(event: unknown): string | undefined
  /** A text that the last events of a complete stream contain. */
  readonly end: string
}

/** Compares only text and end, because ids and times are new in each answer. */
export function checkStreamText({ text, textOf, end }: ExpectedStream): Check {
  return body => {
    const stream = body.toString('utf8')
    const received = [...stream.matchAll(/^data: (\{.*)$/gm)]
      .map(([, data]) => textOf(JSON.parse(data!)) ?? '')
      .join('')
    if (received !== text)
      return `text ${JSON.stringify(received.slice(0, 200))} …, ${received.length} characters of ${text.length}`
    return stream.includes(end, stream.length - 2_000 - 2 * text.length) ? undefined : `no end: ${stream.slice(-200)}`
  }
}
