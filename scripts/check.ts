// npm run check: types, lint and format, and the layers of imports, at the same time. Exits with 1 if anything is wrong.

import { join } from 'node:path'

const root = join(import.meta.dir, '..')
const tool = (name: string): string => join(root, 'node_modules', '.bin', name)

const checks: readonly (readonly [name: string, command: readonly string[]])[] = [
  ['types', [tool('tsc'), '--noEmit']],
  ['types of the console', [tool('tsc'), '--noEmit', '-p', 'console']],
  ['lint and format', [tool('biome'), 'check', '--error-on-warnings', '.']],
  ['layers', [process.execPath, join(import.meta.dir, 'check-layers.ts')]],
]

/** Runs every check. What a check prints is shown only if it failed. */
export async function check(): Promise<boolean> {
  const results = await Promise.all(
    checks.map(async ([name, command]) => {
      const child = Bun.spawn([...command], { cwd: root, stdout: 'pipe', stderr: 'pipe' })
      const [out, err, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ])
      process.stdout.write(code === 0 ? `${name}: ok\n` : `${name}: failed\n${out}${err}\n`)
      return code === 0
    }),
  )
  return results.every(Boolean)
}

if (import.meta.main) process.exit((await check()) ? 0 : 1)
