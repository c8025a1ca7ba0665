// All Chinese texts, by the names of their tables.

import { accounts } from './accounts.ts'
import { audit } from './audit.ts'
import { budgets } from './budgets.ts'
import { callErrors } from './call-errors.ts'
import { channel } from './channel.ts'
import { channels } from './channels.ts'
import { chart } from './chart.ts'
import { codes } from './codes.ts'
import { deletions } from './deletions.ts'
import { dialog } from './dialog.ts'
import { download } from './download.ts'
import { errors } from './errors.ts'
import { explain } from './explain.ts'
import { filters } from './filters.ts'
import { form } from './form.ts'
import { funds } from './funds.ts'
import { joining } from './joining.ts'
import { key } from './key.ts'
import { keyNow } from './key-now.ts'
import { keys } from './keys.ts'
import { ledger } from './ledger.ts'
import { limits } from './limits.ts'
import { live } from './live.ts'
import { losses } from './losses.ts'
import { me } from './me.ts'
import { models } from './models.ts'
import { outcomes } from './outcomes.ts'
import { overview } from './overview.ts'
import { people } from './people.ts'
import { playground } from './playground.ts'
import { prices } from './prices.ts'
import { pricing } from './pricing.ts'
import { providers } from './providers.ts'
import { rates } from './rates.ts'
import { reasons } from './reasons.ts'
import { record } from './record.ts'
import { records } from './records.ts'
import { roles } from './roles.ts'
import { rotation } from './rotation.ts'
import { routes } from './routes.ts'
import { secretOnce } from './secret-once.ts'
import { settings } from './settings.ts'
import { shell } from './shell.ts'
import { shellParts } from './shell-parts.ts'
import { signIn } from './sign-in.ts'
import { statement } from './statement.ts'
import { states } from './states.ts'
import { system } from './system.ts'
import { table } from './table.ts'
import { tiers } from './tiers.ts'
import { tokens } from './tokens.ts'
import { trial } from './trial.ts'
import { usage } from './usage.ts'
import { values } from './values.ts'
import { waterfall } from './waterfall.ts'
import { webhooks } from './webhooks.ts'
import { why } from './why.ts'
import { workbench } from './workbench.ts'

export const chineseTables = {
  accounts,
  audit,
  budgets,
  callErrors,
  channel,
  channels,
  chart,
  codes,
  deletions,
  dialog,
  download,
  errors,
  explain,
  filters,
  form,
  funds,
  joining,
  key,
  keyNow,
  keys,
  ledger,
  limits,
  live,
  losses,
  me,
  models,
  outcomes,
  overview,
  people,
  playground,
  prices,
  pricing,
  providers,
  rates,
  reasons,
  record,
  records,
  roles,
  rotation,
  routes,
  secretOnce,
  settings,
  shell,
  shellParts,
  signIn,
  statement,
  states,
  system,
  table,
  tiers,
  tokens,
  trial,
  usage,
  values,
  waterfall,
  webhooks,
  why,
  workbench,
}
