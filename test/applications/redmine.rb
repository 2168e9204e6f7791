# Does ordinary work in Redmine and prints the rows that it finds. `rails runner` runs this program.
name = ARGV[0]
Redmine::DefaultData::Loader.load('en') if Redmine::DefaultData::Loader.no_data?
User.current = User.where(admin: true).first
project = Project.create!(name: name, identifier: name, trackers: Tracker.all)
user = User.new(firstname: name, lastname: 'User', mail: "#{name}@example.com", status: 1).tap { |u| u.login = name; u.save! }
Member.create!(project: project, user_id: user.id, roles: [Role.givable.first])
make = ->(subject, more = {}) { Issue.create!({ project: project, tracker: Tracker.first, author: user, status: IssueStatus.first, priority: IssuePriority.first, subject: subject }.merge(more)) }
parent = make.call('parent')
children = (1..10).map { |n| make.call("child #{n}", parent_issue_id: parent.id) }
children.first.init_journal(user, 'a note').tap { |j| children.first.status = IssueStatus.where(is_closed: true).first; children.first.save! }
Attachment.create!(container: parent, file: StringIO.new('text').tap { |s| s.define_singleton_method(:original_filename) { 'a.txt' } }, author: user, filename: 'a.txt')
TimeEntry.create!(project: project, issue: parent, user: user, author: user, hours: 2, spent_on: Date.today, activity: TimeEntryActivity.first)
IssueRelation.create!(issue_from: children[1], issue_to: children[2], relation_type: 'blocks')
parent.add_watcher(user)
wiki = project.wiki || Wiki.create!(project: project, start_page: 'Wiki')
WikiPage.new(wiki: wiki, title: 'Wiki').tap { |page| page.content = WikiContent.new(page: page, text: 'text', author: user); page.save! }
children.last.destroy

found = Project.find_by(identifier: name)
top = found.issues.find_by(subject: 'parent')
puts "= issues #{found.issues.count} below #{top.reload.descendants.count} closed #{found.issues.joins(:status).where(issue_statuses: { is_closed: true }).count}"
puts "= journal #{found.issues.find_by(subject: 'child 1').journals.first.notes} details #{JournalDetail.joins(:journal).where(journals: { journalized_id: children.first.id }).count}"
puts "= attachments #{top.attachments.count} hours #{top.time_entries.sum(:hours)} watchers #{top.watcher_users.count} relations #{children[1].relations.count}"
puts "= member #{found.members.first.roles.count} wiki #{found.wiki.pages.first.content.text} assigned #{Issue.visible(user).where(project_id: found.id).count}"
puts "= all of before #{Project.find_by(identifier: 'before').issues.map(&:subject).sort.join(',')}"
