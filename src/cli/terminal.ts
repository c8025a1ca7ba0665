// Asks whoever sits at the terminal. What is secret is not shown while it is typed, and never stands in the arguments,
// where every process could read it.

import { createInterface } from 'node:readline/promises'
import { Problem, UsageProblem } from './connect.ts'

const ENTER = new Set(['\r', '\n'])
const ENOUGH_BYTES = 4 * 1024

export const isTerminal = (): boolean => process.stdin.isTTY === true

export async function askLine(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return (await lines.question(`${question}: `)).trim()
  } finally {
    lines.close()
  }
}

/** Typed twice at a terminal; else the first line of what is piped in. */
export async function askPassword(question: string): Promise<string> {
  if (!isTerminal()) return await firstLine()
  const typed = await askHidden(question)
  if (typed !== (await askHidden(`${question}, again`))) throw new Problem('The two are not the same.')
  return typed
}

/** One that is there already. */
export const askOnce = (question: string): Promise<string> => (isTerminal() ? askHidden(question) : firstLine())

async function firstLine(): Promise<string> {
  let text = ''
  for await (const chunk of process.stdin) {
    text += String(chunk)
    if (text.includes('\n') || text.length > ENOUGH_BYTES) break
  }
  const [line = ''] = text.split('\n')
  if (line.trim() === '') throw new UsageProblem('Send the password on the standard input, or run it in a terminal.')
  return line.replace(/\r$/, '')
}

async function askHidden(question: string): Promise<string> {
  const { stdin, stderr } = process
  stderr.write(`${question}: `)
  stdin.setRawMode(true)
  stdin.resume()
  stdin.setEncoding('utf8')
  try {
    return await new Promise((resolve, reject) => {
      let typed: readonly string[] = []
      function read(chunk: string): void {
        for (const mark of chunk) {
          if (ENTER.has(mark)) return end(() => resolve(typed.join('')))
          if (mark === '\u0003') return end(() => reject(new Problem('Given up.')))
          typed = mark === '\u007f' || mark === '\b' ? typed.slice(0, -1) : [...typed, mark]
        }
      }
      function end(done: () => void): void {
        stdin.off('data', read)
        done()
      }
      stdin.on('data', read)
    })
  } finally {
    stdin.setRawMode(false)
    stdin.pause()
    stderr.write('\n')
  }
}
