// What the fake upstream answers when nothing was planned: a small, deterministic provider of the OpenAI chat dialect.
//
//   echo    repeats the last user message        lorem   a fixed paragraph
//   slow    lorem, taking its time               other   as echo
//
// A token is a word. "use <tool>" in the last message calls that tool. As the demo it shares the gateway's thread, so
// what one request can make it do is bounded: the body, the choices, and the words of each as providers/demo.json says.

import { frameSteps, jsonAnswer, streamHead } from './answers.ts'
import { readChatRequest } from './chat-request.ts'
import type { ChatRequest } from './chat-request.ts'
import { chatWire, createdS } from './chat-wire.ts'
import { countWords, cutIntoWords, wordsOfCall } from './dialect.ts'
import type { Choice, Reply, SaidError } from './dialect.ts'
import type { ReceivedRequest } from './request.ts'
import { end, script, scripted, wait } from './script.ts'
import type { Script, Step } from './script.ts'
import { shaped, waitBetween } from './shapes.ts'

const LOREM =
  'Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore ' +
  'magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo ' +
  'consequat.'
/** The `outputTokensMax` of providers/demo.json. */
export const outputWordsMax = 4_096
const slowChunkMs = 50
const slowAnswerMs = 500
const models = ['echo', 'lorem', 'slow'] as const

export function answerByDefault(request: ReceivedRequest): Script {
  const path = request.path.replace(/\?.*$/, '')
  if (request.method === 'POST' && path.endsWith('/chat/completions')) return answerChat(readChatRequest(request))
  if (request.method === 'GET' && path.endsWith('/models')) return script(...jsonAnswer(200, listOfModels()))
  const message = `Unknown request URL: ${request.method} ${path}.`
  return refuse(404, { message, code: 'unknown_url' })
}

function refuse(status: number, error: SaidError): Script {
  return script(...jsonAnswer(status, chatWire.error(error)))
}

function listOfModels(): string {
  const data = models.map(id => ({ id, object: 'model', created: createdS, owned_by: 'fake-upstream' }))
  return JSON.stringify({ object: 'list', data })
}

function answerChat(asked: ChatRequest): Script {
  if (asked.problem) return refuse(400, asked.problem)
  const slow = asked.model === 'slow'
  if (!asked.stream) {
    return scripted(function* whole(request): Iterable<Step> {
      if (slow) yield wait(slowAnswerMs)
      yield* jsonAnswer(200, chatWire.plain(replyTo(request, asked)))
    })
  }
  const stream = scripted(function* stream(request): Iterable<Step> {
    yield streamHead
    yield* frameSteps(chatWire.frames(replyTo(request, asked)))
    yield end
  })
  return slow ? shaped(stream, waitBetween(slowChunkMs)) : stream
}

function replyTo(request: ReceivedRequest, asked: ChatRequest): Reply {
  const choice = chooseAnswer(asked)
  const words = choice.toolCall ? wordsOfCall : countWords([...choice.pieces].join(''))
  const told = !asked.stream || asked.usageAsked
  return {
    ordinal: request.ordinal,
    model: asked.model,
    choices: Array.from({ length: asked.choices }, (_, index) => ({ ...choice, index })),
    usage: told ? { input: asked.promptWords, output: words * asked.choices } : undefined,
    usageAsked: asked.stream && asked.usageAsked,
  }
}

function chooseAnswer(asked: ChatRequest): Choice {
  const tool = asked.lastIsUser && asked.tools.length > 0 ? toolWanted(asked) : undefined
  if (tool !== undefined) {
    return { index: 0, pieces: [], toolCall: { name: tool, arguments: '{}' }, finish: 'tool_calls' }
  }
  const outputMax = Math.min(asked.outputMax ?? outputWordsMax, outputWordsMax)
  const text = asked.model === 'lorem' || asked.model === 'slow' ? LOREM : asked.lastUserText
  const pieces = cutIntoWords(text, outputMax + 1)
  // White space at the end is a piece and no word.
  if (countWords(pieces.join('')) <= outputMax) return { index: 0, pieces, finish: 'stop' }
  return { index: 0, pieces: pieces.slice(0, outputMax), finish: 'length' }
}

/** A set, because both the tools and the words can be many. */
function toolWanted(asked: ChatRequest): string | undefined {
  const wanted = new Set(Array.from(asked.lastUserText.matchAll(/\buse ([\w-]+)/g), match => match[1]))
  return asked.tools.find(name => wanted.has(name))
}
