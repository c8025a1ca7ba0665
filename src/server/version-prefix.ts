// Accepts the paths of `/v1` also without it, and with it twice: clients differ in whether their base URL contains it.

import type { Endpoint } from './endpoint.ts'

const VERSION = '/v1'

/** Returns the path with the version once; any other path as it is. */
export function buildVersionPrefix(endpoints: readonly Endpoint[]): (path: string) => string {
  const roots = new Set(
    endpoints.flatMap(({ path }) => {
      const [, version, root] = path.split('/')
      return `/${version}` === VERSION && root !== undefined && root !== '*' ? [root] : []
    }),
  )
  return path => {
    if (path.startsWith(`${VERSION}${VERSION}/`)) return path.slice(VERSION.length)
    const end = path.indexOf('/', 1)
    return roots.has(path.slice(1, end < 0 ? undefined : end)) ? VERSION + path : path
  }
}
