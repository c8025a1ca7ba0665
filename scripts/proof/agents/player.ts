// Takes the place of the model behind an agent. It finds suitable tools among those that the agent offers, and works
// through a small task with them, in the dialect of the request.
//
//   1. reads the file and lists the folder, both at once     3. runs a command on the changed file
//   2. changes the file                                      4. ends with a sentence

import { answer, fail, streamed } from '../../../tools/fake-upstream/answers.ts'
import { objectOf } from '../../../tools/fake-upstream/body-fields.ts'
import type { RequestSummary, ToolCall } from '../../../tools/fake-upstream/dialect.ts'
import { findDialect } from '../../../tools/fake-upstream/dialects.ts'
import type { ReceivedRequest } from '../../../tools/fake-upstream/request.ts'
import type { Script } from '../../../tools/fake-upstream/script.ts'
import { scripted } from '../../../tools/fake-upstream/script.ts'
import { chunkSizes } from '../../../tools/fake-upstream/script-changes.ts'
import { toolUseOf } from './offered.ts'
import type { Toolbox } from './toolbox.ts'
import { callOf, cutCall, toolFor } from './toolbox.ts'

export const task = {
  prompt: 'The status in notes.txt is still draft. Make it final, check the file, and tell me when it is done.',
  before: 'title: the weir\nstatus: draft\nlines: three\n',
  after: 'title: the weir\nstatus: final\nlines: three\n',
  lastWords: ['Done: ', 'the status in notes.txt ', 'is now ', 'final.'],
} as const

/** The task of the libraries' examples: their question needs the tool `weather`. */
export const weather = {
  tool: 'weather',
  city: 'Oslo',
  result: 'It rains in Oslo.',
  lastWords: ['Take ', 'an umbrella.'],
}

export interface Played {
  /** What the player received and answered, one line for each request. */
  readonly notes: string[]
  /** Mistakes in the requests. */
  readonly faults: string[]
  /** Whether the player sent reasoning state with its tool calls. The agent must send it back with their results. */
  sentState: boolean
  /** Whether the player has sent its last sentence. */
  ended: boolean
}

/** The player of one run. The path of the file is absolute, because most agents want absolute paths. */
export function playerOf(file: string): { script: Script; played: Played } {
  const played: Played = { notes: [], faults: [], sentState: false, ended: false }
  const script = scripted(request => turnOf(request, file, played).steps(request))
  // Cuts the answer inside events and characters.
  return { script: chunkSizes(97)(script), played }
}

function turnOf(request: ReceivedRequest, file: string, played: Played): Script {
  const dialect = findDialect(request)
  const problem = dialect.problem(request)
  if (problem) {
    played.faults.push(`${dialect.name} refuses: ${problem.message}`)
    return fail(problem.status ?? 400, { error: problem })
  }
  const summary = dialect.read(request)
  const { tools, results } = toolUseOf(dialect.name, request)
  const shell = toolFor(tools, 'shell')
  if (tools.some(({ name }) => name === weather.tool)) return answerWeather(summary, played, results)
  if (!shell && JSON.stringify(objectOf(request)).includes('*file listing*')) return listFile(summary, played)
  if (!shell) return answerSideRequest(summary, played)
  if (played.sentState && summary.stateKept === false)
    played.faults.push('the state of the reasoning did not come back')
  const change = toolFor(tools, 'edit') ?? shell
  return workOn({ summary, file, played, results, tools: { shell, change, read: toolFor(tools, 'read') ?? shell } })
}

/** Agents also make small requests without tools: for a title, or for the choice of a model. */
function answerSideRequest(summary: RequestSummary, played: Played): Script {
  played.notes.push(`a side request without tools: ${summary.wantsJson ? 'JSON' : 'text'}`)
  return answer(
    summary.wantsJson ? '{"title":"Finish the notes","reasoning":"small","model_choice":"flash"}' : 'Finish notes',
  )
}

function answerWeather(summary: RequestSummary, played: Played, results: readonly string[]): Script {
  played.notes.push(`${results.length} results of ${weather.tool}`)
  const calls = [cutCall('call_weather', weather.tool, { city: weather.city })]
  if (results.length === 0) return speak(summary, ['I look it up.'], { toolCalls: calls })
  if (!results.join().includes(weather.result)) played.faults.push(`no "${weather.result}" in: ${results.join(' | ')}`)
  played.ended = true
  return speak(summary, weather.lastWords, {})
}

/** For an agent without tools, which reads whole files from the answer. */
function listFile(summary: RequestSummary, played: Played): Script {
  played.notes.push('no tools; lists the file')
  played.ended = true
  return speak(summary, ['notes.txt\n```\n', task.after, '```\n\n', ...task.lastWords], {})
}

interface Work {
  readonly summary: RequestSummary
  readonly file: string
  readonly played: Played
  readonly results: readonly string[]
  readonly tools: Toolbox
}

/** The number of tool results shows the progress of the task, because the player, like a model, has no memory. */
function workOn({ summary, file, played, results, tools }: Work): Script {
  const say = (calls: readonly ToolCall[], words: string): Script => {
    played.notes.push(`${results.length} results; calls ${calls.map(call => call.name).join(' and ')}`)
    const { off, text, state } = summary.thinking
    // Like the models of the fake upstream: the request decides whether text and state of the reasoning are sent.
    const reasoning = { text: text ? 'Look before you write.' : '', ...(!state && { state: null }) }
    played.sentState ||= !off && state
    return speak(summary, [words], { toolCalls: calls, ...(!off && { reasoning }) })
  }
  const expectIn = (found: readonly string[], part: string): void => {
    if (!found.some(result => result.includes(part))) played.faults.push(`no "${part}" in: ${found.join(' | ')}`)
  }
  if (results.length === 0) {
    const calls = [callOf(tools.read, 'read', file), callOf(tools.shell, 'list', file)]
    return say(calls, 'I look at the file and the folder first.')
  }
  if (results.length === 2) {
    expectIn(results, 'status: draft')
    expectIn(results, 'notes.txt')
    return say([callOf(tools.change, 'change', file)], 'Now I change the status.')
  }
  if (results.length === 3) return say([callOf(tools.shell, 'check', file)], 'I check what is there now.')
  expectIn(results.slice(3), 'status: final')
  played.notes.push(`${results.length} results; says: ${task.lastWords.join('')}`)
  played.ended = true
  return speak(summary, task.lastWords, {})
}

function speak(summary: RequestSummary, words: readonly string[], options: Parameters<typeof answer>[1]): Script {
  return summary.stream ? streamed(words, options) : answer(words.join(''), options)
}
