// Ark's video tasks: queued, running, and then an end that the prompt chooses: "fail", "expire", or else success. A task
// moves to its next state each time it is polled.

import { jsonAnswer } from '../answers.ts'
import { isCount, numberOf, objectOf, pathOf, queryOf, recordsOf, stringOf } from '../body-fields.ts'
import type { Problem } from '../dialect.ts'
import { base36, createdS } from '../dialect.ts'
import { RecentItems } from '../recent-items.ts'
import type { ReceivedRequest } from '../request.ts'
import type { Script } from '../script.ts'
import { bytes, end, head, script } from '../script.ts'

interface Task {
  readonly model: string
  readonly ending: 'succeeded' | 'failed' | 'expired' | 'cancelled'
  readonly seconds: number
  looks: number
  cancelled: boolean
}

type Refuse = (problem: Problem) => Script

const tasksMax = 200
const secondsMax = 60
const TOKENS_PER_SECOND = 1_000
const POLLS_BEFORE = { running: 1, ended: 2 }

const json = (body: object): Script => script(...jsonAnswer(200, JSON.stringify(body)))
const EMPTY_ANSWER = script(head(200, { 'content-length': '0' }), bytes(''), end)

function statusOf(task: Task): string {
  if (task.cancelled) return 'cancelled'
  if (task.looks >= POLLS_BEFORE.ended) return task.ending
  return task.looks >= POLLS_BEFORE.running ? 'running' : 'queued'
}

function taskObject(id: string, task: Task): object {
  const status = statusOf(task)
  const tokens = task.seconds * TOKENS_PER_SECOND
  return {
    id,
    model: task.model,
    status,
    error: status === 'failed' ? { code: 'OutputVideoSensitiveContentDetected', message: 'It was withheld.' } : null,
    ...(status === 'succeeded' && {
      content: { video_url: 'https://videos.invalid/dot.mp4' },
      usage: { completion_tokens: tokens, total_tokens: tokens },
    }),
    created_at: createdS,
    updated_at: createdS + task.looks,
    duration: task.seconds,
    resolution: '720p',
    ratio: '16:9',
    framespersecond: 24,
  }
}

export class Tasks {
  readonly #tasks = new RecentItems<Task>(tasksMax)

  answer(request: ReceivedRequest, refuse: Refuse): Script {
    const id = /\/tasks\/([^/]+)$/.exec(pathOf(request))?.[1]
    if (id === undefined) return request.method === 'POST' ? this.#create(request, refuse) : this.#list(request)
    const task = this.#tasks.get(id)
    if (!task) return refuse({ status: 404, message: `The task ${id} is not found.`, param: 'id' })
    if (request.method === 'DELETE') return this.#remove(id, task, refuse)
    const answer = taskObject(id, task)
    if (!task.cancelled) task.looks = Math.min(task.looks + 1, POLLS_BEFORE.ended)
    return json(answer)
  }

  #create(request: ReceivedRequest, refuse: Refuse): Script {
    const body = objectOf(request)
    const parts = recordsOf(body.content)
    if (typeof body.model !== 'string') return refuse({ message: 'The parameter `model` is missing.', param: 'model' })
    if (parts.length === 0) return refuse({ message: 'The parameter `content` is missing.', param: 'content' })
    if (!isCount(body.duration, secondsMax)) return refuse({ message: 'The duration is not valid.', param: 'duration' })
    const prompt = parts.map(part => stringOf(part.text)).join(' ')
    const ending = /\bfail\b/.test(prompt) ? 'failed' : /\bexpire\b/.test(prompt) ? 'expired' : 'succeeded'
    const id = `cgt-fake${base36(request.ordinal)}`
    const seconds = numberOf(body.duration) ?? 5
    this.#tasks.put(id, { model: body.model, ending, seconds, looks: 0, cancelled: false })
    return json({ id })
  }

  #list(request: ReceivedRequest): Script {
    const query = queryOf(request)
    const [status, ids] = [query.get('filter.status'), query.getAll('filter.task_ids')]
    const found = this.#tasks
      .all()
      .filter(([id, task]) => (status === null || statusOf(task) === status) && (ids.length === 0 || ids.includes(id)))
      .toReversed()
    const size = Number(query.get('page_size') ?? 10) || 10
    const start = ((Number(query.get('page_num') ?? 1) || 1) - 1) * size
    const items = found.slice(start, start + size).map(([id, task]) => taskObject(id, task))
    return json({ total: found.length, items })
  }

  /** Cancels a queued task, deletes an ended task, and refuses to delete a running task. */
  #remove(id: string, task: Task, refuse: Refuse): Script {
    const status = statusOf(task)
    if (status === 'running') return refuse({ status: 409, message: 'A running task cannot be deleted.', param: 'id' })
    if (status === 'queued') task.cancelled = true
    else this.#tasks.delete(id)
    return EMPTY_ANSWER
  }
}
