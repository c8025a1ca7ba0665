import { words } from '../words.ts'

/** The names of the roles, and what each of them may do. */
export const rolesWords = words('roles', {
  site_member: 'member',
  site_support: 'support',
  site_admin: 'admin',
  site_owner: 'owner',
  about_site_member: 'Sees only accounts that they are a member of.',
  about_site_support: 'Sees everything of all accounts, changes nothing.',
  about_site_admin: 'Changes everything but the owners and who may join.',
  about_site_owner: 'May do everything.',
  account_viewer: 'viewer',
  account_developer: 'developer',
  account_manager: 'manager',
  about_account_viewer: 'Sees keys, records, usage and the balance.',
  about_account_developer: 'Also creates and changes keys.',
  about_account_manager: 'Also manages members, budgets and webhooks.',
})
