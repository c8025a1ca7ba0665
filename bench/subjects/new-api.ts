// new-api has no configuration file: its first user, its channel and its key are created through the API of its console.
// At sign-in, newer versions return a token and older ones a cookie; both are sent.

export interface NewApi {
  readonly port: number
  readonly upstream: string
  readonly model: string
}

interface Answered {
  readonly success: boolean
  readonly message?: string
  readonly data?: unknown
}

const OPENAI = 1
const user = { username: 'bench', password: 'bench-bench' }

/** Creates a user with money, a channel to the upstream, and a key, and returns the key. */
export async function signInToNewApi({ port, upstream, model }: NewApi): Promise<string> {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  const ask = async (method: string, path: string, body?: object): Promise<unknown> => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(`http://127.0.0.1:${port}/api/${path}`, { method, headers, ...sent })
    const answer = (await response.json()) as Answered
    if (!answer.success) throw new Error(`new-api: ${method} ${path}: ${answer.message ?? response.status}`)
    const cookies = response.headers.getSetCookie().map(cookie => cookie.split(';', 1)[0])
    if (cookies.length > 0) headers.cookie = cookies.join('; ')
    return answer.data
  }
  await ask('POST', 'setup', { ...user, confirmPassword: user.password, SelfUseModeEnabled: false })
  const signedIn = (await ask('POST', 'user/login', user)) as { id?: number; access_token?: string }
  if (signedIn.access_token !== undefined) headers.authorization = `Bearer ${signedIn.access_token}`
  headers['new-api-user'] = String(signedIn.id ?? 1)
  const channel = { type: OPENAI, name: 'bench', key: 'upstream', base_url: upstream, models: model, group: 'default' }
  await ask('POST', 'channel/', { mode: 'single', channel })
  await ask('POST', 'token/', { name: 'bench', expired_time: -1, unlimited_quota: true, remain_quota: 0 })
  const tokens = (await ask('GET', 'token/?p=1&size=10')) as { items: readonly { id: number; key: string }[] }
  const [token] = tokens.items
  if (token === undefined) throw new Error('new-api made no key.')
  // If the list masks the key, another request returns it.
  const key = token.key.includes('*')
    ? ((await ask('POST', `token/${token.id}/key`)) as { key: string }).key
    : token.key
  return key.startsWith('sk-') ? key : `sk-${key}`
}
