// The shape of the house: who may import whom, the stages of a call, and which stage makes which proof.

import type { Import } from './imports.ts'
import { findCircles, importsOf } from './imports.ts'
import type { Finding, Rule, SourceFile, Tree } from './source.ts'
import { fileAt, folderOf, isCode, isIn, isTest, shippedCode, srcCode, tokensOf } from './source.ts'
import type { Token } from './tokens.ts'
import { isPunct, isWord, literalText } from './tokens.ts'

const LAYERS: ReadonlyMap<string, number> = new Map([
  ...['base'].map(name => [name, 1] as const),
  ...['store', 'http'].map(name => [name, 2] as const),
  ...['protocols', 'upstreams', 'routing', 'limits'].map(name => [name, 3] as const),
  ...['identity', 'billing', 'vault'].map(name => [name, 3] as const),
  ...['pipeline', 'management', 'fake-upstream'].map(name => [name, 4] as const),
  ...['main.ts', 'world.ts', 'open-store.ts', 'read-catalogue.ts', 'build-calls.ts'].map(name => [name, 5] as const),
  ...['build-running.ts', 'page-endpoints.ts'].map(name => [name, 5] as const),
  ...['endpoint.ts', 'endpoints.ts', 'side-endpoints.ts', 'count-endpoints.ts'].map(name => [name, 5] as const),
  ...['model-endpoints.ts', 'front-door.ts', 'turning-away.ts', 'drain.ts'].map(name => [name, 5] as const),
  ...['open-metrics.ts', 'watch-calls.ts', 'watch-gateway.ts'].map(name => [name, 5] as const),
  ...['config.ts', 'cli'].map(name => [name, 5] as const),
])
const TOP_LAYER = 5

/** The folder of src/ a file belongs to, or its own name directly in src/. A test there belongs to its subject. */
const partOf = (path: string): string => (path.split('/')[1] ?? '').replace(/\.test\.ts$/, '.ts')

const layerOf = (path: string): number | undefined => {
  const layer = LAYERS.get(partOf(path))
  return layer ?? (isTest(path) && folderOf(path) === 'src' ? TOP_LAYER : undefined)
}

const knownPaths = (tree: Tree): ReadonlySet<string> => new Set(tree.files.map(file => file.path))

function importProblem({ file, target }: Import): string | undefined {
  if (target === undefined) return undefined
  if (!isIn(target, 'src')) {
    const allowed = !isCode(target) || (isTest(file) && isIn(target, 'test'))
    return allowed ? undefined : `${target} lies outside src; move what is needed into src (a test may also use test/)`
  }
  const [from, to] = [layerOf(file), layerOf(target)]
  if (from === undefined || to === undefined || partOf(file) === partOf(target)) return undefined
  const [user, used] = [partOf(file), partOf(target)]
  if (to > from) return `${user} must not import ${used}, which lies above it; pass what it needs as an argument`
  if (to < from || from === TOP_LAYER || isTest(file)) return undefined
  return `${user} must not import ${used} beside it; let a higher layer bring the two together`
}

function importDirection(tree: Tree): readonly Finding[] {
  const strangers = srcCode(tree)
    .filter(file => layerOf(file.path) === undefined)
    .map(({ path }) => ({ file: path, line: 1, message: `src/${partOf(path)} has no layer; give it one, or move it` }))
  const wrong = importsOf(srcCode(tree), knownPaths(tree)).flatMap(edge => {
    const message = importProblem(edge)
    return message === undefined ? [] : [{ file: edge.file, line: edge.line, message }]
  })
  return [...strangers, ...wrong]
}

/** At run time nowhere; in the top layer, where direction says nothing, not even by types. */
function importCircles(tree: Tree): readonly Finding[] {
  const imports = importsOf(srcCode(tree), knownPaths(tree))
  const isTop = (path: string | undefined): boolean => path !== undefined && layerOf(path) === TOP_LAYER
  const counted = imports.filter(edge => !edge.typeOnly || (isTop(edge.file) && isTop(edge.target)))
  return findCircles(counted).map(circle => {
    const way = [...circle.map(edge => edge.file), circle[0]!.file].join(' → ')
    return { file: circle[0]!.file, line: circle[0]!.line, message: `import circle ${way}; move what both need down` }
  })
}

const STAGE = /^src\/pipeline\/(\d\d-[a-z0-9-]+)\.ts$/
const PIPELINE = 'src/pipeline/pipeline.ts'

