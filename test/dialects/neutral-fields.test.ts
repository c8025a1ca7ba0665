// No writer drops a field of the neutral conversation silently: with the field, either the request or its losses differ
// from those without it. A new field of a part needs a row here, or the types do not fit.

import { describe, expect, test } from 'bun:test'
import { CHAT_FIELDS } from '../../src/base/chat-fields.ts'
import { Refusal } from '../../src/base/errors.ts'
import type {
  CallPart,
  Citation,
  ConversationMessage,
  ConversationPart,
  MediaPart,
  ResultPart,
  TextPart,
} from '../../src/protocols/neutral/conversation.ts'
import type { ConversationTarget } from '../../src/protocols/protocol.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import { targetOf } from '../support/translation.ts'

type FieldsOf<Part, Needed extends keyof Part> = Required<Omit<Part, 'kind' | Needed>>

const citation: Required<Citation> = { url: 'https://a.example/', title: 'A', citedText: 'c', start: 0, end: 1 }
const sealed = { form: 'thought', value: 'AbCd', origin: 'elsewhere' } as const

const textFields: FieldsOf<TextPart, 'text'> = { citations: [citation], cache: { ttl: '1h' } }
const mediaFields: FieldsOf<MediaPart, 'source'> = { detail: 'low', name: 'cat.png', cache: {} }
/** Only calls in answers have namespaces. */
const callFields: FieldsOf<Omit<CallPart, 'namespace'>, 'id' | 'name' | 'arguments'> = {
  custom: true,
  sealed,
  cache: {},
}
/** The name and the kind of the tool are those of the call, which all dialects find by the id. */
const resultFields: FieldsOf<Omit<ResultPart, 'name' | 'custom'>, 'callId' | 'parts'> = { failed: true, cache: {} }

const text: TextPart = { kind: 'text', text: 'words' }
const call: CallPart = { kind: 'call', id: 'a', name: 'f', arguments: '{"x":1}' }
const result: ResultPart = { kind: 'result', callId: 'a', parts: [text] }
const inline = (mime: string) => ({ at: 'inline', base64: 'YWJj', mime }) as const
const media: Readonly<Record<string, MediaPart>> = {
  'an image': { kind: 'image', source: inline('image/png') },
  'a sound': { kind: 'audio', source: inline('audio/wav') },
  'a video': { kind: 'video', source: inline('video/mp4') },
  'a PDF': { kind: 'file', source: inline('application/pdf') },
  'a text file': { kind: 'file', source: inline('text/csv') },
  'a text document': { kind: 'file', source: { at: 'text', text: 'abc', mime: 'text/plain' } },
}

const user = (...parts: ConversationPart[]): ConversationMessage => ({ role: 'user', parts })
const assistant = (...parts: ConversationPart[]): ConversationMessage => ({ role: 'assistant', parts })
const tool = (...parts: ConversationPart[]): ConversationMessage => ({ role: 'tool', parts })
const hi = user({ kind: 'text', text: 'hi' })

/** A place for a part in a conversation, with the fields that the part can have there. */
interface Row<Part extends ConversationPart> {
  readonly place: string
  readonly part: Part
  readonly fields: Readonly<Record<string, unknown>>
  readonly conversation: (part: Part) => readonly ConversationMessage[]
}
const row = <Part extends ConversationPart>(
  place: string,
  part: Part,
  fields: object,
  conversation: (part: Part) => readonly ConversationMessage[],
): Row<ConversationPart> => ({ place, part, fields, conversation }) as unknown as Row<ConversationPart>

const rows: readonly Row<ConversationPart>[] = [
  row('a text of the user', text, textFields, part => [user(part)]),
  row('a text of the assistant', text, textFields, part => [hi, assistant(part), hi]),
  row('a first instruction', text, textFields, part => [{ role: 'system', parts: [part] }, hi]),
  row('a later instruction', text, textFields, part => [hi, assistant(text), { role: 'developer', parts: [part] }, hi]),
  row('a text in a result', text, textFields, part => [
    hi,
    assistant(call),
    tool({ ...result, parts: [part as TextPart] }),
  ]),
  row('a call', call, callFields, part => [hi, assistant(part), tool(result)]),
  row('a result', result, resultFields, part => [hi, assistant(call), tool(part)]),
  ...Object.entries(media).flatMap(([name, part]) => [
    row(`${name} of the user`, part, mediaFields, one => [user(text, one)]),
    row(`${name} in a result`, part, mediaFields, one => [
      hi,
      assistant(call),
      tool({ ...result, parts: [text, one as MediaPart] }),
    ]),
  ]),
]

/** Each writer, with all optional fields of its dialect, and with as few as possible. */
const writers = ['openai-chat', 'openai-responses', 'ark-responses', 'anthropic-messages', 'gemini', 'ark'] as const
const least = { cacheMarks: false, richResults: false, system: false } as const
/** Without it, Gemini's missing signature would be a loss in every request with a call. */
const traits = { thinking: 'budget' } as const
const targets: readonly (readonly [string, Partial<ConversationTarget>])[] = [
  ['with all that the dialect has', { chatFields: CHAT_FIELDS, traits }],
  ['for a model without marks, media in results and instructions', { chatFields: [], traits: { ...traits, ...least } }],
]

function write(writer: (typeof writers)[number], messages: readonly ConversationMessage[], more: object) {
  const target = targetOf({ origin: 'here', ...more })
  const tools = [{ kind: 'function', name: 'f' } as const]
  const conversation = { messages, tools, settings: { stream: false }, lostFields: [] }
  try {
    const body = protocols[writer].codec.writeConversation(conversation, target)
    return { body, losses: target.notes.losses.codes }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return undefined
  }
}

describe.each(writers)('%s', writer => {
  test.each(targets)('%s', (_name, target) => {
    const dropped: string[] = []
    for (const { place, part, fields, conversation } of rows) {
      const plain = write(writer, conversation(part), target)
      // Media that the dialect does not have are refused, or reported as a whole.
      if (plain === undefined || plain.losses.some(code => code.split('.').at(-1) === part.kind)) continue
      for (const [field, value] of Object.entries(fields)) {
        const full = write(writer, conversation({ ...part, [field]: value } as ConversationPart), target)
        if (Bun.deepEquals(full, plain)) dropped.push(`${field} of ${place}`)
      }
    }
    expect(dropped).toEqual([])
  })
})
