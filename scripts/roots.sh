# shellcheck shell=bash
#
# Makes Debian roots (directories for chroot) in which scripts build and test. A script must source lib.sh before
# roots.sh. Each Debian suite has a minimal root, which is created once and never changed. A script installs packages in
# a copy of the minimal root (chroot directory without added packages). Later runs of the script use the copied chroot
# directory again.

roots=${SNOWFLAKE_ROOTS:-/var/cache/snowflake/roots}
versions_of_debian=(15 17 18)

# Starts the script again as root, because chroots, mounts and the installation of packages need root.
become_root() {
  [ "$(id -u)" = 0 ] || exec sudo env ${SNOWFLAKE_ROOTS:+"SNOWFLAKE_ROOTS=$SNOWFLAKE_ROOTS"} "$0" "$@"
}

# Sets $suite to the Debian suite that carries PostgreSQL version $1.
choose_suite() {
  case $1 in
    15) suite=bookworm ;;
    17) suite=trixie ;;
    18) suite=sid ;;
    *) die "no Debian suite carries PostgreSQL $1; there are: ${versions_of_debian[*]}" ;;
  esac
}

# Sets $pristine to the chroot directory of $suite without added packages (minimal root). A new chroot directory is
# renamed to $pristine only when it is complete, so that $pristine is never incomplete. The mounts of debootstrap are in
# a separate mount namespace, because a root that still has mounts cannot be removed.
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

# copy_root NAME: sets $root to a copy of the chroot directory $pristine. In the copied root, the installation of a
# package starts no services. In the copied chroot directory, apt ignores the age of package lists, because a mirror of
# Debian unstable may be out of date. The function copy_root() makes the copy again if the installation of packages in
# the copy was interrupted.
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

# in_root COMMAND...: runs COMMAND in $root. COMMAND has separate namespaces for mounts and processes, so no mount and
# no process remains after it. COMMAND ends when the script ends, even if the script is killed.
in_root() {
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  # Lets npm in the root trust the certificates that this machine trusts, because a proxy may use a certificate that is
  # not public.
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

# in_root_install PACKAGE...: installs packages of the Debian suite in $root, without output.
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

# copy_sources DIRECTORY: makes a git clone in DIRECTORY, because `make dist` needs git. The working tree is copied over
# the clone, so that DIRECTORY includes uncommitted changes.
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
