// Embeddings that are asked for in one dialect and made in another.

import { noVectors } from '../../protocols/neutral/embeddings.ts'
import { Losses } from '../../protocols/neutral/losses.ts'
import type { Meeting } from './translation.ts'
import type { VectorTranslation } from './translation-types.ts'

export interface WrittenVectors {
  readonly body: Buffer
  readonly vectors: VectorTranslation
}

/** Undefined where both sides speak the same dialect, or one of them none of vectors. */
export function writeVectorAsk({ hold, exchange }: Meeting): WrittenVectors | undefined {
  const { call, route } = hold
  const [to, from] = [exchange.protocol.vectors, route.spoken.vectors]
  if (route.spoken === exchange.protocol || to === undefined || from === undefined) return undefined
  const losses = new Losses()
  const ask = to.readAsk(call)
  losses.addAll(ask.unread)
  const body = Buffer.from(from.writeAsk(ask, { model: route.model.id, losses }))
  losses.throwIf(exchange.strict)
  return {
    body,
    vectors: {
      losses,
      writeAnswer(answer) {
        const found = from.readVectors(answer)
        if (found.vectors.length !== ask.inputs.length) throw noVectors()
        return Buffer.from(to.writeVectors(found, call))
      },
    },
  }
}
