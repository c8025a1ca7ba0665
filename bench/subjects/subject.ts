// The three subjects of every run. Each is started on the core of the subjects, in front of the same upstream. Peers, whose
// programs the user provides, are in peers.ts.

import { join } from 'node:path'
import { freePort } from '../../test/support/free-port.ts'
import type { Manner } from '../load/calls.ts'
import { usualManner } from '../load/calls.ts'
import { writeNginxConfig } from '../system/nginx.ts'
import type { Child, Workbench } from '../system/workbench.ts'
import { root, SUBJECT_CORE, untilListening } from '../system/workbench.ts'
import type { Upstream } from '../upstreams/upstream.ts'
import type { WeirHome } from './weir-home.ts'

export const subjectNames = ['nginx', 'bun-proxy', 'weir'] as const

export type SubjectName = (typeof subjectNames)[number]

/** What a subject does besides forwarding a call; its figures mean nothing without this. */
export interface SubjectDuties {
  readonly bills: string
  readonly records: string
  readonly durable: string
}

export const subjectDuties: Readonly<Record<SubjectName, SubjectDuties>> = {
  'nginx': { bills: 'no', records: 'no', durable: 'nothing to lose' },
  'bun-proxy': { bills: 'no', records: 'no', durable: 'nothing to lose' },
  'weir': {
    bills: 'every call, held before and settled after',
    records: 'every call, searchable',
    durable: 'on the disk before the answer ends',
  },
}

export interface Subject {
  readonly name: string
  readonly pid: number
  readonly port: number
  /** The calls use these keys in turn. */
  readonly keys: readonly string[]
  readonly manner: Manner
  /** The share of the calls of a plan. A slow subject gets fewer calls, so that a run does not take too long. */
  readonly share: number
  stop(): Promise<void>
}

export interface Setting {
  readonly bench: Workbench
  readonly home: WeirHome
  readonly upstream: Upstream
  /** The cores of the subject, in the notation of taskset; by default SUBJECT_CORE. */
  readonly cores?: string
}

export async function startSubject(name: SubjectName, setting: Setting): Promise<Subject> {
  const port = freePort()
  const child = launch(name, setting, port)
  await untilListening(port, child)
  const keys = name === 'weir' ? setting.home.keys : ['bench']
  return { name, port, keys, manner: usualManner, share: 1, pid: child.pid, stop: () => setting.bench.stop(child) }
}

/** Starts the process and does not wait until it listens. */
export function launch(name: SubjectName, { bench, home, upstream, cores }: Setting, port: number): Child {
  const url = `http://127.0.0.1:${upstream.port}`
  if (name === 'weir') {
    const env = { ...home.env, ...providersAt(url), PORT: String(port) }
    const command = [join(home.program, 'bin', 'weir'), 'serve']
    return bench.start({ name, core: cores ?? SUBJECT_CORE, command, env })
  }
  if (name === 'bun-proxy') {
    const command = [join(root, 'bin', 'weir-bun'), join(import.meta.dir, 'bun-proxy.ts')]
    return bench.start({ name, core: SUBJECT_CORE, command, env: { PORT: String(port), UPSTREAM: url } })
  }
  const { command } = writeNginxConfig(bench, { name, http: proxyConfig(port, upstream.port) })
  return bench.start({ name, core: SUBJECT_CORE, command, env: {} })
}

/** One provider for each dialect, all at the same upstream, which tells them apart by their paths. */
const providersAt = (url: string): Readonly<Record<string, string>> => ({
  OPENAI_BASE_URL: `${url}/v1`,
  OPENAI_API_KEY: 'upstream',
  GROQ_BASE_URL: `${url}/v1`,
  GROQ_API_KEY: 'upstream',
  ANTHROPIC_BASE_URL: `${url}/v1`,
  ANTHROPIC_API_KEY: 'upstream',
  GEMINI_BASE_URL: `${url}/v1beta`,
  GEMINI_API_KEY: 'upstream',
})

const proxyConfig = (port: number, upstreamPort: number): string => `
  upstream fast {
    server 127.0.0.1:${upstreamPort};
    keepalive 256;
    keepalive_requests 1000000000;
    keepalive_timeout 300s;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    client_max_body_size 0;
    location / {
      proxy_pass http://fast;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 120s;
    }
  }`
