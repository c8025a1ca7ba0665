// Accepts the paths of `/v1` also without it, and with it twice, and paths with a slash too many: clients differ in
// whether their base URL contains the version and ends with a slash. Accepts `/v1alpha` as `/v1beta`: Google's SDKs let a
// program choose the version.

import type { Endpoint } from './endpoint.ts'

const VERSION = '/v1'
/** Only paths of calls are corrected: those of management may be restricted by a proxy that reads them literally. */
const CALLS = /^\/(?:v1|v1beta|api\/v3)\//
/** Slashes where a base URL and a path meet. */
const EXTRA_SLASHES = /^\/+(?=\/)|(?<=^\/+(?:v1|v1alpha|v1beta|api\/v3))\/+(?=\/)/g
/** All versions but the last. */
const EXTRA_VERSIONS = /^(?:\/v1(?:alpha|beta)?)+(?=\/v1(?:alpha|beta)?\/)/
const ALPHA = /^\/v1alpha(?=\/)/

/** No path of a call is longer. For a long row of slashes, the expressions above would take long. */
const PATH_CHARS_MAX = 2_048

/** Returns the path with the version once and without slashes too many; any other path as it is. */
export function buildVersionPrefix(endpoints: readonly Endpoint[]): (path: string) => string {
  const roots = new Set(
    endpoints.flatMap(({ path }) => {
      const [, version, root] = path.split('/')
      return `/${version}` === VERSION && root !== undefined && root !== '*' ? [root] : []
    }),
  )
  return path => {
    if (path.length > PATH_CHARS_MAX) return path
    const once = withoutLastSlashes(path)
      .replace(EXTRA_SLASHES, '')
      .replace(EXTRA_VERSIONS, '')
      .replace(ALPHA, '/v1beta')
    const end = once.indexOf('/', 1)
    const corrected = roots.has(once.slice(1, end < 0 ? undefined : end)) ? VERSION + once : once
    return CALLS.test(corrected) ? corrected : path
  }
}

/** An expression would look for the end of the path behind each slash of a long row in its middle. */
function withoutLastSlashes(path: string): string {
  let end = path.length
  while (path[end - 1] === '/') end--
  return path.slice(0, end)
}
