# Starts a sentinel: two of three that miss the primary make a replica the new one.
api="http://$SCHEDULER_API_HOSTNAME:$SCHEDULER_API_PORT"
until [ -n "$found" ]; do
  for peer in $(curl -sf "$api/v1/endpoints/redis" | grep -o '[0-9A-Za-z.-]*:[0-9]*"' | tr -d '"' | sort -u); do
    host=${peer%:*} port=${peer#*:}
    if timeout 2 redis-cli -h "$host" -p "$port" info replication 2>/dev/null | grep -q role:master; then
      found="$host $port"
    fi
  done
  [ -n "$found" ] || sleep 1
done
cat > sentinel.conf <<CONF
port $PORT_SENTINEL
protected-mode no
sentinel resolve-hostnames yes
sentinel monitor main $found 2
sentinel down-after-milliseconds main 2000
sentinel failover-timeout main 10000
CONF
exec redis-server sentinel.conf --sentinel
