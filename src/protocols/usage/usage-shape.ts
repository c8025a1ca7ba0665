// Describes a usage report for the log: names of fields and numbers, but no texts.

import { isObject } from '../request/json-body.ts'

const DEPTH_MAX = 3
const FIELDS_MAX = 64
const LIST_MAX = 8

/** Returns one line of JSON. Undefined if the answer or event has no usage report. */
export function describeUsage(json: unknown): string | undefined {
  const report = reportIn(json)
  if (report === undefined) return undefined
  let fields = 0

  function shapeOf(value: unknown, depth: number): unknown {
    if (typeof value === 'number') return Number.isFinite(value) ? value : 'no number'
    if (value === null || typeof value === 'boolean') return value
    if (typeof value !== 'object') return typeof value === 'string' ? 'a text' : 'nothing'
    if (depth === DEPTH_MAX) return Array.isArray(value) ? 'a list' : 'an object'
    if (Array.isArray(value)) return value.slice(0, LIST_MAX).map(one => shapeOf(one, depth + 1))
    const shape: Record<string, unknown> = {}
    for (const name in value) {
      if (++fields > FIELDS_MAX) break
      const safeName = /^[A-Za-z0-9_.-]{1,40}$/.test(name) ? name : '?'
      shape[safeName] = shapeOf((value as Record<string, unknown>)[name], depth + 1)
    }
    return shape
  }

  return JSON.stringify(shapeOf(report, 0))
}

/** Finds the report in an answer or event of any dialect. */
function reportIn(json: unknown): unknown {
  if (!isObject(json)) return undefined
  const choice: unknown = Array.isArray(json.choices) ? json.choices[0] : undefined
  for (const holder of [json, json.response, json.message, json.x_groq, choice]) {
    const report = isObject(holder) ? (holder.usage ?? holder.usageMetadata ?? undefined) : undefined
    if (report !== undefined) return report
  }
  return undefined
}
