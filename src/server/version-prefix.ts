// Accepts the paths of `/v1` also without it, and with it twice: clients differ in whether their base URL contains it.
// Accepts `/v1alpha` as `/v1beta`: Google's SDKs let a program choose the version.

import type { Endpoint } from './endpoint.ts'

const VERSION = '/v1'
const [ALPHA, BETA] = ['/v1alpha/', '/v1beta/']

/** Returns the path with the version once, or with the served version; any other path as it is. */
export function buildVersionPrefix(endpoints: readonly Endpoint[]): (path: string) => string {
  const roots = new Set(
    endpoints.flatMap(({ path }) => {
      const [, version, root] = path.split('/')
      return `/${version}` === VERSION && root !== undefined && root !== '*' ? [root] : []
    }),
  )
  return path => {
    if (path.startsWith(ALPHA)) return BETA + path.slice(ALPHA.length)
    if (path.startsWith(`${VERSION}${VERSION}/`)) return path.slice(VERSION.length)
    const end = path.indexOf('/', 1)
    return roots.has(path.slice(1, end < 0 ? undefined : end)) ? VERSION + path : path
  }
}
