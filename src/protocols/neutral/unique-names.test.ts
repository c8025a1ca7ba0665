import { expect, test } from 'bun:test'
import { expectCheap } from '../../../test/support/cpu.ts'
import { AnthropicToolNames } from '../anthropic-messages/write-tools.ts'
import { GeminiToolNames } from '../gemini/tool-names.ts'
import { ChatToolNames } from '../openai-chat/tool-names.ts'
import { ResponsesToolNames } from '../openai-responses/tool-names.ts'
import type { Tool } from './conversation.ts'
import type { TranslationNotes } from './translation-notes.ts'
import { UniqueNames } from './unique-names.ts'

test('equal names are numbered, and no number makes a name that exists or is too long', () => {
  const names = new UniqueNames(10)
  expect(['a', 'a_3', 'a', 'a', 'a'].map(name => names.take(name))).toEqual(['a', 'a_3', 'a_2', 'a_4', 'a_5'])
  names.add('b')
  expect(['b', 'abcdefghij', 'abcdefghij', 'abcdefghik', 'abcdefghik'].map(name => names.take(name))).toEqual([
    'b_2',
    'abcdefghij',
    'ab_2',
    'abcdefghik',
    'ab_3',
  ])
})

const newNotes = (): TranslationNotes => ({ renamed: new Map() }) as unknown as TranslationNotes

const COUNT = 40_000
/** Names that no dialect allows. All become the same, or names with the same start that must be numbered. */
const hostile: Readonly<Record<string, (at: number) => string>> = {
  'become the same': at => `${String.fromCodePoint(0x4e00 + (at % 20_000))}${'+-'[at % 2]}`,
  'differ after the longest start': at => `${'x'.repeat(122)}${String(at >> 1).padStart(6, '0')}${'+ '[at % 2]}`,
}
const dialects: Readonly<Record<string, (names: readonly string[]) => { write(name: string): string }>> = {
  'openai-chat': names => new ChatToolNames(toolsOf(names), newNotes()),
  'openai-responses': names => new ResponsesToolNames(newNotes(), names),
  'anthropic-messages': names => new AnthropicToolNames(newNotes(), names),
  'gemini': names => new GeminiToolNames(toolsOf(names), new Map()),
}
const toolsOf = (names: readonly string[]): readonly Tool[] =>
  names.map(name => ({ kind: 'function', name, schema: {} }) as unknown as Tool)

const cases = Object.keys(dialects).flatMap(dialect => Object.keys(hostile).map(kind => [dialect, kind] as const))
test.each(cases)('the work for %s is linear in the number of names that %s', async (dialect, kind) => {
  const names = Array.from({ length: COUNT }, (_, at) => hostile[kind]!(at))
  let written: readonly string[] = []
  await expectCheap(2_000, () => {
    const tools = dialects[dialect]!(names)
    written = names.map(name => tools.write(name))
  })
  expect(new Set(written).size).toBe(new Set(names).size)
})
