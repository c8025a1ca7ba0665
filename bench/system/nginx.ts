// Writes the configuration of an nginx of the benchmark: in the foreground, one worker, all files in the temporary folder.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Workbench } from './workbench.ts'

export const NGINX = '/usr/sbin/nginx'

export interface NginxConfig {
  readonly name: string
  /** The content of `http { … }`. */
  readonly http: string
}

export function writeNginxConfig(bench: Workbench, { name, http }: NginxConfig): { command: readonly string[] } {
  const folder = join(bench.folder, `${name}-${Date.now()}`)
  mkdirSync(folder)
  const file = join(folder, 'nginx.conf')
  // As root, nginx would run its worker as "nobody", which may not read the folder.
  const user = process.getuid?.() === 0 ? 'user root;' : ''
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  writeFileSync(
    file,
    `${user}
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log error;
events { worker_connections 8192; }
http {
  access_log off;
  tcp_nodelay on;
  keepalive_requests 1000000000;
  keepalive_timeout 300s;
  client_body_buffer_size 64k;
${temporary.map(part => `  ${part}_temp_path ${folder}/${part};`).join('\n')}
${http}
}
`,
  )
  return { command: [NGINX, '-p', folder, '-e', `${folder}/error.log`, '-c', file] }
}
