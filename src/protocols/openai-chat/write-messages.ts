// Turns of a conversation as chat messages.
//
// Thoughts go back only to the origin that had them, and which therefore reads `reasoning_content`: others would refuse
// the field, and cannot use what another model thought. The state of thoughts has a place in Ark's messages alone.

import type { CallPart, MediaPart, Part, ReasoningPart, ResultPart, TextPart, Turn } from '../neutral/conversation.ts'
import { invalid } from '../request/checks.ts'
import { thoughtField } from './reasoning-state.ts'
import { writeCallId } from './tool-names.ts'
import type { Writing } from './write-parts.ts'
import { writeContent, writePart } from './write-parts.ts'
import type { ToolWriting } from './write-tools.ts'

export function writeMessages(turns: readonly Turn[], made: ToolWriting): object[] {
  const messages = turns.flatMap(turn => {
    const results = turn.parts.filter(part => part.kind === 'result')
    const answers = results.length === 0 ? [] : writeResults(results, made)
    const rest = results.length === 0 ? turn : { ...turn, parts: turn.parts.filter(part => part.kind !== 'result') }
    const message = rest.role === 'assistant' ? writeAssistant(rest, made) : writeSaid(rest, made)
    return message === undefined ? answers : [...answers, message]
  })
  if (messages.length === 0) throw invalid('messages', 'hold nothing that this model could read')
  return messages
}

/** Where a model has no place for instructions, they are said to it. */
function writeSaid({ role, name, parts }: Turn, made: ToolWriting): object | undefined {
  const said = parts.flatMap(part => sayable(part, made))
  if (said.length === 0) return undefined
  const isUser = role === 'user' || role === 'tool' || made.target.traits.system === false
  return { role: isUser ? 'user' : 'system', content: writeContent(said, made), ...(name !== undefined && { name }) }
}

function sayable(part: Part, { flavour, target }: Writing): (TextPart | MediaPart)[] {
  if (part.kind === 'text') return part.text === '' ? [] : [part]
  if (part.kind === 'refusal') return [{ kind: 'text', text: part.text }]
  if ('source' in part) return [part]
  if (part.kind === 'native') target.notes.losses.add(part.dialect === flavour.dialect ? 'messages.content' : part.what)
  return []
}

function writeAssistant({ name, parts }: Turn, made: ToolWriting): object | undefined {
  const { flavour } = made
  const calls = parts.filter(part => part.kind === 'call')
  const refusals = parts.filter(part => part.kind === 'refusal').map(part => part.text)
  const text = joinTexts(parts, made)
  const refusal = flavour.isFull && refusals.length > 0 ? refusals.join('\n\n') : undefined
  const content = refusal === undefined ? [text, ...refusals].filter(said => said !== '').join('\n\n') : text
  const marked = writeMarked(parts, made)
  const native = nativeFields(parts, made)
  const isSilent = content === '' && refusal === undefined
  if (isSilent && calls.length === 0 && Object.keys(native).length === 0) return undefined
  return {
    role: 'assistant',
    content: marked ?? (content === '' ? null : content),
    ...(refusal !== undefined && { refusal }),
    ...(name !== undefined && { name }),
    ...writeThoughts(
      parts.filter(part => part.kind === 'reasoning'),
      made,
    ),
    ...native,
    ...(calls.length > 0 && { tool_calls: calls.map(call => writeCall(call, made)) }),
  }
}

/** One text: what stood between its parts in other dialects has no place between them here. */
function joinTexts(parts: readonly Part[], { target }: Writing): string {
  let [text, isApart] = ['', false]
  for (const part of parts) {
    if (part.kind !== 'text') isApart = true
    if ('source' in part) target.notes.losses.add(`messages.assistant.${part.kind}`)
    if (part.kind !== 'text' || part.text === '') continue
    if (part.citations !== undefined) target.notes.losses.add('citations')
    text += isApart && text !== '' ? `\n\n${part.text}` : part.text
    isApart = false
  }
  return text
}

