// Writes heads and chunks exactly as the steps of a script say, valid or not.

import { STATUS_CODES } from 'node:http'
import type { Step } from './script.ts'
import { toBytes } from './script.ts'

export function headBytes(status: number, headers: readonly (readonly [string, string])[]): Uint8Array {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n${lines}\r\n`, 'latin1')
}

export function chunkBytes(data: Uint8Array): Uint8Array {
  // An empty chunk would end the body; only the step `end` may do that.
  if (data.length === 0) return data
  return Buffer.concat([toBytes(`${data.length.toString(16)}\r\n`), data, toBytes('\r\n')])
}

export const lastChunk: Uint8Array = toBytes('0\r\n\r\n')

export function promisesChunks(step: Step & { kind: 'head' }): boolean {
  return step.headers.some(([name, value]) => name.toLowerCase() === 'transfer-encoding' && /chunked/i.test(value))
}
