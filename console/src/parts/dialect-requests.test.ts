import { expect, test } from 'bun:test'
import { answerText, dialects, requestOf } from './dialect-requests.ts'

const prompt = { model: 'demo/echo', system: '', text: `It's "here"\n`, maxTokens: 9 }

test('the text of an answer is found in every dialect', () => {
  const answers = {
    chat: { choices: [{ message: { content: 'a' } }] },
    ark: { choices: [{ message: { content: 'a' } }] },
    responses: { output: [{ type: 'reasoning' }, { content: [{ text: 'a' }] }] },
    messages: { content: [{ type: 'text', text: 'a' }] },
    gemini: { candidates: [{ content: { parts: [{ text: 'a' }] } }] },
  }
  for (const dialect of dialects) expect(answerText(dialect, answers[dialect])).toBe('a')
  expect(answerText('gemini', {})).toBe('')
})

test('a system text is sent in the place of the dialect', () => {
  const bodies = dialects.map(dialect => JSON.stringify(requestOf(dialect, { ...prompt, system: 'Be brief.' }).body))
  expect(bodies.every(body => body.includes('Be brief.'))).toBe(true)
})
