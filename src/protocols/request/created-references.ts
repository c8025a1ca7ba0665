// Reads the ids of things that an upstream has created during a call (files, containers, stored items), so that the
// account may use these ids in later requests. Only fields that the provider itself writes are read. Otherwise a model,
// or a tool server of the caller, could claim foreign ids by writing them into an answer.

import { isObject } from './json-body.ts'
import type { Json } from './json-type.ts'

/** Reads a whole answer or one event of a stream. Each id starts with its kind and a colon. */
export type ReadCreatedIds = (answer: unknown) => readonly string[]

/** Undefined if a call with this request creates nothing that has an id. */
export function buildCreatedIdsReader(dialect: string, json: Json): ReadCreatedIds | undefined {
  switch (dialect) {
    case 'openai-responses':
    case 'ark-responses':
      return answer => readResponseIds(answer, json.store !== false)
    case 'anthropic-messages':
      return buildMessageReader(json)
    case 'openai-chat':
    case 'ark':
      return isObject(json.audio) ? readAudioIds : undefined
    case 'ark-context-create':
      return answer => withKind('context', isObject(answer) ? answer.id : undefined)
    default:
      return undefined
  }
}

const withKind = (kind: string, id: unknown): readonly string[] =>
  typeof id === 'string' && id !== '' ? [`${kind}:${id}`] : []

const objects = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isObject) : [])

/** Reads a response, or the event that contains it. `isStored`: the upstream stores the items. */
function readResponseIds(answer: unknown, isStored: boolean): readonly string[] {
  const event = isObject(answer) ? answer : {}
  const response = isObject(event.response) ? event.response : event
  return objects(response.output).flatMap(item => {
    const { id, type, container_id: container, environment, content, outputs, results } = item
    const cited = type === 'message' ? objects(content).flatMap(part => objects(part.annotations)) : []
    const isCode = type === 'code_interpreter_call'
    const files = isCode ? objects(outputs) : type === 'file_search_call' ? objects(results) : []
    return [
      ...(isStored ? withKind('item', id) : []),
      ...(isCode ? withKind('container', container) : []),
      ...(type === 'shell_call' && isObject(environment) ? withKind('container', environment.container_id) : []),
      ...cited.flatMap(({ container_id: at, file_id: file }) => [
        ...withKind('container', at),
        ...withKind('file', file),
      ]),
      ...files.flatMap(({ file_id: file }) => withKind('file', file)),
    ]
  })
}

/** The id of a message continues a thread, and compares requests under `diagnostics`. */
function buildMessageReader({ thread, diagnostics, container, tools }: Json): ReadCreatedIds | undefined {
  const storesMessage = isObject(thread) || isObject(diagnostics)
  const runsCode = Boolean(container) || objects(tools).some(({ type }) => /code_execution/.test(String(type)))
  if (!storesMessage && !runsCode) return undefined
  return answer => {
    const event = isObject(answer) ? answer : {}
    const message = isObject(event.message) ? event.message : isObject(event.delta) ? event.delta : event
    const block = isObject(event.content_block) ? [event.content_block] : objects(message.content)
    return [
      ...(storesMessage && message.type === 'message' ? withKind('message', message.id) : []),
      ...(isObject(message.container) ? withKind('container', message.container.id) : []),
      ...block.flatMap(readFileIds),
    ]
  }
}

/** Reads the files that code has written in its container. */
function readFileIds({ type, content, file_id: uploaded }: Json): readonly string[] {
  if (type === 'container_upload') return withKind('file', uploaded)
  if (typeof type !== 'string' || !type.endsWith('code_execution_tool_result') || !isObject(content)) return []
  return objects(content.content).flatMap(({ file_id: file }) => withKind('file', file))
}

function readAudioIds(answer: unknown): readonly string[] {
  return objects(isObject(answer) ? answer.choices : undefined).flatMap(({ message, delta }) => {
    const choiceMessage = isObject(message) ? message : delta
    return isObject(choiceMessage) && isObject(choiceMessage.audio) ? withKind('audio', choiceMessage.audio.id) : []
  })
}
