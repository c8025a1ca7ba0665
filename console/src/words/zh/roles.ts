import type { rolesWords } from '../en/roles.ts'
import type { Chinese } from '../words.ts'

export const roles: Chinese<typeof rolesWords> = {
  site_member: '成员',
  site_support: '支持人员',
  site_admin: '管理员',
  site_owner: '所有者',
  about_site_member: '只能看到自己所属的账户。',
  about_site_support: '可查看所有账户的全部内容，不能更改。',
  about_site_admin: '可更改所有者与加入规则以外的一切。',
  about_site_owner: '拥有全部权限。',
  account_viewer: '查看者',
  account_developer: '开发者',
  account_manager: '管理者',
  about_account_viewer: '可查看密钥、调用记录、用量和余额。',
  about_account_developer: '还可新建和更改密钥。',
  about_account_manager: '还可管理成员、预算和 Webhook。',
}
