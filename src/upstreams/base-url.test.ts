// Tests which base URL is used for an address as people enter it.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseOperatorAddress } from '../http/address/operator-address.ts'
import { correctAddress } from './base-url.ts'
import { parseProvider } from './provider.ts'

const providerNamed = (id: string) => {
  const file = join(import.meta.dir, '../../providers', `${id}.json`)
  return parseProvider(readFileSync(file, 'utf8'), file)
}
const baseUrlFor = (id: string, text: string): string =>
  correctAddress(parseOperatorAddress(text), providerNamed(id)).base

test.each([
  ['ollama', 'http://localhost:11434', 'http://localhost:11434/v1'],
  ['ollama', 'http://localhost:11434/', 'http://localhost:11434/v1'],
  ['ollama', 'http://localhost:11434///', 'http://localhost:11434/v1'],
  ['ollama', 'http://localhost:11434/v1', 'http://localhost:11434/v1'],
  ['ollama', 'http://localhost:11434/v1/', 'http://localhost:11434/v1'],
  ['ollama', 'http://localhost:11434/v1/chat/completions', 'http://localhost:11434/v1'],
  ['ollama', 'http://localhost:11434/v1/chat/completions/', 'http://localhost:11434/v1'],
  ['ollama', 'http://localhost:11434/chat/completions', 'http://localhost:11434/v1'],
  ['ollama', 'http://localhost:11434/v1/models', 'http://localhost:11434/v1'],
  ['ollama', 'http://localhost:11434/api', 'http://localhost:11434/v1'],
  ['ollama', 'http://localhost:11434/api/chat', 'http://localhost:11434/v1'],
  ['ollama', 'http://box.lan:80/team/v1', 'http://box.lan/team/v1'],
  ['ollama', 'http://box.lan/team/v1/chat/completions', 'http://box.lan/team/v1'],
  ['vllm', 'http://127.0.0.1:8000', 'http://127.0.0.1:8000/v1'],
  ['openai', 'https://api.openai.com', 'https://api.openai.com/v1'],
  ['openai', 'https://api.openai.com/v1/responses', 'https://api.openai.com/v1'],
  ['openai', 'https://gateway.example/v1/account/openai', 'https://gateway.example/v1/account/openai'],
  ['anthropic', 'https://api.anthropic.com', 'https://api.anthropic.com/v1'],
  ['anthropic', 'https://api.anthropic.com/v1/messages', 'https://api.anthropic.com/v1'],
  ['google', 'https://proxy.example', 'https://proxy.example/v1beta'],
  ['google', 'https://proxy.example/v1beta/openai/', 'https://proxy.example/v1beta'],
  ['google', 'https://proxy.example/v1beta/openai/chat/completions', 'https://proxy.example/v1beta'],
  ['google', 'https://proxy.example/v1beta/models/gemini-x:generateContent', 'https://proxy.example/v1beta'],
  ['google', 'https://proxy.example/v1/models/gemini-x:streamGenerateContent', 'https://proxy.example/v1'],
  ['ark', 'https://ark.example', 'https://ark.example/api/v3'],
  ['groq', 'https://api.groq.com', 'https://api.groq.com/openai/v1'],
  ['groq', 'https://api.groq.com/openai/v1/chat/completions', 'https://api.groq.com/openai/v1'],
  ['deepseek', 'https://api.deepseek.com', 'https://api.deepseek.com'],
  ['deepseek', 'https://api.deepseek.com/v1', 'https://api.deepseek.com/v1'],
  ['deepseek', 'https://api.deepseek.com/chat/completions', 'https://api.deepseek.com'],
  ['azure', 'https://me.openai.azure.com/openai/v1/', 'https://me.openai.azure.com'],
  ['azure', 'https://me.openai.azure.com/openai/v1/chat/completions', 'https://me.openai.azure.com'],
  ['vertex', 'https://aiplatform.example', 'https://aiplatform.example'],
])('the base URL of %s for %s', (id, text, base) => {
  expect(baseUrlFor(id, text)).toBe(base)
})

test('an alias of a base path must be a path', () => {
  const file = readFileSync(join(import.meta.dir, '../../providers/ollama.json'), 'utf8')
  const text = JSON.stringify({ ...(JSON.parse(file) as object), basePathAliases: ['api/'] })
  expect(() => parseProvider(text, 'x.json')).toThrow('"basePathAliases" must be a list of paths')
})
