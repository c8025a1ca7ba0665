// What many rows have: a version, and the names of the things that they belong to.

import type { ReactNode } from 'react'
import { isolated } from '../words/isolated.ts'
import { Id } from './values.tsx'

/** The version of a row, for the If-Match of a change. */
export const versionOf = (row: object): number | undefined => (row as { readonly version?: number }).version

/** `{ ifMatch }` for a request, if the version is known. */
export const matching = (version: number | undefined): { readonly ifMatch?: number } =>
  version === undefined ? {} : { ifMatch: version }

/** The name of a thing with its id on hover; only the id if there is no name. */
export function NameOrId({ name, id }: { readonly name: string | null | undefined; readonly id: string }): ReactNode {
  if (name === undefined || name === null || name === '') {
    // `cli` and `file` are words, which nobody copies.
    return id.includes('_') ? <Id id={id} /> : id
  }
  return <span title={`${isolated(name)} · ${id}`}>{name}</span>
}
