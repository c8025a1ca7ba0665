// Every money command as an operator types it, with a running gateway and on the data folder alone: what it prints, its
// exit code, and the errors for bad input.

import { afterAll, describe, expect, test } from 'bun:test'
import { ask, bearer, CHAT, goodBody } from '../front/asking.ts'
import type { Ran, Served } from '../front/weir-process.ts'
import { cleanUp, freshFolder, serve, stopServed, weir, weirSays } from '../front/weir-process.ts'
import { rawRequest } from '../support/raw.ts'

afterAll(cleanUp)

interface Setting {
  readonly folder: string
  readonly served: Served | undefined
  /** The values of the placeholders in braces of the commands below. */
  readonly names: Record<string, string>
}

const demo = goodBody({ model: 'demo/echo' })

/** Creates a key with a dollar and two calls. */
async function prepare(running: boolean): Promise<Setting> {
  const folder = freshFolder()
  const served = await serve(folder)
  const key = await weirSays(folder, 'keys create --tier pro --credit 1 --name mine')
  const calls: string[] = []
  for (let call = 0; call < 2; call++) {
    const answer = await rawRequest(served.url, ask('POST', CHAT, bearer(key), demo))
    expect(answer.status).toBe(200)
    calls.push(answer.header('x-request-id')!)
  }
  const account = /acc_\w{11}/.exec(await weirSays(folder, `balance ${key}`))![0]
  if (!running) expect(await stopServed(served)).toBe(0)
  const names = { key, account, call: calls[0]!, other: calls[1]!, price: '{"input":"1","output":"2"}' }
  return { folder, served: running ? served : undefined, names }
}

type Step = readonly [command: string, code: number, says: RegExp, keep?: Record<string, RegExp>]

const AMOUNT = /^weir: <usd> is not valid: US dollars as text, such as "5" or "0\.25": more than 0, at most 999999999/
const CORRECTION = /^weir: <usd> is not valid: US dollars as text, such as "5" or "-0\.25": not zero, at most 999999999/
const ABSENT = /^weir: Unknown account\. Use its id \(acc_…\)/

