"""Does ordinary work in the modules party, company and product of Tryton, and prints the rows that it finds."""
import sys

from trytond.config import config

config.update_etc(sys.argv[1])
from trytond.pool import Pool  # noqa: E402  this import reads the configuration
from trytond.transaction import Transaction  # noqa: E402

Pool.start()
pool = Pool("tryton")
with Transaction().start("tryton", 0, readonly=True):
    pool.init()
name = sys.argv[2]
with Transaction().start("tryton", 1, context={"active_test": False}):
    Party, Attachment, Category = (pool.get(m) for m in ("party.party", "ir.attachment", "party.category"))
    Template, Uom, User, Lang = (pool.get(m) for m in ("product.template", "product.uom", "res.user", "ir.lang"))
    parent, = Category.create([{"name": name}])
    child, = Category.create([{"name": name + " child", "parent": parent.id}])
    parties = Party.create([{"name": f"{name} {n}", "categories": [("add", [child.id])],
                             "addresses": [("create", [{"street": f"{n} Lane"}])],
                             "contact_mechanisms": [("create", [{"type": "email", "value": f"{name}{n}@example.com"}])]}
                            for n in range(20)])
    Attachment.create([{"name": f"{name} note", "type": "data", "data": b"text", "resource": str(parties[0])}])
    unit, = Uom.search([("symbol", "=", "u")], limit=1)
    template, = Template.create([{"name": name, "default_uom": unit.id, "type": "goods",
                                  "products": [("create", [{"code": name}])]}])
    german, = Lang.search([("code", "=", "de")])
    User.create([{"name": name, "login": name, "language": german.id}])
    Lang.write([german], {"translatable": True})
    with Transaction().set_context(language="de"):
        Template.write([Template(template.id)], {"name": name + " deutsch"})
    Party.write(parties[:5], {"active": False})
    Party.delete(parties[15:])

with Transaction().start("tryton", 1, context={"active_test": False, "language": "de"}):
    found = Party.search([("categories", "child_of", [parent.id], "parent")], order=[("id", "ASC")])
    print("= parties", [p.name.replace(name, "N") for p in found], sum(p.active for p in found))
    print("= addresses", sum(len(p.addresses) for p in found), "mails", sum(len(p.contact_mechanisms) for p in found))
    print("= attachments", [len(Attachment.search([("resource", "=", str(p))])) for p in found[:2]])
    print("= template", Template(template.id).name.replace(name, "N"), len(Template(template.id).products))
    print("= user", len(User.search([("login", "=", name), ("language.code", "=", "de")])))
    print("= all of before", Party.search([("name", "like", "before %")], count=True),
          Attachment.search([("name", "=", "before note"), ("resource.name", "=", "before 0", "party.party")], count=True))
