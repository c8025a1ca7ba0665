// Ids in answers that an upstream has just given to something of its own, so that the account that was answered may
// name them in its next request. Only fields that the provider itself writes are read: what a model, or a server of
// tools that the caller chose, could write into an answer must not make anything the caller's.
import { isObject } from './json-object.ts'
import type { Json } from './json-type.ts'

/** Reads a whole answer, or one event of a stream. Each id begins with its kind and a colon. */
export type ReadMade = (answer: unknown) => readonly string[]

/** Undefined where the answer to this request makes nothing that has an id. */
export function madeReader(dialect: string, json: Json): ReadMade | undefined {
  switch (dialect) {
    case 'openai-responses':
    case 'ark-responses':
      return answer => ofResponse(answer, json.store !== false)
    case 'anthropic-messages':
      return messageReader(json)
    case 'openai-chat':
    case 'ark':
      return isObject(json.audio) ? ofCompletion : undefined
    case 'ark-context-create':
      return answer => named('context', isObject(answer) ? answer.id : undefined)
    default:
      return undefined
  }
}

const named = (kind: string, id: unknown): readonly string[] =>
  typeof id === 'string' && id !== '' ? [`${kind}:${id}`] : []

const objects = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isObject) : [])

/** Of an answer, or of the event that has it whole. Without `keeps`, its items are not kept. */
function ofResponse(answer: unknown, keeps: boolean): readonly string[] {
  const event = isObject(answer) ? answer : {}
  const response = isObject(event.response) ? event.response : event
  return objects(response.output).flatMap(item => {
    const { id, type, container_id: container, environment, content, outputs, results } = item
    const cited = type === 'message' ? objects(content).flatMap(part => objects(part.annotations)) : []
    const isCode = type === 'code_interpreter_call'
    const files = isCode ? objects(outputs) : type === 'file_search_call' ? objects(results) : []
    return [
      ...(keeps ? named('item', id) : []),
      ...(isCode ? named('container', container) : []),
      ...(type === 'shell_call' && isObject(environment) ? named('container', environment.container_id) : []),
      ...cited.flatMap(({ container_id: at, file_id: file }) => [...named('container', at), ...named('file', file)]),
      ...files.flatMap(({ file_id: file }) => named('file', file)),
    ]
  })
}

/** Threads are continued by the ids of their messages, and so is a comparison with an earlier request. */
function messageReader({ thread, diagnostics, container, tools }: Json): ReadMade | undefined {
  const keepsMessage = isObject(thread) || isObject(diagnostics)
  const runsCode = Boolean(container) || objects(tools).some(({ type }) => /code_execution/.test(String(type)))
  if (!keepsMessage && !runsCode) return undefined
  return answer => {
    const event = isObject(answer) ? answer : {}
    const message = isObject(event.message) ? event.message : isObject(event.delta) ? event.delta : event
    const block = isObject(event.content_block) ? [event.content_block] : objects(message.content)
    return [
      ...(keepsMessage && message.type === 'message' ? named('message', message.id) : []),
      ...(isObject(message.container) ? named('container', message.container.id) : []),
      ...block.flatMap(filesOf),
    ]
  }
}

/** What code has written in its container. */
function filesOf({ type, content, file_id: uploaded }: Json): readonly string[] {
  if (type === 'container_upload') return named('file', uploaded)
  if (typeof type !== 'string' || !type.endsWith('code_execution_tool_result') || !isObject(content)) return []
  return objects(content.content).flatMap(({ file_id: file }) => named('file', file))
}

function ofCompletion(answer: unknown): readonly string[] {
  return objects(isObject(answer) ? answer.choices : undefined).flatMap(({ message, delta }) => {
    const said = isObject(message) ? message : delta
    return isObject(said) && isObject(said.audio) ? named('audio', said.audio.id) : []
  })
}