/** A list of texts, where one of them is marked and the upstream takes marks. */
function writeMarked(parts: readonly Part[], made: Writing): object[] | undefined {
  const texts = parts.filter(part => part.kind === 'text' && part.text !== '') as TextPart[]
  if (!texts.some(part => part.cache !== undefined)) return undefined
  const written = texts.map(part => writePart(part, made))
  return written.some(part => 'prompt_cache_breakpoint' in part) ? written : undefined
}

/** What this same dialect said, such as the name of a spoken answer. */
function nativeFields(parts: readonly Part[], { flavour, target }: Writing): object {
  const fields: Record<string, unknown> = {}
  for (const part of parts) {
    if (part.kind !== 'native') continue
    if (part.dialect === flavour.dialect && part.what === 'audio') fields.audio = part.value
    else target.notes.losses.add(part.what)
  }
  return fields
}

function writeThoughts(thoughts: readonly ReasoningPart[], { flavour, target }: Writing): object {
  const own = thoughts.filter(({ sealed }) => sealed?.origin === target.origin)
  // Thoughts are their own model's, whatever is shown of them.
  if (own.length < thoughts.length) target.notes.losses.add('reasoning_state')
  const text = own
    .map(part => part.text)
    .filter(part => part !== '')
    .join('\n\n')
  const states = own.flatMap(({ sealed }) => (sealed === undefined || sealed.form === 'shown' ? [] : [sealed]))
  const encrypted = flavour.bearsState ? states.filter(({ form }) => form === 'encrypted') : []
  if (states.length > Math.min(1, encrypted.length)) target.notes.losses.add('reasoning_state')
  return {
    ...(text !== '' && { reasoning_content: text }),
    ...(encrypted.length > 0 && { encrypted_content: encrypted.at(-1)!.value }),
  }
}

function writeCall(call: CallPart, { flavour, target, names }: ToolWriting): object {
  const { sealed, arguments: text } = call
  const [id, name] = [writeCallId(call.id), names.write(call.name)]
  const isOwn = sealed !== undefined && sealed.origin === target.origin
  if (isOwn && sealed.form !== 'thought') target.notes.losses.add('reasoning_state')
  const extra = isOwn && sealed.form === 'thought' ? { extra_content: thoughtField(sealed.value) } : {}
  if (call.custom && flavour.isFull) return { id, type: 'custom', custom: { name, input: text }, ...extra }
  const args = call.custom ? JSON.stringify({ input: text }) : text === '' ? '{}' : text
  return { id, type: 'function', function: { name, arguments: args }, ...extra }
}

/** A result is text. What else was in it follows in a message of its own, behind all results: nothing may part them. */
function writeResults(results: readonly ResultPart[], made: ToolWriting): object[] {
  const messages: object[] = []
  const shown: (TextPart | MediaPart)[] = []
  for (const { callId, name, parts, failed, cache } of results) {
    const media = parts.filter(part => part.kind !== 'text')
    const texts = parts.filter(part => part.kind === 'text').map(part => part.text)
    const mark = cache ?? parts.findLast(part => part.cache !== undefined)?.cache
    if (media.length > 0) {
      const what = `The result of ${name === undefined ? 'the call' : made.names.write(name)} (${writeCallId(callId)})`
      if (texts.length === 0) texts.push(`${what} is in the next message.`)
      shown.push({ kind: 'text', text: `${what}:` }, ...media.map(({ cache: _cache, ...part }) => part))
    }
    const text = texts.join('\n')
    const said = failed && !/^error/i.test(text) ? `Error: ${text}` : text
    const content = writeContent([{ kind: 'text', text: said, ...(mark && { cache: mark }) }], made)
    messages.push({ role: 'tool', tool_call_id: writeCallId(callId), content })
  }
  if (shown.length > 0) messages.push({ role: 'user', content: writeContent(shown, made) })
  return messages
}
