// The web console: its files, and index.html for each of its pages. Nothing here needs a credential: the pages are the same
// for everybody, and what they show comes from the management interface.

import { matchesEtag } from '../http/server/cached-page.ts'
import type { LoadStaticFiles, StaticFiles } from '../http/server/static-files.ts'
import { replyWithFile } from '../http/server/static-files.ts'
import type { Endpoint, EndpointHandler, EndpointReply, EndpointRequest } from './endpoint.ts'

const ROOT = '/console/'
const INDEX = 'index.html'

/** A page may load only what the gateway itself serves, and no script can create another. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'none'",
  "worker-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

/** Headers of all answers below /console. */
export const consoleHeaders = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
}

/** The name of a built file has a hash of its content, so that browsers never ask for it again. */
const FOR_GOOD = { 'cache-control': 'public, max-age=31536000, immutable' }

/** Names of models are parts of pages' paths and may have a dot, so only the usual endings are files. */
const FILE = /^assets\/|\.(js|css|map|json|html|txt|xml|svg|png|jpg|ico|woff2?|webmanifest)$/

const NOT_BUILT: EndpointReply = {
  status: 503,
  contentType: 'text/plain; charset=utf-8',
  headers: { 'cache-control': 'no-store' },
  body: 'The console is not built. To build it, run this in the folder of Weir:\n\n  npm run console\n',
}

export function consoleEndpoints(load: LoadStaticFiles): readonly Endpoint[] {
  const answer: EndpointHandler = async request => {
    const built = await load()
    return built === undefined ? NOT_BUILT : replyFrom(built, request)
  }
  return [
    { method: 'GET', path: '/console', auth: 'nobody', answer: ({ search }) => redirectToConsole(search) },
    { method: 'GET', path: `${ROOT}*`, auth: 'nobody', answer },
  ]
}

export function redirectToConsole(search = ''): EndpointReply {
  const location = search === '' ? ROOT : `${ROOT}?${search}`
  return { status: 302, body: '', headers: { location, 'vary': 'accept', 'cache-control': 'no-store' } }
}

/** Undefined for a file that does not exist: a page in its place would be run as a script by an old tab, and fail. */
function replyFrom({ build, files }: StaticFiles, { path, header }: EndpointRequest): Response | undefined {
  const name = path.slice(ROOT.length)
  const encodings = header('accept-encoding')
  const file = name === INDEX ? undefined : files.get(name)
  if (file !== undefined) return replyWithFile(file, encodings, FOR_GOOD)
  if (name !== INDEX && FILE.test(name)) return undefined
  const headers = { 'etag': `W/"${build}"`, 'cache-control': 'no-cache' }
  if (matchesEtag(header('if-none-match') ?? '', headers.etag)) return new Response(null, { status: 304, headers })
  return replyWithFile(files.get(INDEX)!, encodings, headers)
}
