import { expect, test } from 'bun:test'
import { dialects } from './dialect-requests.ts'
import { codeIn, languages } from './sdk-code.ts'

const prompt = { model: 'demo/echo', system: '', text: `It's "here"\n`, maxTokens: 9 }
const origin = 'http://gateway'

test('text with quotes survives in the code of every dialect', () => {
  for (const dialect of dialects) {
    expect(codeIn('curl', { dialect, prompt, origin })).toContain(`It'\\''s \\"here\\"\\n`)
    for (const language of ['python', 'typescript'] as const)
      expect(codeIn(language, { dialect, prompt, origin })).toContain(JSON.stringify(prompt.text))
  }
})

test('TypeScript of every dialect is valid, with and without a system text', () => {
  const transpiler = new Bun.Transpiler({ loader: 'ts' })
  for (const dialect of dialects)
    for (const system of ['', 'Be "brief".'])
      expect(
        transpiler.scan(codeIn('typescript', { dialect, prompt: { ...prompt, system }, origin })).imports,
      ).toHaveLength(1)
})

test('the key is the given text, or comes from the environment', () => {
  for (const dialect of dialects) {
    for (const language of languages) {
      const withKey = codeIn(language, { dialect, prompt, origin, key: 'wk-a' })
      expect(withKey).toContain('wk-a')
      expect(withKey).not.toContain('WEIR_KEY')
      expect(withKey).not.toContain('import os')
      expect(codeIn(language, { dialect, prompt, origin })).toMatch(/\$WEIR_KEY|environ\["WEIR_KEY"\]|env\.WEIR_KEY/)
    }
  }
})

test('a program is readable line by line', () => {
  expect(codeIn('python', { dialect: 'messages', prompt: { ...prompt, text: 'Hi' }, origin })).toBe(`import os
from anthropic import Anthropic

client = Anthropic(base_url="http://gateway", api_key=os.environ["WEIR_KEY"])
answer = client.messages.create(
    model="demo/echo",
    max_tokens=9,
    messages=[{"role":"user","content":"Hi"}],
)
print(answer.content[0].text)`)
})
