// Every money command as an operator types it, on a gateway that runs and on the data folder alone: what it prints,
// how it ends, and what bad input gets.

import { afterAll, describe, expect, test } from 'bun:test'
import { ask, bearer, CHAT, goodBody } from '../front/asking.ts'
import type { Ran, Served } from '../front/weir-process.ts'
import { cleanUp, freshFolder, serve, stopServed, weir, weirSays } from '../front/weir-process.ts'
import { rawRequest } from '../support/raw.ts'

afterAll(cleanUp)

interface Setting {
  readonly folder: string
  readonly served: Served | undefined
  /** What the commands below may name in braces. */
  readonly names: Record<string, string>
}

const demo = goodBody({ model: 'demo/echo' })

/** A key with a dollar and two calls behind it. */
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

const AMOUNT = /^weir: The amount must be US dollars such as 5 or 0\.25: at most 999999999/
const ABSENT = /^weir: Unknown account\. Use its id \(acc_…\)/

/** In the order in which they run. */
const steps: readonly Step[] = [
  ['accounts show {account}', 0, /^id +{account}\nname +mine\ntype +team\nkind +prepaid\n[^]*balance +0\.99/],
  ['accounts show {key}', 0, /keys\nkey .*\nkey_\w{11} +{account} +mine +….{4} +pro/, { keyId: /key_\w{11}/ }],
  ['accounts show {keyId}', 0, /^id +{account}\n/],
  ['accounts show revenue', 0, /^id +acc_00000000001\nname +revenue\nkind +operator/],
  ['accounts show acc_zzzzzzzzzzz', 1, ABSENT],
  ['accounts show', 2, /^weir: Usage: weir accounts show <account or key>\n$/],

  ['top-up {account} 10 --reference inv-7', 0, /posted +top-up\n[^]*amount +10\.00\nbalance +10\.99/],
  ['top-up {account} 10 --reference inv-7', 1, /^weir: This was booked before/],
  ['gift {key} 0.000000001 --reference inv-7', 0, /posted +gift\n[^]*amount +0\.000000001\n/],
  ['top-up {account} 0', 1, /^weir: The amount must be more than 0\.\n$/],
  ['top-up {account} -5', 1, AMOUNT],
  ['top-up {account} 9223372036854775808', 1, AMOUNT],
  ['top-up {account} 1.0123456789', 1, AMOUNT],
  ['top-up {account} 1e3', 1, AMOUNT],
  ['top-up {account} five', 1, AMOUNT],
  ['top-up {account}', 2, /^weir: Usage: weir top-up/],
  ['top-up {account} 1 2', 2, /^weir: Usage: weir top-up/],
  ['top-up {account} 1 --refrence x', 2, /^weir: Unknown option --refrence. Did you mean --reference\?/],
  ['top-up acc_00000000099 5', 1, ABSENT],
  ['top-up revenue 5', 1, /^weir: Money cannot be posted to this account/],
  ['top-up {account} 999999999', 0, /balance +10000000\d\d/],
  ['top-up {account} 999999999', 0, /balance +20000000\d\d/],
  ['top-up {account} 999999999', 1, /^weir: The amount is too large for this account or for the operator's own/],
  ['adjust {account} -1999999998', 1, AMOUNT],
  ['adjust {account} -999999999', 0, /posted +adjustment\n[^]*amount +-999999999\.00\n/],
  ['adjust {account} -999999999', 0, /balance +10\.99/],
  ['top-up {account} 999999999', 1, /^weir: The amount is too large for this account or for the operator's own/],
  ['adjust {account} -11', 1, /^weir: The balance does not cover this amount\. Nothing was changed\.\n$/],
  ['adjust {account} +0.5', 0, /balance +11\.49/],
  ['adjust {account} 0', 1, /^weir: The amount must be more than 0/],

  ['refund {call} 1', 1, /^weir: The amount is more than the call was charged/],
  ['refund {call}', 0, /posted +refund\naccount +{account}\namount +0\.0000/],
  ['refund {call}', 1, /^weir: This was booked before/],
  ['refund {other} 0.000000001', 0, /amount +0\.000000001\n/],
  ['refund req_00000000099', 1, /^weir: This call was not charged anything/],
  ['refund {account}', 1, /^weir: Use the id of the call \(req_…\)/],

  ['codes create --count 3 --amount 2.5 --batch x', 0, /^(wr(-[0-9A-HJKMNP-TV-Z]{4}){4}\n){3}$/, { code: /wr-\S+/ }],
  ['codes redeem {code} {key}', 0, /redeemed +2\.50\naccount +{account}\nbalance +13\.99/],
  ['codes redeem {code} {account}', 1, /^weir: This code has been redeemed already/],
  ['codes redeem wr-0000-0000-0000-0000 {account}', 1, /^weir: Unknown code/],
  ['codes redeem nonsense {account}', 1, /^weir: A code looks like wr-/],
  ['codes create --count 0 --amount 1', 1, /^weir: --count must be a whole number from 1 to 10000/],
  ['codes create --count 2 --amount 0', 1, /^weir: --amount must be more than 0/],
  ['codes create --count 2 --amount 1 --expires 0', 1, /^weir: --expires must be a whole number/],

  ['codes create --count 2 --amount 1 --batch autumn', 0, /^wr-.*\nwr-.*\n$/],
  ['codes list', 0, /^batch +codes +redeemed[^]*autumn +2 +0 +0 +2\.00 /],
  ['codes list autumn', 0, /^code .*\n(code_\w{11} +1\.00 +open .*\n){2}$/, { one: /code_\w{11}/ }],
  ['codes void {one}', 0, /^voided +1\n$/],
  ['codes void {one}', 1, /^weir: The code has been redeemed or voided already/],
  ['codes void autumn --json', 0, /"voided": 1/],
  ['codes void winter', 1, /^weir: There is no batch of this name/],
  ['topup {account} 1 --reference inv-7', 1, /^weir: This was booked before/],
  ['topup {account} 0', 1, /^weir: The amount must be more than 0\.\n$/],

  ['webhooks list', 0, /^no webhooks\n$/],
  [
    'webhooks create https://127.0.0.1/ --events balance.low',
    1,
    /^weir: The URL cannot be used for a webhook: its host is not/,
  ],
  ['webhooks create https://example.com/ --events balance', 1, /^weir: --events must be a list of these/],
  [
    'webhooks create https://example.com/ --events ledger.drift --account {account}',
    1,
    /^weir: --events must be a list of these/,
  ],
  [
    'webhooks create https://example.com/ --events ledger.drift',
    0,
    /secret +whsec_[\w-]{43}\n$/,
    { hook: /hook_\w{11}/ },
  ],
  ['webhooks list', 0, /{hook} +site +https:\/\/example\.com\/ +ledger\.drift +on +0 +0/],
  ['webhooks deliveries {hook}', 0, /^no deliveries\n$/],
  ['webhooks remove {hook}', 0, /^removed +{hook}\n$/],
  ['webhooks remove {hook}', 1, /^weir: Unknown webhook/],
  ['webhooks test {hook}', 1, /^weir: Unknown webhook/],

  ['budgets show {account}', 0, /^no budgets\n$/],
  ['budgets set {key} day 3', 0, /^of +span +cap +spent +held +left\n{keyId} +day +3\.00 +0\.00 +0\.00 +3\.00\n$/],
  ['budgets set {account} month 5', 0, /{account} +month +5\.00/],
  ['budgets show {account}', 0, /{keyId} +day .*\n{account} +month /],
  ['budgets set {key} day none', 0, /^no budgets\n$/],
  ['budgets set {key} week 5', 1, /^weir: The period of a budget must be total, day or month/],
  ['budgets set {key} day -1', 1, /^weir: The budget must be US dollars/],
  ['budgets set acc_zzzzzzzzzzz day 1', 1, ABSENT],

  ['accounts set {account} --credit-limit 20 --bodies on', 0, /credit limit +20\.00\nbodies +on/],
  ['accounts set {account} --credit-limit 20.1.1', 1, /^weir: --credit-limit must be US dollars/],
  ['accounts set {account} --bodies perhaps', 1, /^weir: --bodies must be on or off/],
  ['accounts set {account} --prepaid --postpaid', 1, /^weir: Use either --prepaid or --postpaid/],
  ['accounts set {account}', 1, /^weir: Nothing to change/],
  ['accounts set revenue --postpaid', 1, /^weir: This is one of the operator's own accounts/],
  ['accounts set {account} --postpaid', 0, /kind +postpaid\n[^]*available +unlimited/],
  ['adjust {account} -40', 0, /balance +-26\./],
  ['accounts set {account} --prepaid', 1, /^weir: The debt and the holds of the account exceed this credit limit/],
  ['adjust {account} 40', 0, /balance +13\.99/],
  ['accounts set {account} --prepaid', 0, /kind +prepaid/],
  ['accounts freeze {account}', 0, /state +frozen\nfrozen since +2/],
  ['accounts unfreeze {key}', 0, /state +active/],

  ['keys set {key} --clamp on --bodies off', 0, /^key +{keyId}\n[^]*clamp +on\nbodies +off\nstrict +off\n/],
  ['keys set {key} --strict on', 0, /^key +{keyId}\n[^]*clamp +on\nbodies +off\nstrict +on\n/],
  ['keys set {key} --strict off', 0, /strict +off\n/],
  [
    'keys show {key}',
    0,
    /^key +{keyId}\naccount +{account}\nname +mine\n[^]*clamp +on\n[^]*strict +off\n[^]*state +active\n$/,
  ],
  ['keys set {key}', 1, /^weir: Nothing to change/],
  ['keys set key_zzzzzzzzzzz --clamp on', 1, /^weir: Unknown key/],
  ['keys create --account {account} --name second --json', 0, /"account": "{account}"/],
  ['keys create --account {account} --name second', 1, /^weir: The account has another key with this name/],
  [
    'keys set {key} --expires 2099-01-31 --endpoints chat,ark --addresses 127.0.0.0/8,::1',
    0,
    /endpoints +chat,ark\naddresses +127\.0\.0\.0\/8,::1\nexpires +2099-01-31T00:00:00\.000Z\n/,
  ],
  ['keys set {key} --expires none --endpoints none --addresses none', 0, /endpoints +-\naddresses +-\nexpires +-\n/],
  ['keys set {key} --disable', 0, /state +disabled\n/],
  ['keys list --state disabled --name mine', 0, /^key .*\n{keyId} +{account} +mine +….{4} +pro +disabled/],
  ['keys set {key} --enable --tier pro --qpm none', 0, /state +active\n/],
  ['keys list --account {account} --limit 1', 0, /second[^]*more rows with --after \w+\n$/],
  ['keys rotate {keyId} --overlap 30d --json', 0, /"key": "wk-\w{36}"/],
  ['keys show {key}', 0, /old text until +2/],
  ['accounts create --name Delta --personal --allow openai/*', 0, /^id +acc_\w{11}\nname +Delta\ntype +personal/],
  ['accounts list --name delta', 0, /^id .*\nacc_\w{11} +Delta +personal +prepaid +active +0\.00 +0\.00\n$/],
  ['accounts set {account} --allow demo/* --tier standard', 0, /tier +standard\nallow +demo\/\*\n/],
  ['keys create --account acc_zzzzzzzzzzz', 1, ABSENT],
  ['keys create --account revenue', 1, /^weir: This account cannot have keys/],
  ['accounts show {account}', 0, /second +….{4} +standard/],

  ['statement {account} --limit 2', 0, /^time .*\n.* adjustment .*\n.* adjustment .*\n\nmore rows from [\w-]+\n$/],
  ['statement {account} --next x', 1, /^weir: --next must be the cursor that the previous page printed/],
  ['statement {account}', 0, /charge +-0\.0000[^]*gift +\+1\.00/],
  ['statement {account} --limit 0', 1, /^weir: --limit must be a whole number from 1 to 1000/],
  ['records --account {account}', 0, /^time .* loss *\n.*{other} .*\n.*{call} .* - *\n$/],
  ['records --key {key} --model demo/echo --outcome completed --limit 1', 0, /{other}[^]*more rows from {other}\n$/],
  ['records --key {key} --before {other}', 0, /^time .*\n.*{call} /],
  [`records --user ${'u'.repeat(256)}`, 0, /^nothing found\n$/],
  [`records --user ${'u'.repeat(257)}`, 1, /^weir: --user must have 1 to 256 characters/],
  ['records --model echo', 1, /^weir: --model must have the form <provider>\/<model>/],
  ['records --outcome refused', 0, /^nothing found\n$/],
  ['records --day 2020-01-01', 0, /^nothing found\n$/],
  ['records --day 2026-02-30', 1, /^weir: --day must be a day such as/],
  ['records --min-cost 100', 0, /^nothing found\n$/],
  ['records --channel none --status 200 --streamed off --since 2026-01-01', 0, /^nothing found\n$/],
  ['records --since yesterday', 1, /^weir: --since must be a time such as/],
  ['records export --account {account}', 0, /^\{"id":"{other}".*\n\{"id":"{call}".*\n$/],
  ['records export --key {key} --format csv', 0, /^id,time,.*\r\n{other},.*\r\n{call},.*\r\n$/],
  ['records export --format xml', 1, /^weir: --format must be ndjson or csv/],
  ['records export {account}', 2, /^weir: Usage: weir records export /],
  ['records delete', 1, /^weir: Say which records to delete: --account/],
  ['records delete --user nobody --json', 0, /"deletion": 1/],
  ['records deletions', 0, /^deletion .*\n *1 .* one /],
  ['record {call}', 0, /call +{call}\n[^]*transfers\n[^]*charge +-0\.0000[^]*refund +\+0\.0000/],
  ['record req_00000000099', 1, /^weir: There is no record of this call/],

  [
    'prices backtest demo/echo {price}',
    0,
    /^calls +2\nwas +0\.0000[^]*complete +true\n[^]*by model\n[^]*demo\/echo +2 /,
  ],
  ['prices backtest --tier pro --multiplier 2000 --json', 0, /"difference": "0\.0000/],
  ['prices backtest demo/echo', 1, /^weir: Give a model and its price, or --tier and --multiplier/],
  ['prices set demo/echo {price}', 0, /version +\d+\nprice +\{"input":"1\.00","output":"2\.00"\}/],
  ['prices show demo/echo', 0, /operator +cli [^]*\n.* shipped /],
  ['prices set demo/echo {"input":"-1","output":"2"}', 1, /^weir: The price is not valid: /],
  ['prices set demo/echo {"input":1.5,"output":"2"}', 1, /^weir: The price is not valid: /],
  ['prices set demo/echo {"input":', 1, /^weir: The price is not valid: it is not valid JSON/],
  ['prices set echo {price}', 1, /^weir: The model must have the form <provider>\/<model>/],
  ['prices withdraw demo/echo', 0, /state +as shipped/],
  ['prices withdraw demo/echo', 1, /^weir: You have set no price for this model/],
  ['prices withdraw nobody/nothing', 1, /^weir: You have set no price for this model/],
  ['prices show demo/echo', 0, /withdrawn +cli /],
  ['prices show nobody/nothing', 1, /^weir: This model has no price/],

  ['audit', 0, /^books +agree\ntransfers +\d+\nrecords +2\n/],
  ['audit --json', 0, /"findings": \[\]/],
  ['balance {key} --json', 0, /"balance": "13\.99/],
]

const filled = (text: string, names: Record<string, string>): string =>
  text.replace(/\{(\w+)\}/g, (whole, name: string) => names[name] ?? whole)

for (const running of [true, false]) {
  describe(running ? 'while the gateway runs' : 'on the data folder alone', () => {
    let setting: Setting

    test('a gateway has been used', async () => {
      setting = await prepare(running)
    })

    // What is refused is refused in the same place; here it is the way to it that differs.
    const these = running ? steps : steps.filter(([, code], at) => code === 0 || at % 10 === 0)
    test.each(these)('weir %s', async (command, code, says, keep = {}) => {
      const ran: Ran = await weir(setting.folder, filled(command, setting.names))
      const expected = new RegExp(filled(says.source, setting.names))
      expect({ code: ran.code, said: code === 0 ? ran.stdout : ran.stderr }).toEqual({
        code,
        said: expect.stringMatching(expected),
      })
      expect(code === 0 ? ran.stderr : ran.stdout).toBe('')
      for (const [name, shape] of Object.entries(keep)) setting.names[name] = shape.exec(ran.stdout)![0]
    })

    test('and it goes on', async () => {
      if (setting.served !== undefined) expect(await stopServed(setting.served)).toBe(0)
    })
  })
}