/** In the order in which they run. */
const steps: readonly Step[] = [
  ['accounts show {account}', 0, /^id +{account}\nname +mine\ntype +team\nkind +prepaid\n[^]*balance +0\.99/],
  ['accounts show {key}', 0, /\nid .*\nkey_\w{11} +{account} +mine +.{4} +pro +active/, { keyId: /key_\w{11}/ }],
  ['accounts show {keyId}', 0, /^id +{account}\n/],
  ['accounts show revenue', 1, ABSENT],
  ['accounts show acc_zzzzzzzzzzz', 1, ABSENT],
  ['accounts show', 2, /^weir: Usage: weir accounts show <account or key>\n$/],

  ['top-up {account} 10 --reference inv-7', 0, /kind +top_up\n[^]*amount +10\.00\nbalance +10\.99[^]*repeated +false/],
  ['top-up {account} 10 --reference inv-7', 0, /amount +10\.00\nbalance +10\.99[^]*repeated +true/],
  [
    'top-up {account} 11 --reference inv-7',
    1,
    /^weir: This reference was already used for another amount, account or call, or [^]* Nothing was booked\.\n$/,
  ],
  ['gift {key} 0.000000001 --reference inv-7', 0, /kind +gift\n[^]*amount +0\.000000001\n/],
  ['top-up {account} 0', 1, AMOUNT],
  ['top-up {account} -5', 1, AMOUNT],
  ['top-up {account} 9223372036854775808', 1, AMOUNT],
  ['top-up {account} 1.0123456789', 1, AMOUNT],
  ['top-up {account} 1e3', 1, AMOUNT],
  ['top-up {account} five', 1, AMOUNT],
  ['top-up {account}', 2, /^weir: Usage: weir top-up/],
  ['top-up {account} 1 2', 2, /^weir: Usage: weir top-up/],
  ['top-up {account} 1 --refrence x', 2, /^weir: Unknown option --refrence. Did you mean --reference\?/],
  ['top-up acc_00000000099 5', 1, ABSENT],
  ['top-up revenue 5', 1, ABSENT],
  ['top-up {account} 999999999', 0, /balance +10000000\d\d/],
  ['top-up {account} 999999999', 0, /balance +20000000\d\d/],
  ['top-up {account} 999999999', 1, /^weir: The amount is too large for this account or for the operator's own/],
  ['adjust {account} -1999999998', 1, CORRECTION],
  ['adjust {account} -999999999', 0, /kind +adjustment\n[^]*amount +-999999999\.00\n/],
  ['adjust {account} -999999999', 0, /balance +10\.99/],
  ['top-up {account} 999999999', 1, /^weir: The amount is too large for this account or for the operator's own/],
  ['adjust {account} -11', 1, /^weir: The balance does not cover this amount\.\n$/],
  ['adjust {account} +0.5', 0, /balance +11\.49/],
  ['adjust {account} 0', 1, CORRECTION],

  ['refund {call} 1', 1, /^weir: The amount is more than the call was charged/],
  ['refund {call}', 0, /kind +refund\naccount +{account}\namount +0\.0000/],
  ['refund {call}', 0, /repeated +true/],
  ['refund {other} 0.000000001', 0, /amount +0\.000000001\n/],
  ['refund req_00000000099', 1, /^weir: There is no record of this call/],
  ['refund {account}', 1, /^weir: Use the id of the call \(req_…\)/],

  ['codes create --count 3 --amount 2.5 --batch x', 0, /^(wr(-[0-9A-HJKMNP-TV-Z]{4}){4}\n){3}$/, { code: /wr-\S+/ }],
  ['codes redeem {code} {key}', 0, /amount +2\.50\nbalance +13\.99/],
  ['codes redeem {code} {account}', 1, /^weir: This account has redeemed this code already/],
  ['codes redeem wr-0000-0000-0000-0000 {account}', 1, /^weir: Unknown code/],
  ['codes redeem nonsense {account}', 1, /^weir: Unknown code\. A code looks like wr-/],
  ['codes create --count 1', 2, /^weir: --amount is missing\. Usage: weir codes create --count 10 --amount 5\.00 /],
  ['codes create --count 0 --amount 1', 1, /^weir: --count is not valid: it must be at least 1/],
  ['codes create --count 2 --amount 0', 1, /^weir: --amount is not valid: US dollars as text/],
  ['codes create --count 2 --amount 1 --expires 0', 1, /^weir: --expires must be in the future/],
  ['codes create --count 1 --amount 1 --expires 1893456000', 2, /^weir: --expires must be a day such as/],
  ['codes create --count 1 --amount 1 --expires 30', 0, /^wr-.*\n$/],
  ['codes create --count 1 --amount 1 --expires 2099-01-31', 0, /^wr-.*\n$/],

  ['codes create --count 2 --amount 1 --batch autumn', 0, /^wr-.*\nwr-.*\n$/],
  ['codes list', 0, /^batch +codes +redeemed[^]*autumn +2 +0 +0 +2\.00 /],
  ['codes create --count 1 --amount 1 --batch autumn', 1, /^weir: This name is taken\. Choose another one\.\n$/],
  ['codes list autumn', 0, /^id .*\n(code_\w{11} +1\.00 +open .*\n){2}$/, { one: /code_\w{11}/ }],
  ['codes void {one}', 0, /^voided +1\n$/],
  ['codes void {one}', 1, /^weir: The code has been redeemed or voided already/],
  ['codes void autumn --json', 0, /"voided": 1/],
  ['codes void winter', 1, /^weir: There is no batch of this name/],
  ['topup {account} 1 --reference inv-7', 1, /^weir: This reference was already used/],
  ['topup {account} 0', 1, AMOUNT],

  ['webhooks list', 0, /^no webhooks\n$/],
  ['webhooks create https://127.0.0.1/ --events balance.low', 1, /^weir: <url>: its host is not/],
  ['webhooks create https://example.com/', 2, /^weir: --events is missing\. Usage: .* --events balance\.low,/],
  ['webhooks create https://example.com/ --events balance', 2, /^weir: --events must be one of: /],
  [
    'webhooks create https://example.com/ --events ledger.drift --account {account}',
    1,
    /^weir: --events is not valid: it must be one of: /,
  ],
  [
    'webhooks create https://example.com/ --events ledger.drift',
    0,
    /secret +whsec_[\w-]{43}\n$/,
    { hook: /hook_\w{11}/ },
  ],
  ['webhooks list', 0, /{hook} +- +https:\/\/example\.com\/ +ledger\.drift +false +0 +0/],
  ['webhooks deliveries {hook}', 0, /^no deliveries\n$/],
  ['webhooks remove {hook}', 0, /^The webhook is removed\.\n$/],
  ['webhooks remove {hook}', 1, /^weir: Unknown webhook/],
  ['webhooks test {hook}', 1, /^weir: Unknown webhook/],

  ['budgets show {account}', 0, /^no budgets\n$/],
  ['budgets set {key} day 3', 0, /^span +day\ncap +3\.00\nspent +0\.00\nheld +0\.00\nleft +3\.00\nends +2/],
  ['budgets set {account} month 5', 0, /^span +month\ncap +5\.00/],
  ['budgets show {account}', 0, /^of .*\n{account} +month .*\n{keyId} +day /],
  ['budgets set {key} day none', 0, /^The budget is removed\.\n$/],
  ['budgets set {key} day none', 1, /^weir: There is no such key or account, or it has no such budget\.\n$/],
  ['budgets show {key}', 0, /^no budgets\n$/],
  [
    'budgets show nobody',
    1,
    /^weir: Unknown key or account\. Use a key \(wk-…\), or the id of a key \(key_…\) or of an/,
  ],
  ['budgets set {key} week 5', 2, /^weir: <span> must be one of: total, day, month\.\n$/],
  ['budgets set {key} day -1', 1, /^weir: <usd> is not valid: US dollars as text/],
  ['budgets set acc_zzzzzzzzzzz day 1', 1, /^weir: There is no such key or account/],

  ['accounts set {account} --credit-limit 20 --bodies on', 0, /credit limit +20\.00\n[^]*keeps bodies +true/],
  ['accounts set {account} --credit-limit 20.1.1', 1, /^weir: --credit-limit is not valid: US dollars as text/],
  ['accounts set {account} --bodies perhaps', 2, /^weir: --bodies must be one of: on, off/],
  ['accounts set {account} --prepaid --postpaid', 2, /^weir: Use either --postpaid or --prepaid/],
  ['accounts set {account}', 2, /^weir: Nothing to change/],
  ['accounts set revenue --postpaid', 1, ABSENT],
  ['accounts set {account} --postpaid', 0, /kind +postpaid\n[^]*available +-\n/],
  ['adjust {account} -40', 0, /balance +-26\./],
  ['accounts set {account} --prepaid', 1, /^weir: The debt and the holds of the account exceed this credit limit/],
  ['adjust {account} 40', 0, /balance +13\.99/],
  ['accounts set {account} --prepaid', 0, /kind +prepaid/],
  ['accounts freeze {account}', 0, /frozen +true\nfrozen since +2/],
  ['accounts unfreeze {key}', 0, /frozen +false/],

  [
    'keys set {key} --strict-cap on --bodies off',
    0,
    /^id +{keyId}\n[^]*strict cap +true\nkeeps bodies +false\nstrict +false\n/,
  ],
  ['keys set {key} --strict on', 0, /^id +{keyId}\n[^]*strict cap +true\nkeeps bodies +false\nstrict +true\n/],
  ['keys set {key} --strict off', 0, /strict +false\n/],
  [
    'keys show {key}',
    0,
    /^id +{keyId}\naccount +{account}\naccount name +mine\nname +mine\n[^]*state +active\n[^]*strict cap +true\n[^]*strict +false\n/,
  ],
  ['keys set {key} --qpm 1.5', 2, /^weir: --qpm must be a whole number, not negative\.\n$/],
  ['keys set {key} --qpm 99999999999999999999', 2, /^weir: --qpm is too large\.\n$/],
  ['keys set {key} --disable --enable', 2, /^weir: Use either --disable or --enable/],
  ['export --only foo', 2, /^weir: Unknown list "foo"/],
  ['keys set {key}', 2, /^weir: Nothing to change/],
  ['keys set key_zzzzzzzzzzz --strict-cap on', 1, /^weir: Unknown key/],
  ['keys create --account {account} --name second --json', 0, /"account": "{account}"/],
  ['keys create --account {account} --name second', 1, /^weir: This name is taken\. Choose another one\.\n$/],
  [
    'keys set {key} --expires 2099-01-31 --endpoints chat,ark --addresses 127.0.0.0/8,::1',
    0,
    /expires +2099-01-31T00:00:00\.000Z\n[^]*endpoints +chat,ark\naddresses +127\.0\.0\.0\/8,::1\n/,
  ],
  [
    'keys set {key} --expires none --endpoints none --addresses none',
    0,
    /expires +-\n[^]*endpoints +-\naddresses +-\n/,
  ],
  ['keys set {key} --disable', 0, /state +disabled\n/],
  ['keys list --state disabled --name mine', 0, /^id .*\n{keyId} +{account} +mine +.{4} +pro +disabled/],
  ['keys set {key} --enable --tier pro --qpm none', 0, /state +active\n/],
  ['keys list --account {account} --limit 1', 0, /second[^]*more rows with --after \w+\n$/],
  ['keys rotate {keyId} --overlap 30d --json', 0, /"key": "wk-\w{36}"/],
  ['keys show {key}', 0, /old text until +2/],
  ['accounts create --name Delta --personal --allow openai/*', 0, /^id +acc_\w{11}\nname +Delta\ntype +personal/],
  ['accounts list --name delta', 0, /^id .*\nacc_\w{11} +Delta +personal +prepaid +false +0\.00 +0\.00\n$/],
  ['accounts set {account} --allow demo/* --tier standard', 0, /tier +standard\nallows +demo\/\*\n/],
  ['keys create --account acc_zzzzzzzzzzz', 1, /^weir: --account is not valid: it must be an id such as acc_/],
  ['keys create --account revenue', 1, ABSENT],
  ['accounts show {account}', 0, /second +.{4} +standard/],

  [
    'statement {account} --limit 2',
    0,
    /^made .*\n.* adjustment .*\n.* adjustment .*\n\nmore rows with --after [\w-]+\n$/,
  ],
  ['statement {account} --after x', 1, /^weir: --after must be the "next" of the previous page/],
  ['statement {account}', 0, /charge +-0\.0000[^]*gift +1\.00/],
  ['statement {account} --limit 0', 1, /^weir: --limit is not valid: it must be at least 1/],
  ['records --account {account}', 0, /^time .* loss *\n.*{other} .*\n.*{call} .* - *\n$/],
  [
    'records --key {key} --model demo/echo --outcome completed --limit 1',
    0,
    /{other}[^]*more rows with --after {other}\n$/,
  ],
  ['records --key {key} --after {other}', 0, /^time .*\n.*{call} /],
  [`records --user ${'u'.repeat(1_000)}`, 0, /^no calls\n$/],
  [`records --user ${'u'.repeat(1_001)}`, 1, /^weir: --user is not valid: it must have at most 1000 characters/],
  ['records --model echo', 1, /^weir: --model is not valid: it must have the form <provider>\/<model>/],
  ['records --outcome refused', 0, /^no calls\n$/],
  ['records --day 2020-01-01', 0, /^no calls\n$/],
  ['records --day 2026-02-30', 2, /^weir: --day must be a day such as 2027-01-31 \(UTC\)\.\n$/],
  [
    'records --since 1h',
    2,
    /^weir: --since must be a day such as 2027-01-31 \(UTC\) or a time such as 2027-01-31T12:00Z\.\n$/,
  ],
  ['records --min-cost abc', 1, /^weir: --min-cost is not valid: US dollars as text/],
  ['records --min-cost 100', 0, /^no calls\n$/],
  ['records --channel none --status 200 --streamed off --day 2026-01-01', 0, /^no calls\n$/],
  ['records --since yesterday', 2, /^weir: --since must be a day such as/],
  ['records export --account {account}', 0, /^\{"id":"{other}".*\n\{"id":"{call}".*\n$/],
  ['records export --key {key} --format csv', 0, /^id,time,.*\r\n{other},.*\r\n{call},.*\r\n$/],
  ['records export --out /nowhere/x', 1, /^weir: The file cannot be written: ENOENT/],
  ['records export --format xml', 2, /^weir: --format must be one of: csv, ndjson/],
  ['records export {account}', 2, /^weir: Usage: weir records export /],
  ['records delete', 1, /^weir: Say which records: --account; staff may instead use --key, --user, --since or --until/],
  ['records delete --user nobody --json', 0, /"id": 1/],
  ['records deletions', 0, /^ *id .*\n *1 .* true /],
  ['record {call}', 0, /id +{call}\n[^]*transfers\n[^]*charge +0\.0000[^]*refund +0\.0000/],
  ['record req_00000000099', 1, /^weir: There is no record of this call/],

  [
    'prices backtest demo/echo {price}',
    0,
    /^calls +2\nwas +0\.0000[^]*complete +true\n[^]*by model\n[^]* 2 +0\.0000012 .* demo\/echo\n/,
  ],
  [
    'prices backtest --tier pro --multiplier 2000 --days 1e9',
    2,
    /^weir: --days must be a number of days, from 1 to 365/,
  ],
  ['prices backtest --tier pro --multiplier 2000 --json', 0, /"difference": "0\.0000/],
  ['prices backtest demo/echo', 1, /^weir: Give a <model> and its <price>, or a --tier and its --multiplier\.\n$/],
  ['prices backtest --tier nope --multiplier 2000', 1, /^weir: Unknown tier "nope"\. Tiers: .*\bpro\b/],
  ['prices backtest nope/echo {price}', 1, /^weir: Unknown provider "nope"\.\n$/],
  ['prices backtest dmo/echo {price}', 1, /^weir: Unknown provider "dmo"\. Did you mean "demo"\?\n$/],
  ['prices backtest demo/echo {price} --days 365', 0, /^calls /],
  ['prices backtest demo/echo {price} --days 366', 2, /^weir: --days must be a number of days, from 1 to 365\.\n$/],
  ['prices show nope', 2, /^weir: The model must have the form <provider>\/<model>\.\n$/],
  ['prices backtest demo/none-such {price}', 0, /^calls +0\n/],
  ['prices backtest --tier pro --multiplier 2000 --days 0', 2, /^weir: --days must be a number of days, from 1/],
  ['prices set demo/echo {price}', 0, /origin +operator\nversion +\d+\nprice +\{"input":"1\.00","output":"2\.00"\}/],
  ['prices show demo/echo', 0, /operator +cli [^]*\n.* shipped /],
  [
    'prices set demo/echo {"input":"-1","output":"2"}',
    1,
    /^weir: <price> \(input\) must be an amount per million tokens/,
  ],
  [
    'prices set demo/echo {"input":1.5,"output":"2"}',
    1,
    /^weir: <price> \(input\) must be an amount per million tokens/,
  ],
  ['prices set demo/echo {"input":', 1, /^weir: The price is not valid JSON\./],
  ['prices set echo {price}', 2, /^weir: The model must have the form <provider>\/<model>/],
  ['prices withdraw demo/echo', 0, /^Your price is removed\.\n$/],
  ['prices withdraw demo/echo', 1, /^weir: You have set no price for this model/],
  ['prices withdraw nobody/nothing', 1, /^weir: You have set no price for this model/],
  ['prices show demo/echo', 0, /withdrawn +cli /],
  ['prices show nobody/nothing', 1, /^weir: This model has no price/],

  ['audit', 0, /^books +agree\ntransfers +\d+\nrecords +2\n/],
  ['audit --json', 0, /"findings": \[\]/],
  ['balance {key} --json', 0, /"balance": "13\.99/],
]

const filled = (text: string, names: Record<string, string>): string =>
  text.replace(/\{(\w+)\}/g, (placeholder, name: string) => names[name] ?? placeholder)

for (const running of [true, false]) {
  describe(running ? 'while the gateway runs' : 'on the data folder alone', () => {
    let setting: Setting

    test('the gateway serves a key and two calls', async () => {
      setting = await prepare(running)
    })

    // Refusals come from the same code in both cases; only the way to it differs.
    const stepsToRun = running ? steps : steps.filter(([, code], at) => code === 0 || at % 10 === 0)
    test.each(stepsToRun)('weir %s', async (command, code, pattern, keep = {}) => {
      const result: Ran = await weir(setting.folder, filled(command, setting.names))
      const expected = new RegExp(filled(pattern.source, setting.names))
      expect({ code: result.code, said: code === 0 ? result.stdout : result.stderr }).toEqual({
        code,
        said: expect.stringMatching(expected),
      })
      expect(code === 0 ? result.stderr : result.stdout).toBe('')
      for (const [name, shape] of Object.entries(keep)) setting.names[name] = shape.exec(result.stdout)![0]
    })

    if (!running) return
    test('the gateway still runs and stops cleanly', async () => {
      expect(await stopServed(setting.served!)).toBe(0)
    })
  })
}
