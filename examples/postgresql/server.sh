# Starts PostgreSQL with its data on the external volume: the first pod as the primary, the second as its standby.
# PostgreSQL does not run as root: the server runs as the owner of its data, the user postgres.
PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin | tail -1)
api="http://$SCHEDULER_API_HOSTNAME:$SCHEDULER_API_PORT"
data=/var/lib/postgresql/data
as_postgres() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --init-groups "$@"; else "$@"; fi; }
mkdir -p "$data" && chmod 755 /var/lib/postgresql && chmod 700 "$data"
[ "$(id -u)" != 0 ] || chown -R postgres:postgres "$data"

# host and port of the primary: the one peer that accepts writes.
primary() {
  for peer in $(curl -sf "$api/v1/endpoints/postgresql" | grep -o '[0-9A-Za-z.-]*:[0-9]*"' | tr -d '"' | sort -u); do
    host=${peer%:*} port=${peer#*:}
    [ "$port" != "$PORT_POSTGRESQL" ] || continue
    answer=$(psql -h "$host" -p "$port" -U postgres -Atc 'select pg_is_in_recovery()' postgres 2>/dev/null)
    if [ "$answer" = f ]; then echo "$host $port"; return; fi
  done
}

if [ "$POD_INSTANCE_INDEX" = 0 ]; then
  if [ ! -e "$data/PG_VERSION" ]; then
    as_postgres initdb --auth=trust --username=postgres --pgdata="$data" >/dev/null
    echo 'host replication all all trust' >> "$data/pg_hba.conf"
    echo 'host all all all trust' >> "$data/pg_hba.conf"
  fi
else
  until found=$(primary) && [ -n "$found" ]; do sleep 1; done
  host=${found% *} port=${found#* }
  if [ ! -e "$data/PG_VERSION" ]; then
    as_postgres pg_basebackup --host="$host" --port="$port" --username=postgres --pgdata="$data" --wal-method=stream
  fi
  echo "primary_conninfo = 'host=$host port=$port user=postgres'" >> "$data/postgresql.auto.conf"
  touch "$data/standby.signal"
  [ "$(id -u)" != 0 ] || chown postgres:postgres "$data/standby.signal"
fi
[ "$(id -u)" != 0 ] || exec setpriv --reuid=postgres --regid=postgres --init-groups \
  postgres -D "$data" -p "$PORT_POSTGRESQL" -c listen_addresses='*' -c unix_socket_directories=
exec postgres -D "$data" -p "$PORT_POSTGRESQL" -c listen_addresses='*' -c unix_socket_directories=
