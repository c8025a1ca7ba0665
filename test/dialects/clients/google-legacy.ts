// Google's earlier SDK, which many programs still use.

import type { Part } from '@google/genai'
import type { Content, EnhancedGenerateContentResponse, FunctionDeclaration, ModelParams } from '@google/generative-ai'
import { GoogleGenerativeAI, GoogleGenerativeAIFetchError, SchemaType } from '@google/generative-ai'
import type { AskOptions, Client, Reply, Session } from './client.ts'
import { messageOf } from './client.ts'
import { genai, replyOfParts } from './google-genai.ts'

const text = { type: SchemaType.STRING } as const

function paramsOf({ model, tools, schema, thinking }: AskOptions): ModelParams {
  const declared = (name: string): FunctionDeclaration =>
    ({ name, parameters: { type: SchemaType.OBJECT, properties: { city: text } } }) as FunctionDeclaration
  const format = { type: SchemaType.OBJECT, properties: { echo: text }, required: ['echo'] }
  return {
    model,
    ...(tools && { tools: [{ functionDeclarations: tools.map(declared) }] }),
    generationConfig: {
      ...(schema && { responseMimeType: 'application/json', responseSchema: format }),
      // The SDK does not know thinking, and passes unknown fields on.
      ...(thinking && { thinkingConfig: { includeThoughts: true, thinkingBudget: 1_024 } }),
    },
  } as ModelParams
}

function replyOf(responses: readonly EnhancedGenerateContentResponse[]): Reply {
  const parts = responses.flatMap(response => response.candidates?.[0]?.content?.parts ?? []) as unknown as Part[]
  const last = responses.at(-1)
  // The SDK takes an error in a stream for an answer without candidates.
  if (last?.candidates === undefined) throw new Error(`no answer: ${JSON.stringify(last)}`)
  return replyOfParts(parts, { finish: last?.candidates?.[0]?.finishReason, usage: last?.usageMetadata })
}

const session = (google: GoogleGenerativeAI, baseUrl: string, turns: Pick<Session, 'user' | 'results'>): Session => ({
  ...turns,
  async ask(way, ask) {
    const model = google.getGenerativeModel(paramsOf(ask), { baseUrl })
    const request = { contents: ask.turns as Content[] }
    const options = ask.signal ? { signal: ask.signal } : {}
    if (way === 'plain') return replyOf([(await model.generateContent(request, options)).response])
    const { stream, response } = await model.generateContentStream(request, options)
    response.catch(() => {}) // the same fault as that of the stream
    if (way === 'helper') return replyOf([await response])
    const responses: EnhancedGenerateContentResponse[] = []
    for await (const piece of stream) {
      responses.push(piece)
      if (piece.candidates?.[0]?.content?.parts?.some(part => part.text)) ask.onContent?.()
    }
    return replyOf(responses)
  },
  fault(error) {
    const status = error instanceof GoogleGenerativeAIFetchError ? error.status : undefined
    return { kind: (error as Error).constructor.name, status, message: messageOf(error) }
  },
})

export const generativeAi: Client = {
  name: 'Google generative-ai',
  dialect: 'gemini',
  raises: () => 'GoogleGenerativeAIFetchError',
  hasRequestId: false,
  helperDropsThoughts: true,
  connect: (url, key) => session(new GoogleGenerativeAI(key), url, genai.connect(url, key)),
}
