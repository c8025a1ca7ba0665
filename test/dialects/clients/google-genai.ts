// Google's current SDK. Its stream helper is a chat that keeps its own history.

import type { Content, GenerateContentConfig, GenerateContentResponse, Part } from '@google/genai'
import { ApiError, GoogleGenAI } from '@google/genai'
import type { AskOptions, Client, Reply, Session } from './client.ts'
import { citySchema, echoSchema, messageOf } from './client.ts'

function configOf({ tools, schema, thinking, signal }: AskOptions): GenerateContentConfig {
  const declared = (name: string) => ({ name, parametersJsonSchema: citySchema })
  return {
    ...(tools && { tools: [{ functionDeclarations: tools.map(declared) }] }),
    ...(schema && { responseMimeType: 'application/json', responseJsonSchema: echoSchema }),
    ...(thinking && { thinkingConfig: { includeThoughts: true, thinkingBudget: 1_024 } }),
    ...(signal && { abortSignal: signal }),
  }
}

/** The reply from the parts of one or more responses. */
export function replyOfParts(
  parts: readonly Part[],
  { finish, usage }: { finish: string | undefined; usage: GenerateContentResponse['usageMetadata'] },
): Reply {
  const calls = parts.flatMap(({ functionCall: call }) =>
    call ? [{ id: call.id ?? '', name: call.name!, input: call.args ?? {} }] : [],
  )
  const spoken = (thought: boolean) => parts.filter(part => (part.thought ?? false) === thought)
  return {
    text: spoken(false)
      .map(part => part.text ?? '')
      .join(''),
    thoughts: spoken(true)
      .map(part => part.text ?? '')
      .join(''),
    calls,
    finish: finish !== 'STOP' ? 'other' : calls.length > 0 ? 'calls' : 'stop',
    usage: {
      input: usage?.promptTokenCount ?? -1,
      cached: usage?.cachedContentTokenCount ?? 0,
      output: (usage?.candidatesTokenCount ?? 0) + (usage?.thoughtsTokenCount ?? 0),
      reasoning: usage?.thoughtsTokenCount ?? 0,
    },
    turns: [{ role: 'model', parts }],
  }
}

function replyOf(responses: readonly GenerateContentResponse[]): Reply {
  const parts = responses.flatMap(response => response.candidates?.[0]?.content?.parts ?? [])
  const last = responses.at(-1)
  return replyOfParts(parts, { finish: last?.candidates?.[0]?.finishReason, usage: last?.usageMetadata })
}

async function gather(stream: AsyncIterable<GenerateContentResponse>, ask: AskOptions): Promise<Reply> {
  const responses: GenerateContentResponse[] = []
  for await (const response of stream) {
    responses.push(response)
    if (response.candidates?.[0]?.content?.parts?.some(part => part.text)) ask.onContent?.()
  }
  return replyOf(responses)
}

function connect({ models, chats }: GoogleGenAI): Session {
  return {
    user: (text, { picture } = {}) => ({
      role: 'user',
      parts: [{ text }, ...(picture ? [{ inlineData: { mimeType: 'image/png', data: picture } }] : [])],
    }),
    results(results) {
      const part = ({ id, name, text }: (typeof results)[number]) => ({
        functionResponse: { ...(id !== '' && { id }), name, response: { output: text } },
      })
      return [{ role: 'user', parts: results.map(part) }]
    },
    async ask(way, ask) {
      const { model } = ask
      const config = configOf(ask)
      const contents = ask.turns as Content[]
      if (way === 'plain') return replyOf([await models.generateContent({ model, contents, config })])
      if (way === 'stream') return gather(await models.generateContentStream({ model, contents, config }), ask)
      const chat = chats.create({ model, config, history: contents.slice(0, -1) })
      const reply = await gather(await chat.sendMessageStream({ message: contents.at(-1)!.parts! }), ask)
      return { ...reply, turns: chat.getHistory().slice(contents.length) }
    },
    fault(error) {
      const status = error instanceof ApiError ? error.status : undefined
      return { kind: (error as Error).constructor.name, status, message: messageOf(error) }
    },
  }
}

export const genai: Client = {
  name: 'Google GenAI',
  dialect: 'gemini',
  raises: () => 'ApiError',
  hasRequestId: false,
  connect: (baseUrl, apiKey) => connect(new GoogleGenAI({ apiKey, httpOptions: { baseUrl } })),
}
