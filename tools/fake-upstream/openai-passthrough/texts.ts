// Small text endpoints: legacy completions, moderations and rerank.

import { frameSteps, jsonAnswer, streamHead } from '../answers.ts'
import { isCount, listOf, numberOf, objectOf, recordOf, stringOf, stringsOf } from '../body-fields.ts'
import { outputWordsMax } from '../demo-models.ts'
import type { Frame, Problem } from '../dialect.ts'
import { base36, countWords, createdS, cutIntoWords } from '../dialect.ts'
import type { ReceivedRequest } from '../request.ts'
import type { Script } from '../script.ts'
import { end, script } from '../script.ts'

type Refuse = (problem: Problem) => Script

const listMax = 256
const json = (body: object): Script => script(...jsonAnswer(200, JSON.stringify(body)))

/** Echoes each prompt. */
export function answerCompletions(request: ReceivedRequest, refuse: Refuse): Script {
  const body = objectOf(request)
  const prompts = typeof body.prompt === 'string' ? [body.prompt] : stringsOf(body.prompt)
  if (typeof body.model !== 'string') return refuse({ message: 'you must provide a model parameter', param: 'model' })
  if (prompts.length === 0 || prompts.length > listMax || !isCount(body.max_tokens, Number.MAX_SAFE_INTEGER)) {
    return refuse({ message: "Invalid 'prompt' or 'max_tokens'.", param: 'prompt' })
  }
  const wordsMax = Math.min(numberOf(body.max_tokens) ?? outputWordsMax, outputWordsMax)
  const answers = prompts.map(prompt => cutIntoWords(prompt, wordsMax))
  const [input, output] = [prompts, answers.map(it => it.join(''))].map(texts =>
    texts.reduce((sum, text) => sum + countWords(text), 0),
  )
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input! + output! }
  const id = `cmpl-fake${base36(request.ordinal)}`
  const head = { id, object: 'text_completion', created: createdS, model: body.model }
  const choice = (text: string, index: number, finish_reason: string | null) => ({
    text,
    index,
    logprobs: null,
    finish_reason,
  })
  const endOf = (at: number) => (countWords(prompts[at]!) > wordsMax ? 'length' : 'stop')
  if (body.stream !== true) {
    return json({ ...head, choices: answers.map((it, at) => choice(it.join(''), at, endOf(at))), usage })
  }
  const frame = (rest: object): Frame => ({ kind: 'piece', data: JSON.stringify({ ...head, ...rest }) })
  const wantsUsage = recordOf(body.stream_options).include_usage === true
  const pieces = answers.flatMap((it, at) => [
    ...it.map(text => frame({ choices: [choice(text, at, null)] })),
    frame({ choices: [choice('', at, endOf(at))] }),
  ])
  const last: readonly Frame[] = [
    ...(wantsUsage ? [frame({ choices: [], usage })] : []),
    { kind: 'done', data: '[DONE]' },
  ]
  return script(streamHead, ...frameSteps([...pieces, ...last]), end)
}

/** A text with the word violence in it is flagged. */
export function answerModerations(request: ReceivedRequest, refuse: Refuse): Script {
  const body = objectOf(request)
  const inputs = typeof body.input === 'string' ? [body.input] : listOf(body.input).slice(0, listMax)
  if (inputs.length === 0) return refuse({ message: "Missing required parameter: 'input'.", param: 'input' })
  const results = inputs.map(input => {
    const flagged = /violence/i.test(stringOf(input) || stringOf(recordOf(input).text))
    return {
      flagged,
      categories: { violence: flagged, hate: false },
      category_scores: { violence: flagged ? 0.9 : 0.01, hate: 0.01 },
      category_applied_input_types: { violence: ['text'], hate: ['text'] },
    }
  })
  const model = stringOf(body.model) || 'omni-moderation-latest'
  return json({ id: `modr-fake${base36(request.ordinal)}`, model, results })
}

/** A document ranks higher the more words it shares with the query. */
export function answerRerank(request: ReceivedRequest, refuse: Refuse): Script {
  const body = objectOf(request)
  const texts = listOf(body.documents).map(it => (typeof it === 'string' ? it : stringOf(recordOf(it).text)))
  if (typeof body.query !== 'string' || texts.length === 0 || texts.length > listMax) {
    return refuse({ message: "Invalid 'query' or 'documents'.", param: 'documents' })
  }
  const wanted = new Set(body.query.toLowerCase().match(/\S+/g))
  const scored = texts.map((text, index) => {
    const words = text.toLowerCase().match(/\S+/g) ?? []
    const shared = words.filter(word => wanted.has(word)).length
    const relevance_score = words.length === 0 ? 0 : shared / words.length
    return { index, relevance_score, ...(body.return_documents === true && { document: { text } }) }
  })
  const results = scored.toSorted((one, two) => two.relevance_score - one.relevance_score || one.index - two.index)
  const total_tokens = [body.query, ...texts].reduce((sum, text) => sum + countWords(text), 0)
  return json({
    id: `rerank-fake${base36(request.ordinal)}`,
    model: body.model,
    results: results.slice(0, numberOf(body.top_n) ?? results.length),
    meta: { billed_units: { search_units: 1 } },
    usage: { prompt_tokens: total_tokens, total_tokens },
  })
}
