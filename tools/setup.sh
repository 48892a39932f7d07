# Read by ./sator and ./dev: installs Debian packages, configures and builds, and says how long each took.
# Everything goes to standard error: the standard output of ./sator is the program's. `root` is the checkout.

say() { printf 'sator: %s\n' "$*" >&2; }

# give_up STATUS WHAT NEEDS HINT: ends with an error in the words of the program's own errors.
give_up() {
  printf 'error: %s\n  needs: %s\n  hint:  %s\n' "$2" "$3" "$4" >&2
  exit "$1"
}

# took START: "12.3 s" since START, a value of $EPOCHREALTIME.
took() {
  local us=$((${EPOCHREALTIME/[.,]/} - ${1/[.,]/}))
  printf '%d.%d s' $((us / 1000000)) $((us % 1000000 / 100000))
}

# packages_of GROUP...: the names in tools/packages.txt, one per line.
packages_of() {
  local group name reason
  while read -r group name reason; do
    [[ " $* " == *" $group "* ]] && echo "$name"
  done <"$root/tools/packages.txt"
  return 0
}

# The package database changes with every package that anybody installs, ours or not. So two files say what is known of the
# packages of some groups: build/packages.GROUPS has their versions and is written only when these differ;
# build/packages.GROUPS.checked is as old as the last look into the database.
package_database=${DPKG_ADMINDIR:-/var/lib/dpkg}/status

versions_file() {  # GROUP...
  local groups="$*"
  printf '%s/build/packages.%s' "$root" "${groups// /-}"
}

packages_checked() {  # GROUP...
  local versions
  versions=$(versions_file "$@")
  [[ -e $versions && $versions.checked -nt $root/tools/packages.txt && ! $package_database -nt $versions.checked ]]
}

