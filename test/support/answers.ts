// Answers and lawful streams of neutral events, made up by fast-check, for the tests of every dialect.

import fc from 'fast-check'
import type { Answer, AnswerEvent, AnswerPart, TokenProb } from '../../src/protocols/neutral/answer.ts'
import { toEvents } from '../../src/protocols/neutral/answer-collector.ts'
import type { Citation } from '../../src/protocols/neutral/conversation.ts'
import type { ReasoningState } from '../../src/protocols/neutral/reasoning-state.ts'

const { record, constantFrom, constant, array, nat, oneof } = fc
const text = fc.string({ maxLength: 20, unit: 'grapheme' })
const word = fc.stringMatching(/^[a-z_]{1,12}$/)
/** All keys of the record may be absent. */
const maybe = { requiredKeys: [] as [] }

const sealed: fc.Arbitrary<ReasoningState> = record(
  {
    form: constantFrom('signature', 'redacted', 'encrypted', 'thought'),
    value: fc.base64String({ minLength: 1, maxLength: 12 }),
    origin: constantFrom('here', 'there'),
    id: word,
  },
  { requiredKeys: ['form', 'value'] },
)

const bare = { token: text, logprob: fc.double({ min: -20, max: 0, noNaN: true }).map(value => value + 0) }
const tokenProb: fc.Arbitrary<TokenProb> = record(
  { ...bare, bytes: array(nat(255), { maxLength: 3 }), top: array(record(bare), { maxLength: 2 }) },
  { requiredKeys: ['token', 'logprob'] },
)

const citation: fc.Arbitrary<Citation> = record(
  { url: fc.webUrl(), title: text, citedText: text, start: nat(20), end: nat(20) },
  maybe,
)

const parts: readonly fc.Arbitrary<AnswerPart>[] = [
  record(
    {
      kind: constant('text' as const),
      text,
      citations: array(citation, { minLength: 1, maxLength: 2 }),
      logprobs: array(tokenProb, { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: ['kind', 'text'] },
  ),
  record({ kind: constant('refusal' as const), text }),
  record(
    { kind: constant('reasoning' as const), text, raw: constant(true), sealed },
    { requiredKeys: ['kind', 'text'] },
  ),
  record(
    { kind: constant('call' as const), id: word, name: word, arguments: fc.json(), custom: constant(true), sealed },
    { requiredKeys: ['kind', 'id', 'name', 'arguments'] },
  ),
  record({
    kind: constantFrom('image', 'audio'),
    source: record({ at: constant('inline' as const), base64: constant('AAAA'), mime: constant('image/png') }),
  }),
  record({ kind: constant('native' as const), dialect: word, what: word, value: fc.jsonValue() }),
]

const usage = record(
  { input: nat(1000), output: nat(1000), cacheRead: nat(1000), reasoning: nat(1000), cacheWrite1h: nat(1000) },
  { requiredKeys: ['input', 'output'] },
)

const choice = record(
  {
    parts: array(oneof(...parts), { maxLength: 5 }),
    finish: constantFrom('stop', 'stop_sequence', 'length', 'context', 'calls', 'filtered', 'paused', 'other'),
    stopSequence: word,
  },
  { requiredKeys: ['parts', 'finish'] },
)

/** A whole answer, each of whose calls has another id. */
export const anyAnswer = (choicesMax = 3): fc.Arbitrary<Answer> =>
  record(
    {
      id: word,
      model: word,
      createdS: nat(2_000_000_000),
      choices: array(choice, { minLength: 1, maxLength: choicesMax }),
      usage,
      serviceClass: word,
    },
    { requiredKeys: ['choices'] },
  ).map(withOwnIds)

function withOwnIds(answer: Answer): Answer {
  let calls = 0
  const renamed = (part: AnswerPart): AnswerPart =>
    part.kind === 'call' ? { ...part, id: `${part.id}_${calls++}` } : part
  return { ...answer, choices: answer.choices.map(each => ({ ...each, parts: each.parts.map(renamed) })) }
}

/** A lawful stream: texts come in pieces, and the parts of an answer grow side by side. */
export const anyEvents = (choicesMax = 3): fc.Arbitrary<readonly AnswerEvent[]> =>
  fc.tuple(anyAnswer(choicesMax), fc.infiniteStream(nat(7))).map(([answer, dice]) => {
    const roll = (): number => dice.next().value as number
    return shuffled(toEvents(answer), roll)
  })

/** The events of each part stay in their order, and so do openings; all else is mixed. */
function shuffled(events: readonly AnswerEvent[], roll: () => number): AnswerEvent[] {
  const [start, ...rest] = events
  const mixed: AnswerEvent[] = [start!]
  const opened = new Map<number, AnswerEvent[]>()
  const flush = (index: number): void => {
    mixed.push(...(opened.get(index) ?? []))
    opened.delete(index)
  }
  const someMore = (): void => {
    for (const [index, waiting] of opened) {
      mixed.push(...waiting.splice(0, roll() % 3))
      if (waiting.length === 0) opened.delete(index)
    }
  }
  let choiceOf: readonly number[] = []
  for (const event of rest) {
    if (event.kind === 'delta') opened.get(event.index)!.push(...pieces(event, roll))
    else if (event.kind === 'cite' || event.kind === 'close') opened.get(event.index)!.push(event)
    else {
      someMore()
      if (event.kind === 'finish') choiceOf.forEach((own, index) => own === event.choice && flush(index))
      if (event.kind === 'open' || event.kind === 'whole') choiceOf = [...choiceOf, event.choice]
      if (event.kind === 'open') opened.set(event.index, [])
      mixed.push(event)
    }
  }
  return mixed
}

function pieces(event: AnswerEvent & { readonly kind: 'delta' }, roll: () => number): AnswerEvent[] {
  const { index, logprobs } = event
  const told: AnswerEvent[] = []
  for (let rest = event.text; rest !== ''; ) {
    const piece = Array.from(rest)
      .slice(0, 1 + roll())
      .join('')
    told.push({ kind: 'delta', index, text: piece })
    rest = rest.slice(piece.length)
  }
  if (logprobs !== undefined) told.push({ kind: 'delta', index, text: '', logprobs })
  return told
}
