// Code that sends a prompt through this gateway: as a curl command, and with the official SDK of each dialect.

import type { Dialect, Prompt } from './dialect-requests.ts'
import { requestOf } from './dialect-requests.ts'

interface CodeInput {
  readonly dialect: Dialect
  readonly prompt: Prompt
  readonly origin: string
  /** The text of the key. Without it, the code reads the key from the environment variable WEIR_KEY. */
  readonly key?: string | undefined
}

export const languages = ['curl', 'python', 'typescript'] as const
export type Language = (typeof languages)[number]

/** Text in single quotes for a shell. */
const shellText = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
/** JSON strings are string literals in Python and in TypeScript. */
const literal = (value: unknown): string => JSON.stringify(value)
/** Removes the lines of options that are not set. */
const joined = (lines: readonly (string | undefined)[]): string => lines.filter(line => line !== undefined).join('\n')

function curl({ dialect, prompt, origin, key = '$WEIR_KEY' }: CodeInput): string {
  const { path, keyHeader, headers, body } = requestOf(dialect, prompt)
  const parts = [
    `curl ${origin}${path}`,
    `-H "${keyHeader[0]}: ${keyHeader[1](key)}"`,
    '-H "Content-Type: application/json"',
    ...Object.entries(headers).map(([name, value]) => `-H "${name}: ${value}"`),
    `-d ${shellText(JSON.stringify(body, null, 2))}`,
  ]
  return parts.join(' \\\n  ')
}

/** A program in parts. An option without a value is left out. */
interface Program {
  readonly imports: string
  readonly client: string
  readonly method: string
  readonly options: readonly (readonly [name: string, value: string | undefined])[]
  /** The expression of the text in the variable `answer`. */
  readonly text: string
}

/** What both languages need of a prompt, as literals. */
function literals({ model, system, text, maxTokens }: Prompt) {
  const user = { role: 'user', content: text }
  return {
    model: literal(model),
    text: literal(text),
    system: system === '' ? undefined : literal(system),
    maxTokens: String(maxTokens),
    userMessage: literal([user]),
    messages: literal(system === '' ? [user] : [{ role: 'system', content: system }, user]),
  }
}

const pythonPrograms: Readonly<Record<Dialect, (prompt: Prompt, origin: string, key: string) => Program>> = {
  chat: (prompt, origin, key) => ({
    imports: 'from openai import OpenAI',
    client: `OpenAI(base_url=${literal(`${origin}/v1`)}, api_key=${key})`,
    method: 'chat.completions.create',
    options: chatOptions(prompt),
    text: 'answer.choices[0].message.content',
  }),
  ark: (prompt, origin, key) => ({
    imports: 'from volcenginesdkarkruntime import Ark',
    client: `Ark(base_url=${literal(`${origin}/api/v3`)}, api_key=${key})`,
    method: 'chat.completions.create',
    options: chatOptions(prompt),
    text: 'answer.choices[0].message.content',
  }),
  responses: (prompt, origin, key) => ({
    imports: 'from openai import OpenAI',
    client: `OpenAI(base_url=${literal(`${origin}/v1`)}, api_key=${key})`,
    method: 'responses.create',
    options: responsesOptions(prompt),
    text: 'answer.output_text',
  }),
  messages: (prompt, origin, key) => ({
    imports: 'from anthropic import Anthropic',
    client: `Anthropic(base_url=${literal(origin)}, api_key=${key})`,
    method: 'messages.create',
    options: messagesOptions(prompt),
    text: 'answer.content[0].text',
  }),
  gemini: (prompt, origin, key) => ({
    imports: 'from google import genai',
    client: `genai.Client(api_key=${key}, http_options={"base_url": ${literal(origin)}})`,
    method: 'models.generate_content',
    options: geminiOptions(prompt, 'max_output_tokens', 'system_instruction'),
    text: 'answer.text',
  }),
}