# Installs the packages of the groups that are missing. Returns at once if the database has not changed since the last look.
install_packages() {  # GROUP...
  local versions wanted installed missing=() name
  versions=$(versions_file "$@")
  packages_checked "$@" && return
  mkdir -p "$root/build"
  if ! command -v dpkg-query >/dev/null; then
    say "no dpkg here: going on with what is installed (tools/packages.txt lists what is needed)"
    touch "$versions" "$versions.checked"
    return
  fi
  mapfile -t wanted < <(packages_of "$@")
  installed=$(installed_packages "${wanted[@]}")
  for name in "${wanted[@]}"; do
    grep -q "^$name " <<<"$installed" || missing+=("$name")
  done
  if ((${#missing[@]})); then
    apt_install "${missing[@]}"
    installed=$(installed_packages "${wanted[@]}")
  fi
  [[ -e $versions && $(<"$versions") == "$installed" ]] || printf '%s\n' "$installed" >"$versions"
  touch "$versions.checked"
}

# "name version" of those that are installed, one per line.
installed_packages() {  # PACKAGE...
  { dpkg-query -W -f='${db:Status-Status} ${Package} ${Version}\n' "$@" 2>/dev/null || true; } | sed -n 's/^installed //p' | sort
}

# build/venv: a Python environment of the checkout's own, with what tools/python.txt names; made again when that changes.
install_python() {
  local venv=$root/build/venv wanted=$root/tools/python.txt log=$root/build/venv.log start=$EPOCHREALTIME python=/usr/bin/python3
  [[ -x $venv/bin/python && -e $venv/installed && $(<"$venv/installed") == "$(<"$wanted")" ]] && return
  [[ -x $python ]] || python=python3
  mkdir -p "$root/build"
  if ! { "$python" -m venv --clear "$venv" &&
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --retries 3 -r "$wanted"; } >"$log" 2>&1; then
    tail -n 6 "$log" >&2
    give_up 1 "the Python packages of tools/python.txt could not be installed" "python3 with venv, and an index that pip can reach" \
      "check the network, then run this again (log: build/venv.log); ./sator needs none of it"
  fi
  cp "$wanted" "$venv/installed"
  say "Python environment build/venv made in $(took "$start")"
}

apt_install() {  # PACKAGE...
  local log=$root/build/setup.log start=$EPOCHREALTIME as_root=() by_hand="apt-get install --no-install-recommends $*"
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      give_up 1 "${#} Debian packages are missing: $*" "root, or sudo, to install packages" \
        "as root, run: apt-get update && $by_hand"
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300
    -o Acquire::Retries=2 -o Dpkg::Use-Pty=0)
  say "installing ${#} Debian packages: $*"
  : >"$log"
  install() { "${apt[@]}" install --no-install-recommends "$@" </dev/null 2>&1 | note_download "$log"; }
  refresh() {
    say "reading the package lists"
    "${as_root[@]}" dpkg --configure -a >>"$log" 2>&1
    "${apt[@]}" update </dev/null >>"$log" 2>&1
  }
  # Lists may be absent (a fresh image) or name versions that the mirror no longer has: then read them and try again.
  if ! { compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null && install "$@"; }; then
    if ! { refresh && install "$@"; }; then
      tail -n 6 "$log" >&2
      give_up 1 "apt-get could not install: $*" "Debian 12 with a package mirror that can be reached" \
        "check the network and /etc/apt, then run this again; or install by hand: $by_hand (log: build/setup.log)"
    fi
  fi
  say "packages installed in $(took "$start")"
}

# Keeps the log and shows the one line of apt's that tells a user how long this may last.
note_download() {  # LOG
  local line
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$1"
    [[ $line == "Need to get"* ]] && say "${line%.}"
  done
  return 0
}

# One compiler per core, fewer where memory is short: a large C++ source takes up to 1 GB.
build_jobs() {
  local cores gigabytes
  cores=$(nproc)
  gigabytes=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  echo $((gigabytes < 1 ? 1 : gigabytes < cores ? gigabytes : cores))
}

# What ccache asks for before it keeps files that are compiled with precompiled headers.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

build() {  # PRESET TARGET...
  local preset=$1 dir=$root/build/$1 start=$EPOCHREALTIME lock
  shift
  mkdir -p "$dir"
  exec {lock}>"$dir/.lock"
  flock "$lock"
  # A build folder that came along with a copied checkout still points to the old place.
  if [[ -e $dir/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt"; then
    say "build/$preset belongs to another checkout: starting it afresh"
    find "$dir" -mindepth 1 -not -name .lock -delete
  fi
  if [[ ! -e $dir/CMakeCache.txt || ! -e $dir/build.ninja || $root/CMakePresets.json -nt $dir/build.ninja ]]; then
    if ! (cd "$root" && cmake --fresh --preset "$preset" >"$dir/configure.log" 2>&1); then
      rm -f "$dir/CMakeCache.txt"
      tail -n 25 "$dir/configure.log" >&2
      give_up 1 "CMake could not configure build/$preset" "the packages of tools/packages.txt" \
        "read the message above (log: build/$preset/configure.log)"
    fi
    say "configured build/$preset in $(took "$start"); a first build takes about ten minutes on two cores"
    start=$EPOCHREALTIME
  fi
  local steps
  if ! steps=$(run_ninja -C "$dir" -j "$(build_jobs)" "$@"); then
    give_up 70 "the build of build/$preset failed" "sources that compile on Debian 12" \
      "read the compiler's message above; after an interruption or a full disk just run this again"
  fi
  ((steps == 0)) || say "built build/$preset: $steps steps in $(took "$start")"
  exec {lock}>&-
}

# Shows progress and whatever the compiler says, and prints how many steps were run. A terminal gets one line that
# changes, a log one line per tenth of the way.
run_ninja() {
  local line done_=0 all tenth=0
  NINJA_STATUS='[%f/%t] ' ninja "$@" 2>&1 | {
    while IFS= read -r line; do
      case $line in
        *"Re-checking globbed"* | *"Re-running CMake"* | "-- "* | "ninja: "[En]*) ;;
        "["*/*"] "*)
          [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]
          done_=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
          if [[ -t 2 ]]; then
            printf '\r\033[Ksator: building, %d of %d steps' "$done_" "$all" >&2
          elif ((done_ * 10 / all > tenth && all > 10)); then
            tenth=$((done_ * 10 / all))
            say "building, $done_ of $all steps"
          fi
          ;;
        *) printf '%s\n' "$line" >&2 ;;
      esac
    done
    [[ -t 2 ]] && ((done_)) && printf '\r\033[K' >&2
    echo "$done_"
  }
}