/** The texts of `export const stageOrder = [ … ]`, and where it stands. */
function stageOrderIn(code: readonly Token[]): { line: number; names: readonly string[] } | undefined {
  const at = code.findIndex((token, index) => isWord(token, 'stageOrder') && isWord(code[index - 1], 'const'))
  if (at < 0 || !isWord(code[at - 2], 'export')) return undefined
  let index = at
  while (index < code.length && !isPunct(code[index], '=')) index++
  const names: string[] = []
  for (index += 2; index < code.length && !isPunct(code[index], ']'); index++) {
    const text = literalText(code[index]!)
    if (text !== undefined) names.push(text)
  }
  return { line: code[at]!.line, names }
}

/** What pipeline.ts reaches inside its folder. Types count, because a stage may be passed in and only typed here. */
function reachedFromPipeline(tree: Tree): ReadonlySet<string> {
  const edges = importsOf(shippedCode(tree).filter(file => isIn(file.path, 'src/pipeline')), knownPaths(tree))
  const reached = new Set([PIPELINE])
  for (const path of reached) {
    for (const edge of edges) if (edge.file === path && edge.target !== undefined) reached.add(edge.target)
  }
  return reached
}

function stageOrder(tree: Tree): readonly Finding[] {
  const stages = shippedCode(tree).flatMap(file => STAGE.exec(file.path)?.[1] ?? []).sort()
  const pipeline = fileAt(tree, PIPELINE)
  const order = pipeline && stageOrderIn(tokensOf(pipeline).code)
  if (!order) return [{ file: PIPELINE, line: 1, message: "export const stageOrder = ['10-…', …], as the stages run" }]
  const found: Finding[] = []
  const say = (message: string): void => void found.push({ file: PIPELINE, line: order.line, message })
  for (const name of stages) if (!order.names.includes(name)) say(`stageOrder leaves out ${name}, which is on disk`)
  for (const name of order.names) if (!stages.includes(name)) say(`stageOrder names ${name}, which is not on disk`)
  if (found.length === 0 && order.names.join() !== stages.join()) {
    say(`stageOrder must be in the order of the file names: ${stages.join(', ')}`)
  }
  const reached = reachedFromPipeline(tree)
  for (const name of stages) if (!reached.has(`src/pipeline/${name}.ts`)) say(`${name} is not imported by the pipeline`)
  return found
}

const PROOFS = { Caller: '10-authenticate', Permit: '20-limit-rate', Route: '30-route', Hold: '35-hold' } as const

/** Names inside `import { a as b }` and `export { a as b }` are renamed and not cast. */
function isRenaming(code: readonly Token[], at: number): boolean {
  let open = at
  while (open > 0 && (code[open]!.kind === 'word' || isPunct(code[open], ','))) open--
  const before = code[open - 1]
  const list = isWord(before, 'import') || isWord(before, 'export') || isWord(before, 'type') || isPunct(before, ',')
  return isPunct(code[open], '{') && list
}

function castsIn(file: SourceFile, proof: string): readonly number[] {
  const { code } = tokensOf(file)
  return code.flatMap((token, at) =>
    isWord(token, 'as') && isWord(code[at + 1], proof) && !isRenaming(code, at) ? [token.line] : [],
  )
}

function proofs(tree: Tree): readonly Finding[] {
  return Object.entries(PROOFS).flatMap(([proof, stage]) => {
    const home = `src/pipeline/${stage}.ts`
    const homeFile = fileAt(tree, home)
    const made = homeFile !== undefined && castsIn(homeFile, proof).length > 0
    const missing = made ? [] : [{ file: home, line: 1, message: `makes no ${proof}: "as ${proof}" must stand here` }]
    const forged = shippedCode(tree)
      .filter(file => file.path !== home)
      .flatMap(file => castsIn(file, proof).map(line => ({ file: file.path, line })))
      .map(place => ({ ...place, message: `only ${home} may make a ${proof}; ask for one as an argument` }))
    return [...missing, ...forged]
  })
}

export const shapeRules = {
  'import-direction': { says: 'imports point downwards and never sideways', check: importDirection },
  'import-circles': { says: 'imports run in no circle', check: importCircles },
  'stage-order': { says: 'the stage files are the stages of pipeline.ts, in order', check: stageOrder },
  'proofs': { says: 'each proof is made in one stage', check: proofs },
} satisfies Record<string, Rule>
