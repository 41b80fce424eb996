# A real systemd in a container, for the scripts beside this file, which read it: they have inside, ada and check then. It needs root,
# debootstrap and systemd-nspawn, and a Debian mirror the first time. The tree of the container is kept for the next time.
for need in debootstrap systemd-nspawn; do
  command -v "$need" >/dev/null || { echo "no $need: apt-get install debootstrap systemd-container" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "root only" >&2; exit 1; }

# A script may want more packages, in a tree of its own: suffix and packages. What it puts into the tree beside ollim is put there by
# its function prepare.
root="${XDG_CACHE_HOME:-$HOME/.cache}/ollim-test/bookworm${suffix:-}"
if [ ! -e "$root/.complete" ]; then
  rm -rf "$root"
  mkdir -p "$root"
  debootstrap --variant=minbase bookworm "$root" >/dev/null
  # Not by --include: its order of configuring does not suit them.
  chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends systemd-sysv dbus-user-session libpam-systemd ${packages:-} >/dev/null
  touch "$root/.complete"
fi
if declare -F prepare >/dev/null; then prepare; else CGO_ENABLED=0 go build -o "$root/usr/local/bin/ollim" ./cmd/ollim; fi
id=$(date +%s)

systemd-nspawn --quiet --directory="$root" --volatile=overlay --machine="ollim$id" --register=no --keep-unit --private-network --boot >/dev/null 2>&1 </dev/null &
nspawn=$!
trap 'kill -TERM "$nspawn" 2>/dev/null; wait "$nspawn" 2>/dev/null || true' EXIT
leader=
for _ in $(seq 100); do
  leader=$(pgrep -P "$nspawn" || true)
  [ -n "$leader" ] && break
  sleep 0.1
done
inside() { nsenter --target "$leader" --all -- "$@"; }
for _ in $(seq 300); do
  case "$(inside systemctl is-system-running 2>/dev/null || true)" in running | degraded) break ;; esac
  sleep 0.2
done
inside useradd --create-home --shell /bin/sh ada
inside loginctl enable-linger ada
uid=$(inside id -u ada)
ada() { inside setpriv --reuid ada --regid ada --init-groups env -i HOME=/home/ada USER=ada PATH=/usr/local/bin:/usr/bin:/bin XDG_RUNTIME_DIR="/run/user/$uid" sh -c "cd && $1"; }
for _ in $(seq 100); do
  ada 'systemctl --user is-active default.target' >/dev/null 2>&1 && break
  sleep 0.2
done

failed=0
check() { # NAME WANT GOT
  if [ "$2" = "$3" ]; then echo "ok    $1"; else
    echo "FAIL  $1: want $2, got $3"
    failed=1
  fi
}
