// Translates an embeddings call between two dialects.

import { noVectors } from '../../protocols/neutral/embeddings.ts'
import { Losses } from '../../protocols/neutral/losses.ts'
import type { Meeting } from './translation.ts'
import type { VectorTranslation } from './translation-types.ts'

export interface WrittenVectors {
  readonly body: Buffer
  readonly vectors: VectorTranslation
}

/** Undefined where both sides speak the same dialect, or where one of the dialects has no embeddings. */
export function writeVectorAsk({ hold, exchange }: Meeting): WrittenVectors | undefined {
  const { call, route } = hold
  const [to, from] = [exchange.protocol.vectors, route.spoken.vectors]
  if (route.spoken === exchange.protocol || to === undefined || from === undefined) return undefined
  const losses = new Losses()
  const request = to.readAsk(call)
  losses.addAll(request.unread)
  const body = Buffer.from(from.writeAsk(request, { model: route.model.id, losses }))
  losses.throwIf(exchange.strict)
  return {
    body,
    vectors: {
      losses,
      writeAnswer(answer) {
        const embeddings = from.readVectors(answer)
        if (embeddings.vectors.length !== request.inputs.length) throw noVectors()
        return Buffer.from(to.writeVectors(embeddings, call))
      },
    },
  }
}