const typescriptPrograms: Readonly<Record<Dialect, (prompt: Prompt, origin: string, key: string) => Program>> = {
  chat: (prompt, origin, key) => ({
    imports: "import OpenAI from 'openai'",
    client: `new OpenAI({ baseURL: ${literal(`${origin}/v1`)}, apiKey: ${key} })`,
    method: 'chat.completions.create',
    options: chatOptions(prompt),
    text: 'answer.choices[0].message.content',
  }),
  ark: (prompt, origin, key) => ({
    imports: "import OpenAI from 'openai'",
    client: `new OpenAI({ baseURL: ${literal(`${origin}/api/v3`)}, apiKey: ${key} })`,
    method: 'chat.completions.create',
    options: chatOptions(prompt),
    text: 'answer.choices[0].message.content',
  }),
  responses: (prompt, origin, key) => ({
    imports: "import OpenAI from 'openai'",
    client: `new OpenAI({ baseURL: ${literal(`${origin}/v1`)}, apiKey: ${key} })`,
    method: 'responses.create',
    options: responsesOptions(prompt),
    text: 'answer.output_text',
  }),
  messages: (prompt, origin, key) => ({
    imports: "import Anthropic from '@anthropic-ai/sdk'",
    client: `new Anthropic({ baseURL: ${literal(origin)}, apiKey: ${key} })`,
    method: 'messages.create',
    options: messagesOptions(prompt),
    text: 'answer.content',
  }),
  gemini: (prompt, origin, key) => ({
    imports: "import { GoogleGenAI } from '@google/genai'",
    client: `new GoogleGenAI({ apiKey: ${key}, httpOptions: { baseUrl: ${literal(origin)} } })`,
    method: 'models.generateContent',
    options: geminiOptions(prompt, 'maxOutputTokens', 'systemInstruction'),
    text: 'answer.text',
  }),
}

function chatOptions(prompt: Prompt): Program['options'] {
  const { model, messages, maxTokens } = literals(prompt)
  return [
    ['model', model],
    ['messages', messages],
    ['max_tokens', maxTokens],
  ]
}

function responsesOptions(prompt: Prompt): Program['options'] {
  const { model, text, system, maxTokens } = literals(prompt)
  return [
    ['model', model],
    ['input', text],
    ['instructions', system],
    ['max_output_tokens', maxTokens],
  ]
}

function messagesOptions(prompt: Prompt): Program['options'] {
  const { model, system, maxTokens, userMessage } = literals(prompt)
  return [
    ['model', model],
    ['system', system],
    ['max_tokens', maxTokens],
    ['messages', userMessage],
  ]
}

function geminiOptions({ model, system, text, maxTokens }: Prompt, most: string, role: string): Program['options'] {
  return [
    ['model', literal(model)],
    ['contents', literal(text)],
    ['config', literal({ [most]: maxTokens, ...(system !== '' && { [role]: system }) })],
  ]
}

function python({ dialect, prompt, origin, key }: CodeInput): string {
  const keyCode = key === undefined ? 'os.environ["WEIR_KEY"]' : literal(key)
  const { imports, client, method, options, text } = pythonPrograms[dialect](prompt, origin, keyCode)
  return joined([
    key === undefined ? 'import os' : undefined,
    imports,
    '',
    `client = ${client}`,
    `answer = client.${method}(`,
    ...options.map(([name, value]) => (value === undefined ? undefined : `    ${name}=${value},`)),
    ')',
    `print(${text})`,
  ])
}

function typescript({ dialect, prompt, origin, key }: CodeInput): string {
  const keyCode = key === undefined ? 'process.env.WEIR_KEY' : literal(key)
  const { imports, client, method, options, text } = typescriptPrograms[dialect](prompt, origin, keyCode)
  return joined([
    imports,
    '',
    `const client = ${client}`,
    `const answer = await client.${method}({`,
    ...options.map(([name, value]) => (value === undefined ? undefined : `  ${name}: ${value},`)),
    '})',
    `console.log(${text})`,
  ])
}

const writers: Readonly<Record<Language, (input: CodeInput) => string>> = { curl, python, typescript }

export const codeIn = (language: Language, input: CodeInput): string => writers[language](input)
