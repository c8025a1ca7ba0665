// Corrects a base URL that an operator has entered. People paste the address of the server only, the full URL of a call,
// or the address of another interface of the server. If the meaning is clear, the provider file gives the right path.

import type { OperatorAddress } from '../http/address/operator-address.ts'
import type { Provider } from './provider.ts'

type UrlFields = Pick<Provider, 'baseUrl' | 'speaks' | 'basePathAliases'>

/** The path of the provider's own base URL; undefined when only the operator knows it. */
export function defaultPath({ baseUrl }: Pick<Provider, 'baseUrl'>): string | undefined {
  const [, path = ''] = /^https?:\/\/[^/]*(\/.*)?$/.exec(baseUrl) ?? []
  return /[{}]/.test(path) ? undefined : path
}

/** The address with the path that calls of its provider start with. */
export function correctAddress(address: OperatorAddress, provider: UrlFields): OperatorAddress {
  const path = address.base.slice(address.origin.length)
  const ownPath = defaultPath(provider)
  if (path === ownPath) return address
  const base = stripCallPath(path, provider)
  const isServer = base === '' || provider.basePathAliases.includes(base)
  const corrected = ownPath !== undefined && isServer ? ownPath : base
  return corrected === path ? address : { ...address, base: address.origin + corrected }
}

/** Removes the path of a call, or of the model list, from the end of a path. */
function stripCallPath(path: string, { speaks }: UrlFields): string {
  const calls = Object.values(speaks).flatMap(({ plain, stream }) => [plain, stream])
  // The longest first, because one may be the end of another.
  const known = [...new Set([...calls, '/models'])].sort((a, b) => b.length - a.length)
  for (const call of known) {
    const [head = '', tail] = call.split('?')[0]!.split('{model}')
    const start = tail === undefined ? path.lastIndexOf(head) : path.indexOf(head)
    if (head === '' || start < 0) continue
    const rest = path.slice(start + head.length)
    const isCall = tail === undefined ? rest === '' : rest.endsWith(tail) && rest.length > tail.length
    if (isCall) return path.slice(0, start)
  }
  return path
}
