import { Workbench, LOAD_CORE, read } from './system/workbench.ts'
import { makeWeirHome } from './subjects/weir-home.ts'
import { startPlainUpstream } from './upstreams/upstream.ts'
import { startSubject } from './subjects/subject.ts'
import { Load } from './load/load.ts'
import { plainPlan } from './measures/plain.ts'
import { cpuSecondsByThread } from './system/proc.ts'
const bench = new Workbench()
process.on('exit', () => bench.close())
read(['taskset', '-a', '-c', '-p', String(LOAD_CORE), String(process.pid)])
const h = makeWeirHome(bench)
const home = { ...h, env: { ...h.env, METRICS_PORT: '9911' } }
const upstream = await startPlainUpstream(bench)
const subject = await startSubject('weir', { bench, home, upstream } as never)
const plan = plainPlan(false)
const load = await Load.open(subject.port, Number(process.argv[2] ?? plan.connections), plan.callsFor(subject.keys))
await load.run(plan.warmUp, plan.secondsMax)
const m = async () => (await (await fetch('http://127.0.0.1:9911/metrics')).text())
const before = cpuSecondsByThread(subject.pid), m1 = await m()
const { calls, wallSeconds } = await load.run(plan.count, plan.secondsMax)
const after = cpuSecondsByThread(subject.pid), m2 = await m()
const get = (t: string, n: string) => Number(new RegExp(`^${n} (.*)$`, 'm').exec(t)?.[1])
for (const n of [...m2.matchAll(/^(weir_ledger\w+) /gm)].map(x => x[1]!)) console.log(n, get(m2, n) - get(m1, n))
console.log('calls/s', calls / wallSeconds, [...after].map(([n, s]) => [n, (((s - (before.get(n) ?? 0)) * 1e6) / calls).toFixed(1)].join(' ')).filter(x=>!/ 0\.\d$/.test(x)).join(', '))
load.close(); await subject.stop(); await upstream.stop(); process.exit(0)
