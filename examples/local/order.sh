#!/bin/sh
# order.sh - order.sql fifty times at once with one key: one order, and one number for everybody.
#
#     DATABASE_URL=postgres://shop@host/database sh order.sh
set -eu

: "${DATABASE_URL:?the database, as a role that may call the functions and is called shop}"
here=$(dirname "$0")
key=psql-$$-$(date +%s%N)
item="lamp $key"
told=$(mktemp -d)
trap 'rm -rf "$told"' EXIT

# call NUMBER - one caller, which repeats until it is told; at most ten times
call() {
    tries=0
    while [ "$tries" -lt 10 ]; do
        psql -X -q -A -t -v key="$key" -v item="$item" -f "$here/order.sql" "$DATABASE_URL" \
            >"$told/$1" 2>&1 || return 1
        case $(cat "$told/$1") in
        order*) return 0 ;;
        'again in_progress') sleep 1 ;;
        *) return 1 ;;
        esac
        tries=$((tries + 1))
    done
    return 1
}

processes=
for number in $(seq 50); do
    call "$number" &
    processes="$processes $!"
done
failed=0
for process in $processes; do
    wait "$process" || failed=$((failed + 1))
done

answers=$(cat "$told"/* | sort -u)
rows=$(psql -X -q -A -t -v item="$item" "$DATABASE_URL" <<'SQL'
SELECT count(*) FROM orders WHERE item = :'item'
SQL
)
echo "psql: 50 callers, $failed failed; they were told: $answers; rows: $rows"
[ "$failed" -eq 0 ] && [ "$rows" -eq 1 ] && [ "$(printf '%s\n' "$answers" | wc -l)" -eq 1 ]
