// What has changed between two definitions of a provider.

type Definition = Readonly<Record<string, unknown>>

/** The fields that differ. A field that is no longer there is null, with which the API removes it. */
export function changedFields(before: Definition, after: Definition): Definition {
  const changed: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(after))
    if (JSON.stringify(value) !== JSON.stringify(before[name])) changed[name] = value
  for (const name of Object.keys(before)) if (!(name in after)) changed[name] = null
  return changed
}
