// The endpoints of model lists. /v1/models serves clients of three dialects, which it distinguishes by their headers.

import type { ListShape } from '../management/public/model-lists.ts'
import { findListed, listShapes } from '../management/public/model-lists.ts'
import type { PublicData } from '../management/public/public-data.ts'
import type { Endpoint, EndpointHandler, EndpointRequest } from './endpoint.ts'

/** The dialect of the model list that the client wants; undefined: OpenAI's. */
export function listDialect(request: Pick<EndpointRequest, 'header' | 'query'>): keyof typeof listShapes | undefined {
  if (request.header('anthropic-version') !== undefined) return 'anthropic-messages'
  return request.header('x-goog-api-key') !== undefined || request.query('key') !== null ? 'gemini' : undefined
}

const get = { method: 'GET' } as const

export function modelEndpoints(data: PublicData): readonly Endpoint[] {
  const idIn = (path: string): string => path.replace(/^.*?\/models\//, '')
  const openaiList: EndpointHandler = () => ({ body: data.modelList })
  const openaiOne: EndpointHandler = ({ path }) => ({ body: data.modelById(findListed(data.listed, idIn(path)).id)! })
  const list =
    (shape: ListShape): EndpointHandler =>
    ({ query }) => ({ body: shape.list(data.listed, query) })
  const one =
    (shape: ListShape): EndpointHandler =>
    ({ path }) => ({ body: shape.one(findListed(data.listed, idIn(path))) })
  const negotiated =
    (other: (shape: ListShape) => EndpointHandler, own: EndpointHandler): EndpointHandler =>
    request => {
      const dialect = listDialect(request)
      return dialect === undefined ? own(request) : other(listShapes[dialect])(request)
    }
  return [
    { ...get, path: '/v1/models', auth: 'nobody', answer: negotiated(list, openaiList) },
    { ...get, path: '/v1/models/*', auth: 'nobody', answer: negotiated(one, openaiOne) },
    { ...get, path: '/v1beta/openai/models', auth: 'nobody', answer: openaiList },
    { ...get, path: '/v1beta/openai/models/*', auth: 'nobody', answer: openaiOne },
    { ...get, path: '/v1beta/models', auth: 'key', kind: 'models', answer: list(listShapes.gemini) },
    { ...get, path: '/v1beta/models/*', auth: 'key', kind: 'models', answer: one(listShapes.gemini) },
    { ...get, path: '/api/v3/models', auth: 'key', kind: 'models', answer: list(listShapes.ark) },
  ]
}
