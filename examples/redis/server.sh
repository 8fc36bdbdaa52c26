# Starts a Redis server with its data on the external volume: a replica of the primary that a peer knows, else the primary.
api="http://$SCHEDULER_API_HOSTNAME:$SCHEDULER_API_PORT"

# host:port of every server of the service but this one.
peers() {
  curl -sf "$api/v1/endpoints/redis" | grep -o '[0-9A-Za-z.-]*:[0-9]*"' | tr -d '"' | grep -v ":$PORT_REDIS\$" | sort -u
}

# host and port of the primary, as a peer that is one, or follows one, tells.
primary() {
  for peer in $(peers); do
    host=${peer%:*} port=${peer#*:}
    role=$(timeout 2 redis-cli -h "$host" -p "$port" info replication 2>/dev/null | tr -d '\r')
    case $role in
      *role:master*) echo "$host $port"; return ;;
      *master_link_status:up*)
        echo "$role" | awk -F: '/^master_host/ { host = $2 } /^master_port/ { port = $2 } END { print host, port }'
        return ;;
    esac
  done
}

found=$(primary)
if [ -z "$found" ] && [ "$POD_INSTANCE_INDEX" != 0 ]; then
  # The first pod is deployed first: wait for it, so that two pods do not both become primaries.
  until found=$(primary) && [ -n "$found" ]; do sleep 1; done
fi
replica=${found:+--replicaof $found}
# shellcheck disable=SC2086
exec redis-server --port "$PORT_REDIS" --dir "$PWD/redis-data" --appendonly yes --protected-mode no $replica
