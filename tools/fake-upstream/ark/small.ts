// Small endpoints of Ark: tokenization, files and the context cache.

import { jsonAnswer } from '../answers.ts'
import { objectOf, pathOf, recordsOf, stringOf, stringsOf, wordsIn } from '../body-fields.ts'
import type { Problem } from '../dialect.ts'
import { base36, createdS } from '../dialect.ts'
import { readForm } from '../multipart.ts'
import { RecentItems } from '../recent-items.ts'
import type { ReceivedRequest } from '../request.ts'
import type { Script } from '../script.ts'
import { script } from '../script.ts'

type Refuse = (problem: Problem) => Script

const textsMax = 256
const wordsMax = 32_768
const filesMax = 100
const json = (body: object): Script => script(...jsonAnswer(200, JSON.stringify(body)))

/** A token is a word, and its id is the length of the word. */
export function answerTokenization(request: ReceivedRequest, refuse: Refuse): Script {
  const body = objectOf(request)
  const texts = typeof body.text === 'string' ? [body.text] : stringsOf(body.text)
  if (texts.length === 0 || texts.length > textsMax) {
    return refuse({ message: 'The parameter `text` is not valid.', param: 'text' })
  }
  const data = texts.map((text, index) => {
    const words = [...text.matchAll(/\S+/g).take(wordsMax)]
    const token_ids = words.map(word => word[0].length)
    const offset_mapping = words.map(word => [word.index, word.index + word[0].length])
    return { index, object: 'tokenization', total_tokens: words.length, token_ids, offset_mapping }
  })
  return json({ id: `fake${base36(request.ordinal)}`, object: 'list', created: createdS, model: body.model, data })
}

/** Counts the words of the messages and does not store them. */
export function answerContext(request: ReceivedRequest, refuse: Refuse): Script {
  const body = objectOf(request)
  if (!Array.isArray(body.messages)) return refuse({ message: 'The parameter `messages` is missing.' })
  const words = recordsOf(body.messages).reduce((sum, message) => sum + wordsIn(message.content), 0)
  const usage = { prompt_tokens: words, completion_tokens: 0, total_tokens: words }
  const mode = stringOf(body.mode) || 'session'
  return json({ id: `ctx-fake${base36(request.ordinal)}`, model: body.model, mode, ttl: body.ttl ?? 86_400, usage })
}

export class Files {
  readonly #files = new RecentItems<object>(filesMax)

  answer(request: ReceivedRequest, refuse: Refuse): Script {
    const id = /\/files\/([^/]+)$/.exec(pathOf(request))?.[1]
    if (id === undefined) return request.method === 'POST' ? this.#upload(request, refuse) : this.#list()
    const file = this.#files.get(id)
    if (!file) return refuse({ status: 404, message: `The file ${id} is not found.`, param: 'id' })
    if (request.method !== 'DELETE') return json(file)
    this.#files.delete(id)
    return json({ id, object: 'file', deleted: true })
  }

  #upload(request: ReceivedRequest, refuse: Refuse): Script {
    const form = readForm(request)
    const file = form?.files.get('file')
    if (!form || !file) return refuse({ message: 'The parameter `file` is missing.', param: 'file' })
    const id = `file-fake${base36(request.ordinal)}`
    const times = { created_at: createdS, expire_at: createdS + 7 * 86_400 }
    const purpose = form.fields.get('purpose') ?? 'user_data'
    const fileFields = { filename: file.name, bytes: file.bytes, mime_type: file.type }
    this.#files.put(id, { object: 'file', id, purpose, ...fileFields, ...times, status: 'active' })
    return json(this.#files.get(id)!)
  }

  #list(): Script {
    const all = this.#files.all()
    const pageFields = { first_id: all[0]?.[0] ?? null, last_id: all.at(-1)?.[0] ?? null }
    return json({ object: 'file', data: all.map(([, file]) => file), ...pageFields, has_more: false })
  }
}
