// Google's SDK of before, which many programs still have.

import type { Part } from '@google/genai'
import type { Content, EnhancedGenerateContentResponse, FunctionDeclaration, ModelParams } from '@google/generative-ai'
import { GoogleGenerativeAI, GoogleGenerativeAIFetchError, SchemaType } from '@google/generative-ai'
import type { Client, Reply, Session, Wish } from './client.ts'
import { messageOf } from './client.ts'
import { genai, replyOfParts } from './google-genai.ts'

const text = { type: SchemaType.STRING } as const

function paramsOf({ model, tools, schema, thinking }: Wish): ModelParams {
  const declared = (name: string): FunctionDeclaration =>
    ({ name, parameters: { type: SchemaType.OBJECT, properties: { city: text } } }) as FunctionDeclaration
  const format = { type: SchemaType.OBJECT, properties: { echo: text }, required: ['echo'] }
  return {
    model,
    ...(tools && { tools: [{ functionDeclarations: tools.map(declared) }] }),
    generationConfig: {
      ...(schema && { responseMimeType: 'application/json', responseSchema: format }),
      // It is older than thinking, and passes on what it does not know.
      ...(thinking && { thinkingConfig: { includeThoughts: true, thinkingBudget: 1_024 } }),
    },
  } as ModelParams
}

function replyOf(responses: readonly EnhancedGenerateContentResponse[]): Reply {
  const parts = responses.flatMap(response => response.candidates?.[0]?.content?.parts ?? []) as unknown as Part[]
  const last = responses.at(-1)
  // It takes an error in a stream for an answer without candidates.
  if (last?.candidates === undefined) throw new Error(`no answer: ${JSON.stringify(last)}`)
  return replyOfParts(parts, { finish: last?.candidates?.[0]?.finishReason, usage: last?.usageMetadata })
}

const session = (google: GoogleGenerativeAI, baseUrl: string, turns: Pick<Session, 'user' | 'results'>): Session => ({
  ...turns,
  async ask(way, wish) {
    const model = google.getGenerativeModel(paramsOf(wish), { baseUrl })
    const request = { contents: wish.turns as Content[] }
    const options = wish.signal ? { signal: wish.signal } : {}
    if (way === 'plain') return replyOf([(await model.generateContent(request, options)).response])
    const { stream, response } = await model.generateContentStream(request, options)
    response.catch(() => {}) // the same fault as that of the stream
    if (way === 'helper') return replyOf([await response])
    const responses: EnhancedGenerateContentResponse[] = []
    for await (const piece of stream) {
      responses.push(piece)
      if (piece.candidates?.[0]?.content?.parts?.some(part => part.text)) wish.heard?.()
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
  tellsRequestId: false,
  helperForgets: true,
  connect: (url, key) => session(new GoogleGenerativeAI(key), url, genai.connect(url, key)),
}
