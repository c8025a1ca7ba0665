// Translates an embeddings call between two dialects.

import { missingVectors } from '../../protocols/neutral/embeddings.ts'
import { Losses } from '../../protocols/neutral/losses.ts'
import type { AttemptContext } from './translation.ts'
import type { EmbeddingsTranslation } from './translation-types.ts'

export interface TranslatedEmbeddings {
  readonly body: Buffer
  readonly embeddings: EmbeddingsTranslation
}

/** Undefined where both sides speak the same dialect, or where one of the dialects has no embeddings. */
export function translateEmbeddings({ hold, candidate, exchange }: AttemptContext): TranslatedEmbeddings | undefined {
  const { call } = hold
  const [to, from] = [exchange.protocol.vectors, candidate.upstreamProtocol.vectors]
  if (candidate.upstreamProtocol === exchange.protocol || to === undefined || from === undefined) return undefined
  const losses = new Losses()
  const request = to.readRequest(call)
  losses.addAll(request.lostFields)
  const body = Buffer.from(from.writeRequest(request, { model: candidate.model.id, losses }))
  losses.throwIfStrict(exchange.options.strict)
  return {
    body,
    embeddings: {
      losses,
      writeAnswer(answer) {
        const embeddings = from.readResult(answer)
        if (embeddings.vectors.length !== request.inputs.length) throw missingVectors()
        return Buffer.from(to.writeResult(embeddings, call))
      },
    },
  }
}
