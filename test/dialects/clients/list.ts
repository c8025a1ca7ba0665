// All clients of the suite. The first client of each dialect represents it in the published matrix.

import { anthropic, anthropic0 } from './anthropic.ts'
import type { Client } from './client.ts'
import { genai } from './google-genai.ts'
import { generativeAi } from './google-legacy.ts'
import { arkChat, arkChat6, openaiChat, openaiChat6 } from './openai-chat.ts'
import { openaiResponses, openaiResponses6 } from './openai-responses.ts'
import { vercelClients } from './vercel.ts'

export const clients: readonly Client[] = [
  ...[openaiChat, openaiResponses, anthropic, genai, arkChat],
  ...[openaiChat6, openaiResponses6, anthropic0, generativeAi, arkChat6],
  ...vercelClients,
]
