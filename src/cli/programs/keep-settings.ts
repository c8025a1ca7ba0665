// A second run of `weir connect --write` without --url or --model keeps the address and the models that the files have, so
// that a new key changes the key alone.

import type { FileFields, FileValue, GatewayAccess, ProgramFile, SetUp } from './program.ts'

/** Values that no file has. They show which fields of a set-up hold the address, the key or the model. */
const MARKS: GatewayAccess = { url: 'https://mark-of-url.invalid', key: 'mark-of-key', model: 'mark-of-model' }

export type AccessPart = keyof GatewayAccess

interface Leaf {
  /** As in the set-up with the marks. */
  readonly marked: string
  readonly current: unknown
  /** The field is below an entry with the name of Weir, so no one else has written it. */
  readonly isOurs: boolean
}

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function leavesOf(marked: FileValue, current: unknown, isOurs: boolean): readonly Leaf[] {
  if (typeof marked === 'string') return [{ marked, current, isOurs }]
  if (Array.isArray(marked)) {
    const entries: readonly unknown[] = Array.isArray(current) ? current : []
    return (marked as readonly FileFields[]).flatMap(entry =>
      leavesOf(
        entry,
        entries.find(one => isFields(one) && one.name === entry.name),
        isOurs || entry.name === 'Weir',
      ),
    )
  }
  if (!isFields(marked)) return []
  const held = isFields(current) ? current : {}
  return Object.entries(marked as FileFields).flatMap(([name, inner]) =>
    leavesOf(inner, Object.hasOwn(held, name) ? held[name] : undefined, isOurs || name === 'weir'),
  )
}

/** The part of a value where the mark is: `m` of `openai/m` for `openai/mark-of-model`. */
function partOf({ marked, current }: Leaf, part: AccessPart): string | undefined {
  const [head, tail] = marked.split(MARKS[part])
  if (tail === undefined || typeof current !== 'string') return undefined
  const isLike = current.startsWith(head!) && current.endsWith(tail) && current.length > head!.length + tail.length
  return isLike ? current.slice(head!.length, current.length - tail.length) : undefined
}

/** Reads what a file has now. */
export type ReadFields = (file: ProgramFile) => Record<string, unknown>

/** What an earlier run has written; nothing if the files point the program elsewhere: a key must not go there. */
export function findSettings(setUp: (access: GatewayAccess) => SetUp, fieldsOf: ReadFields): Partial<GatewayAccess> {
  const leaves = (setUp(MARKS).files ?? []).flatMap(file => leavesOf(file.fields, fieldsOf(file), false))
  const find = (part: AccessPart): { readonly value: string; readonly isOurs: boolean } | undefined => {
    for (const leaf of leaves) {
      const value = partOf(leaf, part)
      if (value !== undefined) return { value, isOurs: leaf.isOurs }
    }
    return undefined
  }
  const url = find('url')
  const isWeir = url !== undefined && (url.isOurs || find('key')?.value.startsWith('wk-') === true)
  if (!isWeir || !/^https?:\/\/[^\s@?#"'`$\\]+$/.test(url.value)) return {}
  const model = find('model')?.value
  return { url: url.value, ...(model !== undefined && { model }) }
}

/** The files of a set-up in which fields with one of the parts keep their value. */
export function keepFields(
  setUp: (access: GatewayAccess) => SetUp,
  access: GatewayAccess,
  kept: readonly AccessPart[],
  fieldsOf: ReadFields,
): readonly ProgramFile[] {
  const marked = setUp(MARKS).files ?? []
  return (setUp(access).files ?? []).map((file, at) => ({
    ...file,
    fields: keep(file.fields, marked[at]!.fields, fieldsOf(file), kept) as FileFields,
  }))
}

function keep(wanted: FileValue, marked: FileValue, current: unknown, kept: readonly AccessPart[]): FileValue {
  if (typeof wanted === 'string') {
    return typeof current === 'string' && kept.some(part => String(marked).includes(MARKS[part])) ? current : wanted
  }
  if (Array.isArray(wanted)) {
    const entries: readonly unknown[] = Array.isArray(current) ? current : []
    return (wanted as readonly FileFields[]).map(
      (entry, at) =>
        keep(
          entry,
          (marked as readonly FileFields[])[at]!,
          entries.find(one => isFields(one) && one.name === entry.name),
          kept,
        ) as FileFields,
    )
  }
  if (!isFields(wanted)) return wanted
  const held = isFields(current) ? current : {}
  // The names of fields may hold the model. Their order is the same.
  const inner = Object.values(marked as FileFields)
  return Object.fromEntries(
    Object.entries(wanted as FileFields).map(([name, value], at) => [name, keep(value, inner[at]!, held[name], kept)]),
  )
}
