// The base URL that an operator means. People paste the address of the server alone, the whole address of a call, or
// the address of a server's other interface. Where that has one meaning only, it is put right by what the provider
// file says.

import type { WrittenAddress } from '../http/address/operator-address.ts'
import type { Provider } from './provider.ts'

type Meant = Pick<Provider, 'baseUrl' | 'speaks' | 'basePathAliases'>

/** The path of the provider's own base URL; undefined where only the operator knows it. */
export function defaultPath({ baseUrl }: Pick<Provider, 'baseUrl'>): string | undefined {
  const [, path = ''] = /^https?:\/\/[^/]*(\/.*)?$/.exec(baseUrl) ?? []
  return /[{}]/.test(path) ? undefined : path
}

/** The address with the path that its provider's calls begin at. */
export function meantAddress(address: WrittenAddress, provider: Meant): WrittenAddress {
  const path = address.base.slice(address.origin.length)
  const own = defaultPath(provider)
  if (path === own) return address
  const base = withoutCall(path, provider)
  const isServer = base === '' || provider.basePathAliases.includes(base)
  const meant = own !== undefined && isServer ? own : base
  return meant === path ? address : { ...address, base: address.origin + meant }
}

/** Without the path of a call, or of the list of models, that stands behind the base URL. */
function withoutCall(path: string, { speaks }: Meant): string {
  const calls = Object.values(speaks).flatMap(({ plain, stream }) => [plain, stream])
  // The longest first, because one may end in another.
  const known = [...new Set([...calls, '/models'])].sort((a, b) => b.length - a.length)
  for (const call of known) {
    const [head = '', tail] = call.split('?')[0]!.split('{model}')
    const at = tail === undefined ? path.lastIndexOf(head) : path.indexOf(head)
    if (head === '' || at < 0) continue
    const rest = path.slice(at + head.length)
    const isCall = tail === undefined ? rest === '' : rest.endsWith(tail) && rest.length > tail.length
    if (isCall) return path.slice(0, at)
  }
  return path
}
