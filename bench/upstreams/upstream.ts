// Starts an upstream on the load generator's core, and reads how many connections it has accepted.

import { join } from 'node:path'
import { freePort } from '../../test/support/free-port.ts'
import { writeNginxConfig } from '../system/nginx.ts'
import type { Workbench } from '../system/workbench.ts'
import { LOAD_CORE, root, untilListening } from '../system/workbench.ts'
import { plainAnswer } from './answers.ts'

export interface Upstream {
  readonly port: number
  /** Connections accepted so far, without those of this method. */
  accepted(): Promise<number>
  stop(): Promise<void>
}

/** nginx with a fixed answer: the upstream that uses the least CPU. */
export async function startPlainUpstream(bench: Workbench): Promise<Upstream> {
  const port = freePort()
  const config = writeNginxConfig(bench, {
    name: 'plain-upstream',
    http: `
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location = /status { stub_status; }
    location / {
      default_type application/json;
      return 200 '${plainAnswer}';
    }
  }`,
  })
  const child = bench.start({ name: 'plain-upstream', core: LOAD_CORE, command: config.command, env: {} })
  await untilListening(port, child)
  return { port, accepted: countConnections(port, /requests\s+(\d+)/), stop: () => bench.stop(child) }
}

export interface StreamShape {
  readonly chunks: number
  readonly gapMs: number
}

export async function startStreamUpstream(bench: Workbench, { chunks, gapMs }: StreamShape): Promise<Upstream> {
  const port = freePort()
  const script = join(import.meta.dir, 'stream.ts')
  const command = [join(root, 'bin', 'weir-bun'), script, String(port), String(chunks), String(gapMs)]
  const child = bench.start({ name: 'stream-upstream', core: LOAD_CORE, command, env: {} })
  await untilListening(port, child)
  return { port, accepted: countConnections(port, /^(\d+)/), stop: () => bench.stop(child) }
}

function countConnections(port: number, pattern: RegExp): () => Promise<number> {
  let ownConnections = 1 // the connection of untilListening
  return async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/status`, { keepalive: false })
    ownConnections++
    return Number(pattern.exec(await answer.text())?.[1]) - ownConnections
  }
}
