// Calls whose media the gateway must fetch, because the dialect of their upstream needs the content itself.

import { modelOf } from '../dialects/upstreams.ts'

export const mediaCall = (urls: readonly string[]): string =>
  JSON.stringify({
    model: modelOf('anthropic-messages'),
    max_tokens: 5,
    messages: [{ role: 'user', content: urls.map(url => ({ type: 'image_url', image_url: { url } })) }],
  })
