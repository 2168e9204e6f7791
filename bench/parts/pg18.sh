# shellcheck shell=bash disable=SC2034,SC2154
#
# Measures uuidv7() of PostgreSQL 18. If the installed server is not PostgreSQL 18, the measurement runs in a Debian
# root with PostgreSQL 18, which scripts/roots.sh makes. If no root with PostgreSQL 18 is available, the results contain
# a note.
begin_results pg18
rm -f "$out/results/pg18.note"
# shellcheck source=scripts/roots.sh
. "$source_dir/scripts/roots.sh"

choose_suite 18
make_root_18() {
  [ "$(id -u)" = 0 ] || { echo "a root of Debian's takes the administrator's rights"; return; }
  (choose_pristine && copy_root bench && root=$roots/$suite-bench &&
    { [ -x "$root/usr/lib/postgresql/18/bin/initdb" ] && [ -e "$root/usr/lib/postgresql/18/lib/pgxs/src/makefiles/pgxs.mk" ] ||
      in_root_install postgresql-18 postgresql-server-dev-18 g++ make; }) >"$work/root18" 2>&1 || tail -1 "$work/root18"
}
why_not=$(make_root_18)
if [ -n "$why_not" ]; then
  say "  not measured: $why_not"
  printf '%s\n' "$why_not" >"$out/results/pg18.note"
else
  root=$roots/$suite-bench
  root_work=$(mktemp -d "$root/var/tmp/snowflake-bench.XXXXXX")
  trap 'rm -rf "$root_work"' EXIT
  inside=/var/tmp/${root_work##*/}
  chmod 755 "$root_work"
  mkdir "$root_work/source"
  (cd "$work/source" && tar --exclude='*.o' --exclude='*.bc' --exclude='*.so' --exclude=bench/build -cf - .) | tar --no-same-owner -xf - -C "$root_work/source"
  in_root env PG_CONFIG=/usr/lib/postgresql/18/bin/pg_config WORK="$inside" ROWS="$(by_form 2000000 50000)" CALLS="$(by_form 20000 5000)" RUNS="$(by_form 15 5)" LOADS="$(by_form 2 1)" \
    bash "$inside/source/bench/inside.sh" >"$work/inside" 2>&1 || { tail -20 "$work/inside" >&2; die "the part pg18 failed in $root"; }
  tail -n +2 "$root_work/results/pg18.tsv" >>"$results"
  cp "$root_work/version" "$out/results/pg18.version"
fi
