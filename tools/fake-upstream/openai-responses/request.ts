// Reads what the fake upstream needs from a request of the OpenAI Responses dialect.

import type { Json } from '../body-fields.ts'
import {
  mediaOfBase64,
  mediaOfUrl,
  numberOf,
  objectOf,
  recordOf,
  recordsOf,
  stringOf,
  stringsOf,
  textsOf,
  wordsIn,
} from '../body-fields.ts'
import type { Media, RequestSummary } from '../dialect.ts'
import type { StateReader } from '../reasoning-state.ts'
import { isIssuedState } from '../reasoning-state.ts'
import type { ReceivedRequest } from '../request.ts'
import { isRecord } from '../request.ts'

/** The issuer in reasoning state of this dialect. */
export const stateOwner = 'responses'

export const readResponsesRequest = (request: ReceivedRequest): RequestSummary =>
  readResponsesBody(objectOf(request), request.ordinal)

/** An input that is a text is one message of the user. */
export function itemsOf(input: unknown): readonly Json[] {
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : recordsOf(input)
}

export const isMessage = (item: Json): boolean => item.type === 'message' || item.type === undefined

export function readResponsesBody(body: Json, ordinal: number): RequestSummary {
  const items = itemsOf(body.input)
  const spoken = items.findLast(isOfUser)
  const choice = body.tool_choice
  const reasoning = recordOf(body.reasoning)
  return {
    model: typeof body.model === 'string' ? body.model : 'echo',
    stream: body.stream === true,
    wantsUsage: true,
    promptWords: wordsIn(body.instructions) + items.reduce((sum, item) => sum + wordsOfItem(item), 0),
    outputMax: numberOf(body.max_output_tokens),
    lastUserText: textsOf(spoken?.content).join(''),
    lastIsUser: items.length > 0 && isOfUser(items.at(-1)!),
    choices: 1,
    tools: choice === 'none' ? [] : namesOfTools(body.tools, choice),
    mustCall: choice === 'required' || (isRecord(choice) && choice.type === 'function'),
    parallel: body.parallel_tool_calls !== false,
    stopSequences: [],
    wantsJson: /^json_/.test(stringOf(recordOf(recordOf(body.text).format).type)),
    media: items.flatMap(item => mediaOf(isMessage(item) ? item.content : item.output)),
    thinking: {
      off: reasoning.effort === 'none',
      text: typeof reasoning.summary === 'string',
      state: stringsOf(body.include).includes('reasoning.encrypted_content'),
    },
    stateKept: stateKept(items, { by: stateOwner, ordinal }),
  }
}

const isOfUser = (item: Json): boolean => isMessage(item) && item.role === 'user'

const wordsOfItem = (item: Json): number => wordsIn(isMessage(item) ? item.content : item.output)

function namesOfTools(tools: unknown, choice: unknown): readonly string[] {
  const names = recordsOf(tools).flatMap(tool => (tool.type === 'function' ? stringOf(tool.name) || [] : []))
  const wanted = recordOf(choice)
  return wanted.type === 'function' ? names.filter(name => name === wanted.name) : names
}

function mediaOf(content: unknown): readonly Media[] {
  return recordsOf(content).flatMap(part => {
    if (part.type === 'input_image') return [mediaOfUrl('image', part.image_url)]
    if (part.type === 'input_file') return [mediaOfUrl('file', part.file_data ?? part.file_url)]
    if (part.type === 'input_video') return [mediaOfUrl('video', part.video_url)]
    if (part.type !== 'input_audio') return []
    const { data, format } = recordOf(part.input_audio)
    return [mediaOfBase64(`audio/${stringOf(format)}`, data)]
  })
}

/** Whether the reasoning before the calls that were just answered still has its state. */
function stateKept(items: readonly Json[], looking: StateReader): boolean | undefined {
  if (items.at(-1)?.type !== 'function_call_output') return undefined
  const asked = items.findLastIndex(isOfUser)
  return items
    .slice(asked + 1)
    .some(item => item.type === 'reasoning' && isIssuedState(item.encrypted_content, looking))
}
