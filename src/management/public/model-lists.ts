// Writes the list of models in the form of each dialect, in pages if the dialect has pages. A request without a page
// size gets the largest page, so that a client that reads only the first page misses no model.

import { Refusal } from '../../base/errors.ts'
import {
  writeModelList as writeAnthropicList,
  writeModel as writeAnthropicModel,
} from '../../protocols/anthropic-messages/models.ts'
import { writeModelList as writeArkList } from '../../protocols/ark/models.ts'
import { writeModelList as writeGeminiList, writeModel as writeGeminiModel } from '../../protocols/gemini/models.ts'
import type { ListedModel } from '../../protocols/listed-model.ts'
import { invalid } from '../../protocols/request/checks.ts'

type Models = readonly ListedModel[]
type Query = (name: string) => string | null

const PAGE_MAX = 1_000

export interface ListShape {
  list(models: Models, query: Query): string
  one(model: ListedModel): string
}

export const listShapes = {
  'anthropic-messages': { list: anthropicPage, one: writeAnthropicModel },
  'gemini': { list: geminiPage, one: writeGeminiModel },
  'ark': { list: writeArkList, one: model => writeArkList([model]) },
} as const satisfies Record<string, ListShape>

export function findListed(models: Models, id: string): ListedModel {
  const found = models.find(model => model.id === id)
  if (found === undefined) throw new Refusal('model_unknown', id.slice(0, 200), { param: 'model' })
  return found
}

/** `after_id` and `before_id` are model ids. A page with `before_id` ends right before that model. */
function anthropicPage(models: Models, query: Query): string {
  const limit = sizeOf(query, 'limit') ?? PAGE_MAX
  const indexOf = (field: string): number | undefined => {
    const id = query(field)
    if (id === null) return undefined
    const at = models.findIndex(model => model.id === id)
    if (at < 0) throw invalid(field, 'is not a model of this list')
    return at
  }
  const [after, before] = [indexOf('after_id'), indexOf('before_id')]
  if (before !== undefined) {
    const from = Math.max(0, before - limit)
    return writeAnthropicList(models.slice(from, before), from > 0)
  }
  const from = after === undefined ? 0 : after + 1
  return writeAnthropicList(models.slice(from, from + limit), from + limit < models.length)
}

/** A page token is the id of the last model of the previous page. */
function geminiPage(models: Models, query: Query): string {
  const size = Math.min(sizeOf(query, 'pageSize') ?? PAGE_MAX, PAGE_MAX)
  const token = query('pageToken') || undefined
  const last = token === undefined ? undefined : Buffer.from(token, 'base64url').toString('utf8')
  const from = last === undefined ? 0 : models.findIndex(model => model.id === last) + 1
  if (last !== undefined && from === 0) throw invalid('pageToken', 'is not a page token of this list')
  const page = models.slice(from, from + size)
  const isLast = from + page.length >= models.length
  return writeGeminiList(page, isLast ? {} : { nextPageToken: Buffer.from(page.at(-1)!.id).toString('base64url') })
}

function sizeOf(query: Query, field: string): number | undefined {
  const text = query(field)
  if (text === null || text === '' || text === '0') return undefined
  if (!/^[1-9]\d{0,5}$/.test(text)) throw invalid(field, 'must be a positive integer')
  const max = field === 'limit' ? PAGE_MAX : Number.MAX_SAFE_INTEGER
  if (Number(text) > max) throw invalid(field, `must be at most ${max}`)
  return Number(text)
}
