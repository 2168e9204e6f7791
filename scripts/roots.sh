# shellcheck shell=bash
# Makes Debian roots for builds and tests. scripts/matrix and scripts/package use these functions. A script sources this
# file after lib.sh. Each suite has a minimal (pristine) root that is created once and never changed. A work root is a
# copy of the minimal root. Packages are installed in the work root, and later runs use it again.

roots=${SNOWFLAKE_ROOTS:-/var/cache/snowflake/roots}
versions_of_debian=(15 17 18)

# Chroots, mounts and packages need root.
become_root() {
  [ "$(id -u)" = 0 ] || exec sudo env ${SNOWFLAKE_ROOTS:+"SNOWFLAKE_ROOTS=$SNOWFLAKE_ROOTS"} "$0" "$@"
}

# Sets $suite to the Debian suite that carries a version of PostgreSQL.
choose_suite() {
  case $1 in
    15) suite=bookworm ;;
    17) suite=trixie ;;
    18) suite=sid ;;
    *) die "no Debian suite carries PostgreSQL $1; there are: ${versions_of_debian[*]}" ;;
  esac
}

# Sets $pristine to the minimal root of $suite. A new root is moved into place when it is complete, so an interrupted
# run leaves no incomplete root there. The mounts of debootstrap must end with debootstrap, because a root with a mount
# cannot be removed.
choose_pristine() {
  pristine=$roots/$suite
  [ ! -d "$pristine" ] || return 0
  install_missing debootstrap debian-archive-keyring
  mkdir -p "$roots"
  rm -rf "$pristine.part"
  say "$suite: debootstrap into $pristine"
  unshare --mount --propagation private debootstrap --variant=minbase "$suite" "$pristine.part" >"$pristine.log" 2>&1 ||
    { tail -5 "$pristine.log" >&2; die "debootstrap $suite failed: $pristine.log"; }
  mv "$pristine.part" "$pristine"
}

# copy_root NAME: sets $root to a copy of the minimal root. In the copied root no service starts by itself. apt checks
# signatures of package lists but not their age, because a mirror of the unstable suite may lag. If a run was
# interrupted while it installed packages in a root, that root is replaced.
copy_root() {
  root=$roots/$suite-$1
  [ ! -e "$root.installing" ] || { say "$suite: the last run was interrupted, so $root is made again"; rm -rf "$root" "$root.installing"; }
  [ ! -d "$root" ] || return 0
  rm -rf "$root.part"
  cp -a "$pristine" "$root.part"
  echo 'Acquire::Check-Valid-Until "false";' >"$root.part/etc/apt/apt.conf.d/50snowflake"
  printf '#!/bin/sh\nexit 101\n' >"$root.part/usr/sbin/policy-rc.d"
  chmod +x "$root.part/usr/sbin/policy-rc.d"
  mv "$root.part" "$root"
}

# in_root COMMAND...: runs the command in $root. Mounts and processes belong to separate namespaces, which end with the
# command, so no mount and no process stays. The command ends when this script ends, even if the script is killed.
in_root() {
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  # npm must trust the same certificates as this machine, because a proxy may have its own certificate.
  local trusted=/etc/ssl/certs/ca-certificates.crt npm_trusts=()
  [ ! -e "$trusted" ] || { cp -L "$trusted" "$root/etc/trusted-outside.crt"; npm_trusts=(NODE_EXTRA_CA_CERTS=/etc/trusted-outside.crt); }
  setpriv --pdeathsig KILL unshare --mount --propagation private --pid --fork --kill-child --ipc sh -euc '
    root=$1
    shift
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/dev/shm"
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive "$@"' sh "$root" ${npm_trusts[@]+"${npm_trusts[@]}"} "$@"
}

# in_root_install PACKAGE...: installs packages of the suite without output.
in_root_install() {
  local log=$root.apt.log
  touch "$root.installing"
  if ! { in_root apt-get update -qq &&
    in_root apt-get install -y -qq --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null; then
    tail -20 "$log" >&2
    die "could not install in $root: $*"
  fi
  rm "$root.installing"
}

# copy_sources DIRECTORY: makes a git clone, which `make dist` needs, and copies the working tree with uncommitted
# changes over it.
copy_sources() {
  rm -rf "$1"
  if git -C "$source_dir" rev-parse --git-dir >/dev/null 2>&1; then
    git clone -q --no-checkout --no-hardlinks "$source_dir" "$1"
    git -C "$1" reset -q
    (cd "$source_dir" && git ls-files -z --cached --others --exclude-standard |
      while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
      tar --null -T - -cf -) | tar -xf - --no-same-owner -C "$1"
  else
    mkdir -p "$1"
    tar -C "$source_dir" -cf - . | tar -xf - --no-same-owner -C "$1"
  fi
}
